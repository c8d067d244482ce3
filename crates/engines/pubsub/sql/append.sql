-- Appending: one function per partition with static statements, so that their plans stay cached,
-- and the slow ways that it falls back on.

-- Why the counter's row was not there: says it as an error.
CREATE OR REPLACE FUNCTION pubsub.refuse_append(topic int, part int, expected_epoch bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    has bigint;
BEGIN
    SELECT epoch INTO has FROM pubsub.partitions WHERE topic_id = topic AND partition = part;
    IF has IS NULL THEN
        RAISE EXCEPTION 'there is no topic % with partition %', topic, part USING ERRCODE = 'DP001';
    END IF;
    RAISE EXCEPTION 'partition % of topic % is at epoch %, not %', part, topic, has, expected_epoch
        USING ERRCODE = 'DP004';
END $$;

-- The offset of a producer's record that is in the log already; -1 when it lies more than 2000 rows
-- back.
CREATE OR REPLACE FUNCTION pubsub.offset_of_sequence(
    topic int, part int, producer bigint, wanted bigint, upper_offset bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    row_base bigint;
    runs bigint[];
    relative bigint;
BEGIN
    FOR row_base, runs IN EXECUTE format(
        'SELECT base_offset, runs FROM pubsub.log_%s_%s WHERE base_offset <= $1 ORDER BY base_offset DESC LIMIT 2000',
        topic, part) USING upper_offset
    LOOP
        relative := 0;
        FOR i IN 1 .. cardinality(runs) BY 3 LOOP
            IF runs[i] = producer AND wanted >= runs[i + 1] AND wanted < runs[i + 1] + runs[i + 2] THEN
                RETURN row_base + relative + wanted - runs[i + 1];
            END IF;
            relative := relative + runs[i + 2];
        END LOOP;
    END LOOP;
    RETURN -1;
END $$;

-- Refuses an id that no producer was given: new_producer will give it to another one some day.
-- Negative ids stand for names.
CREATE OR REPLACE FUNCTION pubsub.refuse_stranger(producer bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF producer = 0 OR producer > (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM pubsub.producer_ids AS s)
    THEN
        RAISE EXCEPTION 'producer % is not an id that new_producer gave', producer USING ERRCODE = 'DP011';
    END IF;
END $$;

-- Whether a sequence is the first one of an epoch that comes after the last record's. A sequence
-- has the producer's epoch above its lowest 48 bits. A producer that raises its epoch counts from 0
-- again, and what it had sent before is refused from then on: only producers of Kafka's protocol do
-- that, all others stay in epoch 0.
CREATE OR REPLACE FUNCTION pubsub.begins_epoch(first bigint, last_known bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT first & ((1::bigint << 48) - 1) = 0 AND first >> 48 > coalesce(last_known, -1) >> 48 $$;

-- Advances the sequences of several producers, or none of them. NULL: all advanced. Else, by
-- producer: the offset of the first record of a duplicate (-1: no longer known), NULL for what
-- would have been new. The caller holds the partition's row, so no other session moves these
-- sequences.
CREATE OR REPLACE FUNCTION pubsub.advance_producers(
    topic int, part int, base bigint,
    ids bigint[], firsts bigint[], lasts bigint[], relatives bigint[]) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    given record;
    known bigint[] := '{}';
    duplicates int := 0;
BEGIN
    FOR given IN
        SELECT d.*, p.sequence, p.last_base, p.last_first
          FROM unnest(ids, firsts, lasts) WITH ORDINALITY AS d (id, first, last, at)
          LEFT JOIN pubsub.producers AS p
            ON p.topic_id = topic AND p.partition = part AND p.producer_id = d.id
         ORDER BY d.at
    LOOP
        IF given.sequence IS NULL THEN
            PERFORM pubsub.refuse_stranger(given.id);
        END IF;
        IF given.first = coalesce(given.sequence + 1, 0) OR pubsub.begins_epoch(given.first, given.sequence) THEN
            known := known || NULL::bigint;
        ELSIF given.last <= given.sequence AND given.first >> 48 = given.sequence >> 48 THEN
            duplicates := duplicates + 1;
            known := known || CASE
                WHEN given.first >= given.last_first THEN given.last_base + given.first - given.last_first
                ELSE pubsub.offset_of_sequence(topic, part, given.id, given.first, given.last_base) END;
        ELSE
            RAISE EXCEPTION 'producer % sent sequences % to % to partition % of topic %, where its next one is %',
                given.id, given.first, given.last, part, topic, coalesce(given.sequence + 1, 0)
                USING ERRCODE = 'DP005';
        END IF;
    END LOOP;
    IF duplicates > 0 THEN
        RETURN known;
    END IF;
    INSERT INTO pubsub.producers AS p (topic_id, partition, producer_id, sequence, last_base, last_first)
        SELECT topic, part, d.id, d.last, base + d.relative, d.first
          FROM unnest(ids, firsts, lasts, relatives) AS d (id, first, last, relative)
        ON CONFLICT (topic_id, partition, producer_id) DO UPDATE
           SET sequence = excluded.sequence, last_base = excluded.last_base,
               last_first = excluded.last_first, seen_at = excluded.seen_at;
    RETURN NULL;
END $$;

-- The function that appends to one partition. Its arrays describe producers' runs (the first five),
-- rows, and within rows whose records they hold: run_values[run_from[i]:run_to[i]] is the row's
-- list. Bodies come joined and are cut here: an array of them would be copied twice more on its way
-- to the table.
CREATE OR REPLACE FUNCTION pubsub.make_append(topic int, part int) RETURNS void
LANGUAGE plpgsql AS $make$
DECLARE
    template CONSTANT text := $template$
CREATE OR REPLACE FUNCTION pubsub.append_{t}_{p}(
    expected_epoch bigint,
    producers bigint[], first_sequences bigint[], last_sequences bigint[], relatives bigint[],
    row_relatives bigint[], counts int[], first_times bigint[], last_times bigint[],
    run_from int[], run_to int[], run_values bigint[],
    row_flags smallint[], crcs int[], body_ends int[], bodies bytea,
    OUT base_offset bigint, OUT known bigint[], OUT appended_at timestamptz)
LANGUAGE plpgsql AS $append$
DECLARE
    total CONSTANT bigint := row_relatives[cardinality(row_relatives)] + counts[cardinality(counts)];
    range_at bigint;
    awaited_at bigint;
    latest_before bigint;
BEGIN
    UPDATE pubsub.partitions AS s SET next_offset = s.next_offset + total, span_latest_before = s.span_latest,
           span_latest = greatest(s.span_latest, (SELECT max(given) FROM unnest(last_times) AS given))
     WHERE s.topic_id = {t} AND s.partition = {p} AND (expected_epoch = 0 OR s.epoch = expected_epoch)
    RETURNING s.next_offset - total, s.make_at, s.awaited, s.span_latest_before
         INTO base_offset, range_at, awaited_at, latest_before;
    IF NOT FOUND THEN
        PERFORM pubsub.refuse_append({t}, {p}, expected_epoch);
    END IF;
    IF cardinality(producers) = 1 THEN
        UPDATE pubsub.producers AS s
           SET sequence = last_sequences[1], last_base = base_offset + relatives[1],
               last_first = first_sequences[1], seen_at = now()
         WHERE s.topic_id = {t} AND s.partition = {p} AND s.producer_id = producers[1]
           AND s.sequence = first_sequences[1] - 1;
    END IF;
    IF cardinality(producers) > 1 OR (cardinality(producers) = 1 AND NOT FOUND) THEN
        known := pubsub.advance_producers(
            {t}, {p}, base_offset, producers, first_sequences, last_sequences, relatives);
        IF known IS NOT NULL THEN
            UPDATE pubsub.partitions AS s SET next_offset = base_offset, span_latest = latest_before
             WHERE s.topic_id = {t} AND s.partition = {p};
            base_offset := NULL;
            RETURN;
        END IF;
    END IF;
    IF base_offset + total > range_at THEN
        PERFORM pubsub.make_ranges({t}, {p});
    END IF;
    appended_at := clock_timestamp();
    INSERT INTO pubsub.log_{t}_{p}
        (base_offset, count, first_time, last_time, span_latest, appended_at, runs, flags, crc, bytes, body)
    SELECT append_{t}_{p}.base_offset + row_relatives[i], counts[i], first_times[i], last_times[i],
           greatest(latest_before, max(last_times[i]) OVER (ORDER BY i)), append_{t}_{p}.appended_at,
           run_values[run_from[i] : run_to[i]], row_flags[i], crcs[i], body_ends[i] - coalesce(body_ends[i - 1], 0),
           substr(bodies, coalesce(body_ends[i - 1], 0) + 1, body_ends[i] - coalesce(body_ends[i - 1], 0))
      FROM generate_series(1, cardinality(counts)) AS i;
    -- Only when a consumer waits, because commits that notify go one after the other. A session
    -- that listens and does not read must not fill the server's queue; consumers that are not told
    -- look for themselves after a while.
    IF awaited_at = base_offset AND pg_notification_queue_usage() < 0.5 THEN
        NOTIFY pubsub_{t}_{p};
    END IF;
END $append$
$template$;
BEGIN
    EXECUTE replace(replace(template, '{t}', topic::text), '{p}', part::text);
END $make$;
