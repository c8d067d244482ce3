-- What version 2 left behind that its two files of tables do not make: a topic with its log, as its functions made them, and a
-- function that version 3 replaces by another.
INSERT INTO pubsub.topics (name, partitions, compression, range_records, retain_for_groups)
    VALUES ('old', 1, 'none', 1000000, false);
INSERT INTO pubsub.partitions (topic_id, partition, next_offset, made_until, make_at) VALUES (1, 0, 2, 1000000, 750000);
CREATE TABLE pubsub.log_1_0 (
    base_offset bigint PRIMARY KEY, count int NOT NULL, first_time bigint NOT NULL, last_time bigint NOT NULL,
    appended_at timestamptz NOT NULL, runs bigint[] NOT NULL, flags smallint NOT NULL, crc int, bytes int NOT NULL,
    body bytea NOT NULL) PARTITION BY RANGE (base_offset);
ALTER TABLE pubsub.log_1_0 ALTER body SET STORAGE EXTERNAL;
CREATE TABLE pubsub.log_1_0_0 (LIKE pubsub.log_1_0 INCLUDING ALL)
    WITH (toast_tuple_target = 8160, autovacuum_vacuum_insert_threshold = -1);
ALTER TABLE pubsub.log_1_0 ATTACH PARTITION pubsub.log_1_0_0 FOR VALUES FROM (0) TO (1000000);
INSERT INTO pubsub.ranges VALUES (1, 0, 0, 1000000);
-- Two records without keys and headers, values "a" and "b": length, time, length of the key, number of headers, value.
INSERT INTO pubsub.log_1_0 VALUES (0, 2, 1, 1, now(), '{0,0,2}', 0, NULL, 38,
    '\x0000000f0000000000000001ffffffff0000610000000f0000000000000001ffffffff000062');
CREATE FUNCTION pubsub.make_ranges(topic int, part int, upto bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;
