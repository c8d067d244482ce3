-- Version 6: queues keep what is done in place, and producers of Kafka's clients have transactions.

-- A queue that keeps what is done leaves the payload where it is, and notes beside it that it is
-- done. Moving it wrote each payload, and the log of it, a second time.
DO $migrate$
DECLARE
    q int;
BEGIN
    FOR q IN SELECT queue_id FROM pubsub.queues LOOP
        EXECUTE replace($queue$
            -- Workers that run meanwhile note what they have done here, with its payload. What they
            -- noted after the copy would be lost with the columns, so they wait from before it.
            LOCK TABLE pubsub.queue_{q}_done IN ACCESS EXCLUSIVE MODE;
            INSERT INTO pubsub.queue_{q} (message_id, sent_at, headers, payload)
            SELECT message_id, sent_at, headers, payload FROM pubsub.queue_{q}_done;
            ALTER TABLE pubsub.queue_{q}_done DROP COLUMN sent_at, DROP COLUMN headers, DROP COLUMN payload;
        $queue$, '{q}', q::text);
    END LOOP;
END $migrate$;

-- Transactional producers of Kafka's clients, by the name that their programs chose.
CREATE TABLE pubsub.kafka_transactions (
    transactional_id text PRIMARY KEY CHECK (length(transactional_id) BETWEEN 1 AND 249),
    producer_id bigint NOT NULL UNIQUE,
    producer_epoch int NOT NULL,
    timeout_ms bigint NOT NULL CHECK (timeout_ms > 0),
    -- NULL: no transaction is under way.
    begun_at timestamptz,
    -- How the last one ended; NULL before that.
    committed boolean,
    used_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.1,
        autovacuum_vacuum_cost_delay = 0);

-- What producers have sent in transactions that are under way, as rows of the log. None of it is
-- promised to any client, so it is not worth a second write to the server's log. A crash empties
-- all three tables at once, and a transaction whose row in kafka_open is gone has lost something.
CREATE UNLOGGED TABLE pubsub.kafka_open (
    producer_id bigint PRIMARY KEY
);

CREATE UNLOGGED TABLE pubsub.kafka_staged (
    producer_id bigint NOT NULL REFERENCES pubsub.kafka_open ON DELETE CASCADE,
    topic_id int NOT NULL REFERENCES pubsub.topics ON DELETE CASCADE,
    partition int NOT NULL,
    first_sequence bigint NOT NULL,
    last_sequence bigint NOT NULL,
    row_relatives bigint[] NOT NULL,
    counts int[] NOT NULL,
    first_times bigint[] NOT NULL,
    last_times bigint[] NOT NULL,
    run_from int[] NOT NULL,
    run_to int[] NOT NULL,
    run_values bigint[] NOT NULL,
    row_flags smallint[] NOT NULL,
    crcs int[] NOT NULL,
    body_ends int[] NOT NULL,
    bodies bytea NOT NULL,
    PRIMARY KEY (producer_id, topic_id, partition, first_sequence)
);
ALTER TABLE pubsub.kafka_staged ALTER bodies SET STORAGE EXTERNAL;
CREATE INDEX ON pubsub.kafka_staged (topic_id);

CREATE UNLOGGED TABLE pubsub.kafka_staged_offsets (
    producer_id bigint NOT NULL REFERENCES pubsub.kafka_open ON DELETE CASCADE,
    group_name text NOT NULL REFERENCES pubsub.kafka_groups ON DELETE CASCADE,
    topic_id int NOT NULL REFERENCES pubsub.topics ON DELETE CASCADE,
    partition int NOT NULL,
    committed bigint NOT NULL CHECK (committed >= 0),
    metadata bytea NOT NULL,
    PRIMARY KEY (producer_id, group_name, topic_id, partition)
);
CREATE INDEX ON pubsub.kafka_staged_offsets (group_name);
CREATE INDEX ON pubsub.kafka_staged_offsets (topic_id);
