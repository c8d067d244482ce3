-- Version 3: ranges end early, so that retention acts by time and by bytes; producers with names remember what they sent; and
-- roles that do not own the tables can append and read.

-- A range is made by the tables' owner now, and at the place where the counter says, so that no caller chooses one.
DROP FUNCTION IF EXISTS pubsub.make_ranges(int, int, bigint);

-- What a producer with a name has sent to a partition: a hash over all of its records, in order, and the same hash after
-- the 1st, 2nd, 4th, 8th... of them, so that other records under the same name are found early.
CREATE TABLE pubsub.chains (
    topic_id int NOT NULL,
    partition int NOT NULL,
    producer_id bigint NOT NULL,
    records bigint NOT NULL,
    chain bigint NOT NULL,
    marks bigint[] NOT NULL,
    PRIMARY KEY (topic_id, partition, producer_id)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.1,
        autovacuum_vacuum_cost_delay = 0);
