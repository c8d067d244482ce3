-- Topics: creating, changing, dropping.

CREATE OR REPLACE FUNCTION pubsub.topic_named(topic_name text) RETURNS pubsub.topics
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_topic pubsub.topics;
BEGIN
    SELECT * INTO found_topic FROM pubsub.topics AS t WHERE t.name = topic_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no topic %', coalesce(quote_literal(topic_name), 'without a name')
            USING ERRCODE = 'DP001';
    END IF;
    RETURN found_topic;
END $$;

-- Refuses a name that nothing can have.
CREATE OR REPLACE FUNCTION pubsub.check_name(what text, name text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF name IS NULL OR name !~ '^[a-zA-Z0-9._-]{1,100}$' THEN
        RAISE EXCEPTION '% cannot be the name of a %: it is 1 to 100 of the characters a-z, A-Z, 0-9, ".", "_" and "-"',
            quote_nullable(name), what USING ERRCODE = 'DP011';
    END IF;
END $$;

-- Refuses settings that no topic can have. NULL: not set.
CREATE OR REPLACE FUNCTION pubsub.check_settings(
    partitions int, compression text, retention_ms bigint, retention_bytes bigint, range_records bigint) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    wrong text;
BEGIN
    wrong := CASE
        WHEN partitions NOT BETWEEN 1 AND 1000 THEN format('%s partitions are not within 1 and 1000', partitions)
        WHEN compression NOT IN ('none', 'lz4', 'zstd')
            THEN format('compression %L is not one of none, lz4, zstd', compression)
        WHEN retention_ms <= 0 THEN format('retention_ms is %s, and must be above 0', retention_ms)
        WHEN retention_bytes <= 0 THEN format('retention_bytes is %s, and must be above 0', retention_bytes)
        WHEN range_records < 100 THEN format('range_records is %s, and must be 100 at least', range_records) END;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', wrong USING ERRCODE = 'DP011';
    END IF;
END $$;

-- The view's name: identifiers end after 63 bytes, names of topics may be longer.
CREATE OR REPLACE FUNCTION pubsub.view_name(topic int, topic_name text) RETURNS text
LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN length(topic_name) <= 54 THEN 'messages_' || topic_name
               ELSE 'messages_' || left(topic_name, 40) || '_' || topic END $$;

CREATE OR REPLACE FUNCTION pubsub.make_view(topic pubsub.topics) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    parts text;
BEGIN
    SELECT string_agg(format(
        'SELECT %2$s AS partition, m.message_offset, m."time", r.appended_at, m.key, m.headers, m.value '
        'FROM pubsub.log_%1$s_%2$s AS r, pubsub.unpack(r.base_offset, r.flags, r.body) AS m, pubsub.partitions AS p '
        'WHERE p.topic_id = %1$s AND p.partition = %2$s '
        'AND r.base_offset + r.count > p.first_offset AND m.message_offset >= p.first_offset',
        topic.topic_id, n), ' UNION ALL ' ORDER BY n)
      INTO parts FROM (SELECT p.partition FROM pubsub.partitions AS p WHERE p.topic_id = topic.topic_id) AS local (n);
    IF parts IS NULL THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE OR REPLACE VIEW pubsub.%I AS %s',
        pubsub.view_name(topic.topic_id, topic.name), parts);
END $$;

