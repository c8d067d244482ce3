-- Finding records by the time at which their producers made them. Such times need not grow with the offset; the latest one of a
-- span up to a row does (tables_7.sql).

-- Where the first row begins, or what is left of it from an offset on, that has a record which its producer made at this time
-- or later; NULL if there is none. Of each span the last row is read, and of one of them as many as halving it takes. Rows
-- are read one after the other only in spans from before version 7, and in one whose beginning is not to be read while a
-- record there is late enough: what the rows behind it have is then not known from the latest time up to them.
CREATE OR REPLACE FUNCTION pubsub.row_from_time(topic int, part int, time_us bigint, from_offset bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    lowest bigint;
    span_first bigint;
    span_end bigint;
    found_at bigint;
BEGIN
    SELECT greatest(from_offset, p.first_offset) INTO lowest FROM pubsub.partitions AS p
     WHERE p.topic_id = topic AND p.partition = part;
    FOR span_first, span_end IN
        SELECT s.first_offset, lead(s.first_offset, 1, p.next_offset) OVER (ORDER BY s.first_offset)
          FROM pubsub.time_spans AS s JOIN pubsub.partitions AS p USING (topic_id, partition)
         WHERE s.topic_id = topic AND s.partition = part ORDER BY s.first_offset
    LOOP
        IF span_end > greatest(span_first, lowest) THEN
            found_at := pubsub.row_of_span(topic, part, time_us, lowest, span_first, span_end);
            EXIT WHEN found_at IS NOT NULL;
        END IF;
    END LOOP;
    -- The row may begin before what is to be read.
    RETURN CASE WHEN found_at IS NOT NULL THEN greatest(found_at, lowest) END;
END $$;

-- The last row of a span that begins before an offset: where it begins and ends, its own latest time, and that of the span up
-- to it.
CREATE OR REPLACE FUNCTION pubsub.row_before(
    topic int, part int, span_first bigint, before bigint,
    OUT base bigint, OUT row_end bigint, OUT own_latest bigint, OUT latest bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    -- A row has 65535 records at most, which bounds the look back.
    EXECUTE format('SELECT base_offset, base_offset + count, last_time, span_latest FROM pubsub.log_%s_%s '
        'WHERE base_offset >= $1 AND base_offset < $2 ORDER BY base_offset DESC LIMIT 1', topic, part)
       INTO base, row_end, own_latest, latest USING greatest(span_first, before - 65535), before;
END $$;

-- The first row of one span that ends behind the lowest offset and is late enough.
CREATE OR REPLACE FUNCTION pubsub.row_of_span(
    topic int, part int, time_us bigint, lowest bigint, span_first bigint, span_end bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    at record := pubsub.row_before(topic, part, span_first, span_end);
    low bigint;
    high bigint := at.base;
    found_at bigint;
BEGIN
    IF at.base IS NULL OR at.row_end <= lowest OR at.latest < time_us THEN
        RETURN NULL;
    END IF;
    at := pubsub.row_before(topic, part, span_first, greatest(lowest, span_first) + 1);
    IF at.own_latest >= time_us THEN
        RETURN at.base;
    END IF;
    low := at.row_end;
    -- NULL: rows of earlier versions do not know it.
    IF (at.latest >= time_us) IS NOT FALSE THEN
        EXECUTE format('SELECT base_offset FROM pubsub.log_%s_%s WHERE last_time >= $1 AND base_offset >= $2 '
            'AND base_offset < $3 ORDER BY base_offset LIMIT 1', topic, part) INTO found_at USING time_us, low, span_end;
        RETURN found_at;
    END IF;
    WHILE low < high LOOP
        at := pubsub.row_before(topic, part, span_first, low + (high - low) / 2 + 1);
        IF at.latest < time_us THEN
            low := at.row_end;
        ELSE
            high := at.base;
        END IF;
    END LOOP;
    RETURN low;
END $$;
