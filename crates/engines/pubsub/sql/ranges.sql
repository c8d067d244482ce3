-- Ranges: a partition's log is a table for each run of offsets, so that retention drops tables and deletes no rows.
--
-- The newest ranges are made ahead of the log's end. The one that the end lies in is open; it ends where it was planned to,
-- or earlier, when retention wants a boundary there (close_range).

-- Gives a table the privileges that another has, but for those of its owner.
CREATE OR REPLACE FUNCTION pubsub.copy_grants(source regclass, target regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT a.privilege_type AS what, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
          FROM pg_class AS c, aclexplode(c.relacl) AS a
         WHERE c.oid = source AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT %s ON %s TO %s', given.what, target, given.role);
    END LOOP;
    FOR given IN
        SELECT a.privilege_type AS what, t.attname AS name,
               CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
          FROM pg_attribute AS t, aclexplode(t.attacl) AS a WHERE t.attrelid = source AND NOT t.attisdropped
    LOOP
        EXECUTE format('GRANT %s (%I) ON %s TO %s', given.what, given.name, target, given.role);
    END LOOP;
END $$;

-- A range's rows lie in its bounds, said as a constraint through a function: when the range ends early the function is
-- replaced, and PostgreSQL, which sees through it, attaches the table with its new bounds without reading it.
CREATE OR REPLACE FUNCTION pubsub.say_bounds(topic int, part int, first_offset bigint, end_offset bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION pubsub.holds_%1$s_%2$s_%3$s(base_offset bigint) RETURNS boolean '
        'LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $bounds$ SELECT $1 >= %3$s::bigint AND $1 < %4$s::bigint $bounds$',
        topic, part, first_offset, end_offset);
END $$;

-- Bytes that one range should hold at most under a limit for the partition: an eighth of it, but not less than what
-- making a table costs.
CREATE OR REPLACE FUNCTION pubsub.range_bytes(retention_bytes bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT greatest(retention_bytes / 8, 262144) $$;

-- Offsets in the next range: as many as the topic says, and no more than its limit of bytes allows for records of the
-- size of the last ones (of 1 KiB while there are none).
CREATE OR REPLACE FUNCTION pubsub.range_width(kept pubsub.topics, part int) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    record_bytes bigint;
BEGIN
    IF kept.retention_bytes IS NULL THEN
        RETURN kept.range_records;
    END IF;
    EXECUTE format('SELECT sum(r.bytes) / sum(r.count) FROM (SELECT bytes, count FROM pubsub.log_%s_%s '
        'ORDER BY base_offset DESC LIMIT 32) AS r', kept.topic_id, part) INTO record_bytes;
    RETURN least(kept.range_records,
        greatest(10, pubsub.range_bytes(kept.retention_bytes) / greatest(coalesce(record_bytes, 1024), 1)));
END $$;

-- Makes a range where there is no room for the partition's end and a quarter of a range more. A table is made by itself and
-- then attached, which locks out neither readers nor writers of its siblings.
--
-- Runs with the rights of the tables' owner, because a role that may only append has to get past the end of a range. It
-- takes numbers alone, looks up the rest, and does nothing where there is room: a caller can make it do no more than
-- its appends would.
CREATE OR REPLACE FUNCTION pubsub.make_ranges(topic int, part int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept pubsub.topics;
    place pubsub.partitions;
    width bigint;
    made_to bigint;
BEGIN
    SELECT * INTO kept FROM pubsub.topics AS t WHERE t.topic_id = topic;
    -- Locked, although an append holds it already: close_range and a caller by hand must not meet here.
    SELECT * INTO place FROM pubsub.partitions AS p WHERE p.topic_id = topic AND p.partition = part FOR UPDATE;
    width := pubsub.range_width(kept, part);
    IF place.made_until >= place.next_offset + width / 4 AND place.made_until > place.next_offset THEN
        RETURN;
    END IF;
    -- One range, however large the append is: many small ones would be many locks in one transaction.
    made_to := greatest(place.made_until + width, place.next_offset + width / 4 + 1);
    PERFORM pubsub.say_bounds(topic, part, place.made_until, made_to);
    -- Rows are only added, and a whole range is dropped, so there is nothing to vacuum; and no plan depends on statistics,
    -- for which the server would read a large part of the log every time that a tenth of it is new.
    EXECUTE format('CREATE TABLE pubsub.log_%1$s_%2$s_%3$s (LIKE pubsub.log_%1$s_%2$s INCLUDING ALL, '
        'CONSTRAINT bounds CHECK (pubsub.holds_%1$s_%2$s_%3$s(base_offset))) '
        'WITH (toast_tuple_target = 8160, autovacuum_enabled = off)', topic, part, place.made_until);
    PERFORM pubsub.copy_grants(format('pubsub.log_%s_%s', topic, part)::regclass,
        format('pubsub.log_%s_%s_%s', topic, part, place.made_until)::regclass);
    EXECUTE format('ALTER TABLE pubsub.log_%1$s_%2$s ATTACH PARTITION pubsub.log_%1$s_%2$s_%3$s '
        'FOR VALUES FROM (%3$s) TO (%4$s)', topic, part, place.made_until, made_to);
    INSERT INTO pubsub.ranges VALUES (topic, part, place.made_until, made_to);
    -- What is appended next begins a span of times, whichever range it lies in.
    INSERT INTO pubsub.time_spans VALUES (topic, part, place.next_offset) ON CONFLICT DO NOTHING;
    UPDATE pubsub.partitions AS p SET made_until = made_to, make_at = made_to - width / 4, span_latest = NULL
     WHERE p.topic_id = topic AND p.partition = part;
END $$;

-- Drops a range's table, and the function that says its bounds.
CREATE OR REPLACE FUNCTION pubsub.drop_range(topic int, part int, first_offset bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TABLE pubsub.log_%s_%s_%s', topic, part, first_offset);
    EXECUTE format('DROP FUNCTION IF EXISTS pubsub.holds_%s_%s_%s(bigint)', topic, part, first_offset);
    DELETE FROM pubsub.ranges AS r
     WHERE r.topic_id = topic AND r.partition = part AND r.first_offset = drop_range.first_offset;
END $$;

-- Ends the open range at the log's end and makes the next one, so that retention can drop what is in it. Returns where it
-- ended; NULL: there is no record in it. Waits at most 200 ms for readers, because appends wait meanwhile; then it fails
-- with lock_not_available, and can be tried again.
CREATE OR REPLACE FUNCTION pubsub.close_range(topic int, part int) RETURNS bigint
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
DECLARE
    upto bigint;
    opened bigint;
    spare bigint;
BEGIN
    -- The counter before the tables, in the order in which appends take them. From here on nothing is appended, so that
    -- the end of the log stays where the new boundary will be.
    SELECT p.next_offset INTO upto FROM pubsub.partitions AS p
     WHERE p.topic_id = topic AND p.partition = part FOR UPDATE;
    SELECT r.first_offset INTO opened FROM pubsub.ranges AS r
     WHERE r.topic_id = topic AND r.partition = part AND r.first_offset < upto AND r.end_offset > upto;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- Those that were made ahead are empty, and begin where the open one no longer reaches.
    FOR spare IN SELECT r.first_offset FROM pubsub.ranges AS r
                  WHERE r.topic_id = topic AND r.partition = part AND r.first_offset >= upto ORDER BY 1 LOOP
        PERFORM pubsub.drop_range(topic, part, spare);
    END LOOP;
    EXECUTE format('ALTER TABLE pubsub.log_%1$s_%2$s DETACH PARTITION pubsub.log_%1$s_%2$s_%3$s', topic, part, opened);
    PERFORM pubsub.say_bounds(topic, part, opened, upto);
    EXECUTE format('ALTER TABLE pubsub.log_%1$s_%2$s ATTACH PARTITION pubsub.log_%1$s_%2$s_%3$s '
        'FOR VALUES FROM (%3$s) TO (%4$s)', topic, part, opened, upto);
    UPDATE pubsub.ranges AS r SET end_offset = upto
     WHERE r.topic_id = topic AND r.partition = part AND r.first_offset = opened;
    UPDATE pubsub.partitions AS p SET made_until = upto, make_at = upto
     WHERE p.topic_id = topic AND p.partition = part;
    PERFORM pubsub.make_ranges(topic, part);
    RETURN upto;
END $$;

-- Whether retention wants a boundary at the log's end: the open range spans more than an eighth of what is kept, or
-- more records than the topic says by now. Ranges that groups hold back are not cut for ever.
CREATE OR REPLACE FUNCTION pubsub.wants_boundary(kept pubsub.topics, part int) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
    opened bigint;
    upto bigint;
    first_at timestamptz;
BEGIN
    SELECT r.first_offset, p.next_offset INTO opened, upto
      FROM pubsub.partitions AS p JOIN pubsub.ranges AS r USING (topic_id, partition)
     WHERE p.topic_id = kept.topic_id AND p.partition = part
       AND r.first_offset < p.next_offset AND r.end_offset > p.next_offset;
    IF NOT FOUND OR (SELECT count(*) FROM pubsub.ranges AS r WHERE r.topic_id = kept.topic_id AND r.partition = part) > 100
    THEN
        RETURN false;
    END IF;
    EXECUTE format('SELECT appended_at FROM pubsub.log_%s_%s_%s ORDER BY base_offset LIMIT 1',
        kept.topic_id, part, opened) INTO first_at;
    RETURN first_at IS NOT NULL AND (
        coalesce(first_at < clock_timestamp() - kept.retention_ms * interval '1 millisecond' / 8, false)
        OR coalesce(pg_total_relation_size(format('pubsub.log_%s_%s_%s', kept.topic_id, part, opened)::regclass)
                    > pubsub.range_bytes(kept.retention_bytes), false)
        OR upto - opened > kept.range_records);
END $$;

-- What each partition of a topic takes on disk, and since when its oldest record is there.
CREATE OR REPLACE FUNCTION pubsub.kept(topic text)
RETURNS TABLE (partition int, records bigint, bytes bigint, ranges int, oldest_at timestamptz)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    target CONSTANT pubsub.topics := pubsub.topic_named(topic);
    first_offset bigint;
BEGIN
    FOR partition, first_offset, records, bytes, ranges IN
        SELECT p.partition, p.first_offset, p.next_offset - p.first_offset,
               coalesce(sum(pg_total_relation_size(to_regclass(format(
                   'pubsub.log_%s_%s_%s', r.topic_id, r.partition, r.first_offset)))), 0)::bigint, count(r.first_offset)
          FROM pubsub.partitions AS p LEFT JOIN pubsub.ranges AS r USING (topic_id, partition)
         WHERE p.topic_id = target.topic_id GROUP BY p.topic_id, p.partition ORDER BY p.partition
    LOOP
        EXECUTE format('SELECT appended_at FROM pubsub.log_%s_%s WHERE base_offset + count > $1 ORDER BY base_offset LIMIT 1',
            target.topic_id, partition) INTO oldest_at USING first_offset;
        RETURN NEXT;
    END LOOP;
END $$;
