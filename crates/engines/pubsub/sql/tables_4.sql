-- Version 4: brokers that speak Kafka's protocol, the groups that its clients make, and the offsets that these commit.

-- A broker that clients of Kafka can reach, from its start to its end. It coordinates groups while its lease holds.
CREATE TABLE pubsub.kafka_nodes (
    node_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    host text NOT NULL,
    port int NOT NULL CHECK (port BETWEEN 1 AND 65535),
    broker_address text NOT NULL,
    lease_until timestamptz NOT NULL
);

-- Members and generations are in the coordinator's memory: they end with it, and members join its successor.
CREATE TABLE pubsub.kafka_groups (
    name text PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 249),
    node_id int NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE pubsub.kafka_offsets (
    group_name text NOT NULL REFERENCES pubsub.kafka_groups ON DELETE CASCADE,
    topic_id int NOT NULL REFERENCES pubsub.topics ON DELETE CASCADE,
    partition int NOT NULL,
    committed bigint NOT NULL CHECK (committed >= 0),
    metadata bytea NOT NULL,
    committed_at timestamptz NOT NULL,
    PRIMARY KEY (group_name, topic_id, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ON pubsub.kafka_offsets (topic_id, partition);
