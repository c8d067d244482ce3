-- Version 7: offsets are found by the producers' times without reading rows one after the other.

-- A partition's log is cut into spans of offsets, a new one whenever a range is made. Within a span each row has the latest
-- time of all rows of the span up to it, which grows with the offset: a search by halves finds the first row that is late
-- enough. Spans begin anew because one record with a time of the far future would else hide everything behind it, even after
-- retention has dropped it.
CREATE TABLE pubsub.time_spans (
    topic_id int NOT NULL,
    partition int NOT NULL,
    first_offset bigint NOT NULL,
    PRIMARY KEY (topic_id, partition, first_offset),
    FOREIGN KEY (topic_id, partition) REFERENCES pubsub.partitions ON DELETE CASCADE
);

-- The latest time of the open span, and what it was before the last append. NULL: the span is empty.
ALTER TABLE pubsub.partitions ADD COLUMN span_latest bigint, ADD COLUMN span_latest_before bigint;

-- Rows that are there do not know the latest time before them: they are a span that is read from its beginning. What is
-- appended from now on is another one.
INSERT INTO pubsub.time_spans (topic_id, partition, first_offset)
    SELECT topic_id, partition, 0 FROM pubsub.partitions
    UNION SELECT topic_id, partition, next_offset FROM pubsub.partitions;

DO $migrate$
DECLARE
    place pubsub.partitions;
    role_name text;
BEGIN
    FOR place IN SELECT * FROM pubsub.partitions LOOP
        EXECUTE format('ALTER TABLE IF EXISTS pubsub.log_%s_%s ADD COLUMN span_latest bigint', place.topic_id, place.partition);
    END LOOP;
    -- Roles that may append move these with the counter.
    FOR role_name IN
        SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
          FROM pg_attribute AS t, aclexplode(t.attacl) AS a
         WHERE t.attrelid = 'pubsub.partitions'::regclass AND t.attname = 'next_offset' AND a.privilege_type = 'UPDATE'
    LOOP
        EXECUTE format('GRANT UPDATE (span_latest, span_latest_before) ON pubsub.partitions TO %s', role_name);
    END LOOP;
END $migrate$;