CREATE OR REPLACE FUNCTION pubsub.make_partition(topic int, part int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO pubsub.partitions (topic_id, partition) VALUES (topic, part);
    EXECUTE format('CREATE TABLE pubsub.log_%s_%s ('
        'base_offset bigint PRIMARY KEY, count int NOT NULL, first_time bigint NOT NULL, '
        'last_time bigint NOT NULL, span_latest bigint, appended_at timestamptz NOT NULL, runs bigint[] NOT NULL, '
        'flags smallint NOT NULL, crc int, bytes int NOT NULL, body bytea NOT NULL'
        ') PARTITION BY RANGE (base_offset)', topic, part);
    EXECUTE format('ALTER TABLE pubsub.log_%s_%s ALTER body SET STORAGE EXTERNAL', topic, part);
    PERFORM pubsub.copy_grants(format('pubsub.log_%s_%s', topic, first_part)::regclass,
        format('pubsub.log_%s_%s', topic, part)::regclass)
       FROM (SELECT min(p.partition) FROM pubsub.partitions AS p WHERE p.topic_id = topic) AS other (first_part)
      WHERE first_part < part;
    PERFORM pubsub.make_ranges(topic, part);
    PERFORM pubsub.make_append(topic, part);
END $$;

-- Makes a topic of which these partitions are here.
CREATE OR REPLACE FUNCTION pubsub.make_topic(
    topic_name text, partitions int, compression text, retention_ms bigint, retention_bytes bigint,
    range_records bigint, retain_for_groups boolean, partitioner text, share int, home uuid, parts int[])
RETURNS pubsub.topics
LANGUAGE plpgsql AS $$
DECLARE
    made pubsub.topics;
    part int;
BEGIN
    PERFORM pubsub.check_name('topic', topic_name);
    PERFORM pubsub.check_settings(partitions, compression, retention_ms, retention_bytes, range_records);
    -- Not among the settings that can be changed: keys would move, and with them the order of their
    -- records.
    IF partitioner NOT IN ('fnv1a', 'murmur2') THEN
        RAISE EXCEPTION 'partitioner % is not one of fnv1a, murmur2', quote_literal(partitioner)
            USING ERRCODE = 'DP011';
    END IF;
    BEGIN
        INSERT INTO pubsub.topics
            (name, partitions, compression, retention_ms, retention_bytes, range_records, retain_for_groups,
             partitioner, share, home)
        VALUES (make_topic.topic_name, make_topic.partitions, make_topic.compression,
            make_topic.retention_ms, make_topic.retention_bytes, make_topic.range_records,
            make_topic.retain_for_groups, make_topic.partitioner, make_topic.share, make_topic.home)
        ON CONFLICT (name) DO NOTHING RETURNING * INTO made;
    EXCEPTION WHEN check_violation OR not_null_violation THEN
        RAISE EXCEPTION 'topic % cannot be made: %', coalesce(quote_literal(topic_name), 'without a name'), SQLERRM
            USING ERRCODE = 'DP011';
    END;
    IF made IS NULL THEN
        RAISE EXCEPTION 'there is a topic % already', quote_literal(topic_name) USING ERRCODE = 'DP010';
    END IF;
    FOREACH part IN ARRAY parts LOOP
        PERFORM pubsub.make_partition(made.topic_id, part);
    END LOOP;
    PERFORM pubsub.make_view(made);
    RETURN made;
END $$;

CREATE OR REPLACE FUNCTION pubsub.create_topic(
    topic_name text, partitions int DEFAULT 1, compression text DEFAULT 'none',
    retention_ms bigint DEFAULT NULL, retention_bytes bigint DEFAULT NULL,
    range_records bigint DEFAULT 1000000, retain_for_groups boolean DEFAULT false,
    partitioner text DEFAULT 'fnv1a') RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    made CONSTANT pubsub.topics := pubsub.make_topic(topic_name, partitions, compression, retention_ms,
        retention_bytes, range_records, retain_for_groups, partitioner, NULL, NULL,
        ARRAY(SELECT n FROM generate_series(0, least(partitions, 1000) - 1) AS n));
BEGIN
    RETURN made.topic_id;
END $$;

-- NULL leaves a setting as it is, -1 takes a limit away. Partitions can be added; keys then move.
CREATE OR REPLACE FUNCTION pubsub.alter_topic(
    topic_name text, partitions int DEFAULT NULL, compression text DEFAULT NULL,
    retention_ms bigint DEFAULT NULL, retention_bytes bigint DEFAULT NULL,
    range_records bigint DEFAULT NULL, retain_for_groups boolean DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    had pubsub.topics := pubsub.topic_named(topic_name);
    has pubsub.topics;
BEGIN
    PERFORM pubsub.check_settings(partitions, compression, nullif(retention_ms, -1), nullif(retention_bytes, -1),
        range_records);
    IF alter_topic.partitions < had.partitions THEN
        RAISE EXCEPTION 'topic % has % partitions, and they cannot become %', quote_literal(topic_name),
            had.partitions, alter_topic.partitions USING ERRCODE = 'DP011';
    END IF;
    IF alter_topic.partitions > had.partitions AND had.share IS NOT NULL THEN
        RAISE EXCEPTION 'topic % lies on several clusters, and the number of its partitions stays %',
            quote_literal(topic_name), had.partitions USING ERRCODE = 'DP011';
    END IF;
    BEGIN
        UPDATE pubsub.topics AS t SET
            partitions = coalesce(alter_topic.partitions, t.partitions),
            compression = coalesce(alter_topic.compression, t.compression),
            retention_ms = nullif(coalesce(alter_topic.retention_ms, t.retention_ms), -1),
            retention_bytes = nullif(coalesce(alter_topic.retention_bytes, t.retention_bytes), -1),
            range_records = coalesce(alter_topic.range_records, t.range_records),
            retain_for_groups = coalesce(alter_topic.retain_for_groups, t.retain_for_groups)
        WHERE t.topic_id = had.topic_id RETURNING * INTO has;
    EXCEPTION WHEN check_violation THEN
        RAISE EXCEPTION 'topic % cannot be changed: %', quote_literal(topic_name), SQLERRM USING ERRCODE = 'DP011';
    END;
    IF has.partitions > had.partitions THEN
        -- A group that another session is making at this moment refers to the topic, so this waits
        -- for it, and a group that is made later waits for this.
        PERFORM FROM pubsub.topics AS t WHERE t.topic_id = had.topic_id FOR UPDATE;
        FOR part IN had.partitions .. has.partitions - 1 LOOP
            PERFORM pubsub.make_partition(had.topic_id, part);
            -- Groups that exist read a new partition from its first record, whatever their start
            -- was: all that it gets is sent after they were made. Left to the next heartbeat, a
            -- group that began at the end would skip what is sent until then, and retention would
            -- not know that the group needs it.
            INSERT INTO pubsub.assignments (group_id, partition, committed, claimed_to)
            SELECT g.group_id, part, 0, 0 FROM pubsub.groups AS g WHERE g.topic_id = had.topic_id;
        END LOOP;
        PERFORM pubsub.make_view(has);
    END IF;
END $$;

-- Drops some of a topic's tables, and says whether nothing is left of it. Each call is a
-- transaction of its own where the topic is large, because a table and its indexes are several
-- locks each. The topic can be dropped further after any of them.
CREATE OR REPLACE FUNCTION pubsub.drop_topic_step(topic_name text, most int DEFAULT 20) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    gone CONSTANT pubsub.topics := pubsub.topic_named(topic_name);
    part int;
    first bigint;
    has bigint;
    room bigint := most;
BEGIN
    EXECUTE format('DROP VIEW IF EXISTS pubsub.%I', pubsub.view_name(gone.topic_id, gone.name));
    FOR part IN SELECT p.partition FROM pubsub.partitions AS p WHERE p.topic_id = gone.topic_id ORDER BY 1 DESC LOOP
        SELECT count(*) INTO has FROM pubsub.ranges AS r WHERE r.topic_id = gone.topic_id AND r.partition = part;
        IF has > room AND room < most THEN
            RETURN false;
        END IF;
        -- The counter first, as appends take it: a producer that waits for it finds it gone, or the
        -- log shorter.
        PERFORM FROM pubsub.partitions AS p WHERE p.topic_id = gone.topic_id AND p.partition = part FOR UPDATE;
        FOR first IN SELECT r.first_offset FROM pubsub.ranges AS r
                      WHERE r.topic_id = gone.topic_id AND r.partition = part ORDER BY 1 LIMIT most LOOP
            UPDATE pubsub.partitions AS p SET first_offset = greatest(p.first_offset, least(r.end_offset, p.next_offset))
              FROM pubsub.ranges AS r WHERE p.topic_id = gone.topic_id AND p.partition = part
               AND r.topic_id = gone.topic_id AND r.partition = part AND r.first_offset = first;
            PERFORM pubsub.drop_range(gone.topic_id, part, first);
        END LOOP;
        IF has > most THEN
            RETURN false;
        END IF;
        DELETE FROM pubsub.partitions AS p WHERE p.topic_id = gone.topic_id AND p.partition = part;
        EXECUTE format('DROP FUNCTION IF EXISTS pubsub.append_%s_%s', gone.topic_id, part);
        EXECUTE format('DROP TABLE IF EXISTS pubsub.log_%s_%s', gone.topic_id, part);
        room := room - has;
        IF room <= 0 AND EXISTS (SELECT FROM pubsub.partitions AS p WHERE p.topic_id = gone.topic_id) THEN
            RETURN false;
        END IF;
    END LOOP;
    DELETE FROM pubsub.topics AS t WHERE t.topic_id = gone.topic_id;
    DELETE FROM pubsub.producers AS p WHERE p.topic_id = gone.topic_id;
    DELETE FROM pubsub.chains AS c WHERE c.topic_id = gone.topic_id;
    RETURN true;
END $$;

-- Drops a topic, in the caller's transaction. One that is too large for that is refused with the
-- way to do it, before the server runs out of locks.
CREATE OR REPLACE FUNCTION pubsub.drop_topic(topic_name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    gone CONSTANT pubsub.topics := pubsub.topic_named(topic_name);
    room CONSTANT bigint := current_setting('max_locks_per_transaction')::bigint
        * (current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint);
    needed bigint;
BEGIN
    -- A range is a table, an index, a TOAST table with its index, and a function; a partition has
    -- three objects more.
    SELECT 5 * (SELECT count(*) FROM pubsub.ranges AS r WHERE r.topic_id = gone.topic_id) + 3 * gone.partitions INTO needed;
    IF needed > room * 3 / 4 THEN
        RAISE EXCEPTION 'topic % needs % locks to be dropped in one transaction, and the server has room for %',
            quote_literal(topic_name), needed, room
            USING ERRCODE = 'DP011', HINT = format('CALL pubsub.drop_topic_in_steps(%L)', topic_name);
    END IF;
    WHILE NOT pubsub.drop_topic_step(topic_name) LOOP
    END LOOP;
END $$;

-- Drops a topic of any size, in transactions of its own: CALL it outside of one. When it is
-- interrupted, call it again.
CREATE OR REPLACE PROCEDURE pubsub.drop_topic_in_steps(topic_name text)
LANGUAGE plpgsql AS $$
BEGIN
    WHILE NOT pubsub.drop_topic_step(topic_name) LOOP
        COMMIT;
    END LOOP;
END $$;
