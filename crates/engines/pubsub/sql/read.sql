-- Reading without a group, and finding places in a partition.

CREATE OR REPLACE FUNCTION pubsub.partition_row(topic pubsub.topics, part int) RETURNS pubsub.partitions
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_partition pubsub.partitions;
BEGIN
    SELECT * INTO found_partition FROM pubsub.partitions AS p
     WHERE p.topic_id = topic.topic_id AND p.partition = part;
    IF NOT FOUND THEN
        PERFORM pubsub.refuse_elsewhere(topic, part);
        RAISE EXCEPTION 'topic % has partitions 0 to %, and not %', quote_literal(topic.name),
            topic.partitions - 1, part USING ERRCODE = 'DP001';
    END IF;
    RETURN found_partition;
END $$;

-- Rows of a partition from the one that holds an offset on. A row begins at most 65535 records
-- before the offset that it holds, which bounds the look back.
CREATE OR REPLACE FUNCTION pubsub.messages(topic text, part int, from_offset bigint, to_offset bigint)
RETURNS TABLE (message_offset bigint, "time" timestamptz, appended_at timestamptz,
               key bytea, headers jsonb, value bytea)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    target CONSTANT pubsub.topics := pubsub.topic_named(topic);
    place CONSTANT pubsub.partitions := pubsub.partition_row(target, part);
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT m.message_offset, m."time", r.appended_at, m.key, m.headers, m.value '
        '  FROM pubsub.log_%1$s_%2$s AS r, pubsub.unpack(r.base_offset, r.flags, r.body) AS m '
        ' WHERE r.base_offset >= coalesce((SELECT max(base_offset) FROM pubsub.log_%1$s_%2$s '
        '                                   WHERE base_offset <= $1 AND base_offset > $1 - 65536), $1) '
        '   AND r.base_offset < $2 AND m.message_offset >= $1 AND m.message_offset < $2 '
        ' ORDER BY r.base_offset, m.message_offset', place.topic_id, part)
    USING greatest(from_offset, place.first_offset), to_offset;
END $$;

-- The offset of the first row that was appended at this time or later; the end of the log when
-- there is none. appended_at grows with the offset, so that a search by halves finds it.
CREATE OR REPLACE FUNCTION pubsub.offset_at(topic text, part int, moment timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    target CONSTANT pubsub.topics := pubsub.topic_named(topic);
    place CONSTANT pubsub.partitions := pubsub.partition_row(target, part);
    low bigint := place.first_offset;
    high bigint := place.next_offset;
    middle bigint;
    base bigint;
    row_end bigint;
    row_at timestamptz;
BEGIN
    WHILE low < high LOOP
        middle := low + (high - low) / 2;
        EXECUTE format('SELECT base_offset, base_offset + count, appended_at FROM pubsub.log_%s_%s '
            'WHERE base_offset <= $1 AND base_offset > $1 - 65536 ORDER BY base_offset DESC LIMIT 1',
            place.topic_id, part) INTO base, row_end, row_at USING middle;
        IF row_at IS NULL OR row_at < moment THEN
            low := greatest(coalesce(row_end, middle + 1), middle + 1);
        ELSE
            high := least(base, middle);
        END IF;
    END LOOP;
    RETURN low;
END $$;

-- Refuses what is not a place to begin.
CREATE OR REPLACE FUNCTION pubsub.check_start(start text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF start IS NULL OR start !~ '^(earliest|latest|offset:[0-9]{1,18}|time:-?[0-9]{1,17})$' THEN
        RAISE EXCEPTION 'start % is not one of earliest, latest, offset:N, time:MICROSECONDS',
            coalesce(quote_literal(start), 'null') USING ERRCODE = 'DP011';
    END IF;
END $$;

-- Where a group or a reader begins: earliest, latest, offset:N, or time:MICROSECONDS since 1970.
CREATE OR REPLACE FUNCTION pubsub.offset_of_start(topic text, part int, start text) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    place CONSTANT pubsub.partitions := pubsub.partition_row(pubsub.topic_named(topic), part);
    at bigint;
BEGIN
    PERFORM pubsub.check_start(start);
    IF start = 'earliest' THEN
        RETURN place.first_offset;
    ELSIF start = 'latest' THEN
        RETURN place.next_offset;
    ELSIF start LIKE 'time:%' THEN
        RETURN pubsub.offset_at(topic, part,
            timestamptz 'epoch' + substring(start FROM 6)::bigint * interval '1 microsecond');
    END IF;
    at := substring(start FROM 8)::bigint;
    IF at <= place.next_offset THEN
        RETURN at;
    END IF;
    -- Numbers above this one are times after the year 1972, in microseconds. No log is that long.
    IF at > 100000000000000 THEN
        RAISE EXCEPTION 'offset % is beyond the end of partition % of topic %, which is at %', at, part,
            quote_literal(topic), place.next_offset
            USING ERRCODE = 'DP006', HINT = format('A time in microseconds is written time:%s.', at);
    END IF;
    RAISE EXCEPTION 'offset % is beyond the end of partition % of topic %, which is at %', at, part,
        quote_literal(topic), place.next_offset USING ERRCODE = 'DP006';
END $$;

-- Whether to wait for more than an offset, having said LISTEN pubsub_TOPIC_PARTITION before: the
-- append that begins there will notify. False: more is there already. A crash of the server may
-- forget it, together with all that wait. An offset beyond the end is refused: no append begins
-- there before others end there.
CREATE OR REPLACE FUNCTION pubsub.await(topic int, part int, at bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    place pubsub.partitions;
BEGIN
    SELECT * INTO place FROM pubsub.partitions AS p WHERE p.topic_id = topic AND p.partition = part;
    IF place.topic_id IS NULL THEN
        RAISE EXCEPTION 'there is no topic % with partition %', topic, part USING ERRCODE = 'DP001';
    END IF;
    IF at > place.next_offset THEN
        RAISE EXCEPTION 'offset % is beyond the end of partition % of topic %, which is at %', at, part, topic,
            place.next_offset USING ERRCODE = 'DP006';
    END IF;
    IF place.next_offset <> at OR place.awaited = at THEN
        RETURN place.next_offset = at;
    END IF;
    UPDATE pubsub.partitions AS p SET awaited = at
     WHERE p.topic_id = topic AND p.partition = part AND p.next_offset = at;
    RETURN FOUND;
END $$;
