-- Retention: whole ranges are dropped, nothing is ever deleted row by row. The open range is ended early where it spans too
-- much of what is kept (ranges.sql). Records can also be deleted by hand, up to an offset: they are not read from then on,
-- and the ranges that hold nothing else are dropped.

-- Whether a partition's oldest range may go, and where the log begins then. NULL: it stays.
CREATE OR REPLACE FUNCTION pubsub.first_after_oldest(topic pubsub.topics, part int, oldest bigint, range_end bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    last_end bigint;
    last_at timestamptz;
    held_bytes bigint;
    first_needed bigint;
BEGIN
    -- The last row may reach into the next range: the log begins after all of it.
    EXECUTE format('SELECT base_offset + count, appended_at FROM pubsub.log_%s_%s_%s '
        'ORDER BY base_offset DESC LIMIT 1', topic.topic_id, part, oldest) INTO last_end, last_at;
    IF NOT EXISTS (SELECT FROM pubsub.partitions AS p WHERE p.topic_id = topic.topic_id AND p.partition = part
                      AND p.next_offset >= range_end) THEN
        RETURN NULL;
    END IF;
    -- A range in which no row begins: the row before it reached over it, and went with its own range.
    IF last_end IS NULL THEN
        RETURN range_end;
    END IF;
    -- All of it was deleted, whatever groups have not read.
    IF EXISTS (SELECT FROM pubsub.partitions AS p WHERE p.topic_id = topic.topic_id AND p.partition = part
                  AND p.first_offset >= last_end) THEN
        RETURN last_end;
    END IF;
    IF topic.retain_for_groups THEN
        SELECT least(
            (SELECT min(a.committed) FROM pubsub.assignments AS a JOIN pubsub.groups AS g USING (group_id)
              WHERE g.topic_id = topic.topic_id AND a.partition = part),
            (SELECT min(o.committed) FROM pubsub.kafka_offsets AS o
              WHERE o.topic_id = topic.topic_id AND o.partition = part)) INTO first_needed;
        IF first_needed < last_end THEN
            RETURN NULL;
        END IF;
    END IF;
    IF last_at < clock_timestamp() - topic.retention_ms * interval '1 millisecond' THEN
        RETURN last_end;
    END IF;
    -- The newest records stay: a range that became larger than the limit goes when there is a later one.
    IF topic.retention_bytes IS NOT NULL AND EXISTS (
        SELECT FROM pubsub.partitions AS p WHERE p.topic_id = topic.topic_id AND p.partition = part
           AND p.next_offset > last_end) THEN
        SELECT sum(pg_total_relation_size(format('pubsub.log_%s_%s_%s', r.topic_id, r.partition, r.first_offset)::regclass))
          INTO held_bytes FROM pubsub.ranges AS r WHERE r.topic_id = topic.topic_id AND r.partition = part;
        IF held_bytes > topic.retention_bytes THEN
            RETURN last_end;
        END IF;
    END IF;
    RETURN NULL;
END $$;

-- Drops a partition's oldest range where retention says so, and returns the first offset that is then left
-- (NULL: nothing was dropped). It waits at most 200 ms for readers of that range, because appends wait meanwhile;
-- then it fails with lock_not_available, and can be tried again.
CREATE OR REPLACE FUNCTION pubsub.drop_oldest_range(topic pubsub.topics, part int) RETURNS bigint
LANGUAGE plpgsql SET lock_timeout = '200ms' AS $$
DECLARE
    oldest bigint;
    range_end bigint;
    left_from bigint;
BEGIN
    SELECT r.first_offset, r.end_offset INTO oldest, range_end FROM pubsub.ranges AS r
     WHERE r.topic_id = topic.topic_id AND r.partition = part ORDER BY r.first_offset LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    left_from := pubsub.first_after_oldest(topic, part, oldest, range_end);
    IF left_from IS NULL THEN
        RETURN NULL;
    END IF;
    -- The counter before the table, in the order in which appends take them.
    UPDATE pubsub.partitions AS p SET first_offset = greatest(p.first_offset, left_from)
     WHERE p.topic_id = topic.topic_id AND p.partition = part RETURNING p.first_offset INTO left_from;
    PERFORM pubsub.drop_range(topic.topic_id, part, oldest);
    -- Spans of times that end before what is left have no rows any more.
    DELETE FROM pubsub.time_spans AS s
     WHERE s.topic_id = topic.topic_id AND s.partition = part AND s.first_offset < (
            SELECT max(l.first_offset) FROM pubsub.time_spans AS l
             WHERE l.topic_id = topic.topic_id AND l.partition = part AND l.first_offset <= left_from);
    RETURN left_from;
END $$;

-- Applies retention to one partition. Its locks are held until the caller's transaction ends, and appends to the partition
-- wait for that. A caller that maintains many partitions calls this for each in a transaction of its own.
CREATE OR REPLACE FUNCTION pubsub.maintain_partition(topic text, part int)
RETURNS TABLE (first_offset bigint, outcome text)
LANGUAGE plpgsql AS $$
DECLARE
    kept CONSTANT pubsub.topics := pubsub.topic_named(topic);
BEGIN
    BEGIN
        IF pubsub.wants_boundary(kept, part) THEN
            PERFORM pubsub.close_range(kept.topic_id, part);
        END IF;
    EXCEPTION WHEN lock_not_available OR undefined_table THEN
        outcome := 'busy: a reader holds the range, or another call drops it; call again';
        RETURN NEXT;
        RETURN;
    END;
    -- A few at a time: each is several locks.
    FOR i IN 1 .. 100 LOOP
        BEGIN
            first_offset := pubsub.drop_oldest_range(kept, part);
            outcome := 'dropped a range';
        EXCEPTION WHEN lock_not_available OR undefined_table THEN
            -- The table is gone when another call drops it at the same time.
            first_offset := NULL;
            outcome := 'busy: a reader holds the range, or another call drops it; call again';
            RETURN NEXT;
        END;
        EXIT WHEN first_offset IS NULL;
        RETURN NEXT;
    END LOOP;
END $$;

-- The partitions to which retention applies, or in which a reader kept a range from being dropped whose records were deleted.
CREATE OR REPLACE FUNCTION pubsub.maintained() RETURNS TABLE (topic text, partition int)
LANGUAGE sql STABLE AS $$
    SELECT t.name, p.partition FROM pubsub.topics AS t JOIN pubsub.partitions AS p USING (topic_id)
     WHERE t.retention_ms IS NOT NULL OR t.retention_bytes IS NOT NULL
        OR EXISTS (SELECT FROM pubsub.ranges AS r WHERE r.topic_id = p.topic_id AND r.partition = p.partition
                      AND r.end_offset <= p.first_offset)
     ORDER BY t.topic_id, p.partition
$$;

-- Deletes the records of a partition before an offset (NULL: all that are there), and returns the first offset that is left.
-- The log begins there at once. Ranges that hold nothing else are dropped with it, or by maintenance when a reader is in the
-- way; what else was deleted takes room until the rest of its range goes.
CREATE OR REPLACE FUNCTION pubsub.delete_records(topic text, part int, before bigint DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    target CONSTANT pubsub.topics := pubsub.topic_named(topic);
    place pubsub.partitions := pubsub.partition_row(target, part);
    left_from bigint;
BEGIN
    -- The view of an older topic shows all that is in the tables. It is replaced while appends are not held up yet, because
    -- that waits for those who read it.
    IF position('first_offset' IN pg_get_viewdef(
           format('pubsub.%I', pubsub.view_name(target.topic_id, target.name))::regclass)) = 0 THEN
        PERFORM pubsub.make_view(target);
    END IF;
    -- Nothing is appended from here on, so that the end of the log, where all is deleted, stays where it is.
    SELECT * INTO place FROM pubsub.partitions AS p
     WHERE p.topic_id = target.topic_id AND p.partition = part FOR UPDATE;
    IF before < 0 OR before > place.next_offset THEN
        RAISE EXCEPTION 'records before offset % of partition % of topic % cannot be deleted: offsets % to % are there',
            before, part, quote_literal(topic), place.first_offset, place.next_offset USING ERRCODE = 'DP006';
    END IF;
    -- What was deleted before does not come back when a smaller offset is named.
    left_from := greatest(place.first_offset, coalesce(before, place.next_offset));
    UPDATE pubsub.partitions AS p SET first_offset = left_from WHERE p.topic_id = target.topic_id AND p.partition = part;
    IF left_from = place.next_offset THEN
        BEGIN
            PERFORM pubsub.close_range(target.topic_id, part);
        EXCEPTION WHEN lock_not_available THEN
            NULL;  -- A reader holds the range, which takes room until it is full.
        END;
    END IF;
    PERFORM pubsub.maintain_partition(topic, part);
    RETURN left_from;
END $$;

-- Forgets producers that were silent for seven days: one that comes back after that is refused with a sequence gap, and takes
-- a new id. Those with names, whose ids are negative, are kept: forgotten, they would send all again.
CREATE OR REPLACE FUNCTION pubsub.forget_producers() RETURNS void
LANGUAGE sql AS
$$ DELETE FROM pubsub.producers AS p WHERE p.seen_at < now() - interval '7 days' AND p.producer_id > 0 $$;

-- Applies every topic's retention in the caller's transaction, to a few hundred ranges at most. maintain_all does all of it.
CREATE OR REPLACE FUNCTION pubsub.maintain()
RETURNS TABLE (topic text, partition int, first_offset bigint, outcome text)
LANGUAGE plpgsql AS $$
DECLARE
    done int := 0;
BEGIN
    FOR topic, partition IN SELECT * FROM pubsub.maintained() LOOP
        FOR first_offset, outcome IN SELECT * FROM pubsub.maintain_partition(topic, partition) LOOP
            done := done + 1;
            RETURN NEXT;
        END LOOP;
        IF done >= 200 THEN
            first_offset := NULL;
            outcome := 'more may be left: call again';
            RETURN NEXT;
            RETURN;
        END IF;
    END LOOP;
    PERFORM pubsub.forget_producers();
END $$;

-- The same in a transaction for each partition: CALL it outside of one.
CREATE OR REPLACE PROCEDURE pubsub.maintain_all()
LANGUAGE plpgsql AS $$
DECLARE
    topics text[]; parts int[];
BEGIN
    SELECT array_agg(m.topic), array_agg(m.partition) INTO topics, parts FROM pubsub.maintained() AS m;
    FOR i IN 1 .. coalesce(cardinality(topics), 0) LOOP
        -- Dropped meanwhile.
        IF EXISTS (SELECT FROM pubsub.topics AS t WHERE t.name = topics[i]) THEN
            PERFORM pubsub.maintain_partition(topics[i], parts[i]);
        END IF;
        COMMIT;
    END LOOP;
    PERFORM pubsub.forget_producers();
END $$;
