-- Version 1 of the tables. Later versions get files of their own; this one stays as it is.

CREATE TABLE pubsub.topics (
    topic_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '^[a-zA-Z0-9._-]{1,100}$'),
    partitions int NOT NULL CHECK (partitions BETWEEN 1 AND 1000),
    compression text NOT NULL CHECK (compression IN ('none', 'lz4', 'zstd')),
    retention_ms bigint CHECK (retention_ms > 0),
    retention_bytes bigint CHECK (retention_bytes > 0),
    range_records bigint NOT NULL CHECK (range_records >= 100),
    retain_for_groups boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- One hot row per partition. The free half of a page keeps its updates heap-only.
CREATE TABLE pubsub.partitions (
    topic_id int NOT NULL REFERENCES pubsub.topics ON DELETE CASCADE,
    partition int NOT NULL,
    next_offset bigint NOT NULL DEFAULT 0,
    first_offset bigint NOT NULL DEFAULT 0,
    made_until bigint NOT NULL DEFAULT 0,
    make_at bigint NOT NULL DEFAULT 0,
    epoch bigint NOT NULL DEFAULT 0,
    broker text,
    broker_address text,
    lease_until timestamptz,
    PRIMARY KEY (topic_id, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);

CREATE TABLE pubsub.ranges (
    topic_id int NOT NULL,
    partition int NOT NULL,
    first_offset bigint NOT NULL,
    end_offset bigint NOT NULL,
    PRIMARY KEY (topic_id, partition, first_offset),
    FOREIGN KEY (topic_id, partition) REFERENCES pubsub.partitions ON DELETE CASCADE
);

CREATE TABLE pubsub.producers (
    topic_id int NOT NULL,
    partition int NOT NULL,
    producer_id bigint NOT NULL,
    sequence bigint NOT NULL,
    last_base bigint NOT NULL,
    last_first bigint NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic_id, partition, producer_id)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.1,
        autovacuum_vacuum_cost_delay = 0);

CREATE SEQUENCE pubsub.producer_ids AS bigint START 1;

CREATE TABLE pubsub.groups (
    group_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_id int NOT NULL REFERENCES pubsub.topics ON DELETE CASCADE,
    name text NOT NULL CHECK (name ~ '^[a-zA-Z0-9._-]{1,100}$'),
    start text NOT NULL,
    when_lost text NOT NULL DEFAULT 'skip' CHECK (when_lost IN ('skip', 'fail')),
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (topic_id, name)
);

CREATE TABLE pubsub.members (
    group_id int NOT NULL REFERENCES pubsub.groups ON DELETE CASCADE,
    member text NOT NULL CHECK (length(member) BETWEEN 1 AND 200),
    lease_until timestamptz NOT NULL,
    lease_ms bigint NOT NULL,
    joined_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (group_id, member)
) WITH (fillfactor = 50);

-- Each change of a partition's owner raises the partition's own generation.
CREATE TABLE pubsub.assignments (
    group_id int NOT NULL REFERENCES pubsub.groups ON DELETE CASCADE,
    partition int NOT NULL,
    member text,
    generation bigint NOT NULL DEFAULT 0,
    wanted text,
    wanted_at timestamptz,
    committed bigint NOT NULL,
    claimed_to bigint NOT NULL,
    redelivered bigint NOT NULL DEFAULT 0,
    lost bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (group_id, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0);

CREATE TABLE pubsub.queues (
    queue_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name ~ '^[a-zA-Z0-9._-]{1,100}$'),
    visibility_ms bigint NOT NULL CHECK (visibility_ms > 0),
    max_attempts int NOT NULL CHECK (max_attempts > 0),
    keep_done boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE SEQUENCE pubsub.claim_ids AS bigint START 1 CACHE 100;
