-- Version 2: the partitions of a topic may lie on several servers, its clusters; and readers
-- without anything to read can ask to be told of the next append.

-- What a cluster is known by, whatever its address.
CREATE TABLE pubsub.identity (id uuid NOT NULL DEFAULT gen_random_uuid());
INSERT INTO pubsub.identity DEFAULT VALUES;

-- The clusters that topics of this one have partitions on. Connection strings have no passwords.
CREATE TABLE pubsub.clusters (
    name text PRIMARY KEY CHECK (name ~ '^[a-zA-Z0-9._-]{1,100}$' AND name <> 'home'),
    id uuid NOT NULL UNIQUE,
    dsn text NOT NULL
);

-- NULL: all partitions are here. 0: this is the topic's home, which knows where the others are.
-- From 1 on: this is the share of another cluster's topic, whose home is named by its identity.
ALTER TABLE pubsub.topics ADD COLUMN share int CHECK (share >= 0), ADD COLUMN home uuid,
    ADD CHECK ((home IS NOT NULL) = (coalesce(share, 0) > 0));

-- At home: the partitions that are elsewhere.
CREATE TABLE pubsub.placements (
    topic_id int NOT NULL REFERENCES pubsub.topics ON DELETE CASCADE,
    partition int NOT NULL,
    cluster text NOT NULL REFERENCES pubsub.clusters,
    PRIMARY KEY (topic_id, partition)
);

-- The offset at which a consumer waits for a record; the append that begins there notifies.
ALTER TABLE pubsub.partitions ADD COLUMN awaited bigint NOT NULL DEFAULT -1;
