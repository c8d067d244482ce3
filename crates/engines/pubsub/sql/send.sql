-- Sending from any driver. The client that batches by itself calls append_T_P.

-- Packs values into rows that fill a page and appends them to one partition. With a producer's id
-- and the sequence of the first value a repetition appends nothing and returns the same offset. A
-- plan made for each call would copy all bodies into itself as constants.
CREATE OR REPLACE FUNCTION pubsub.append_values(
    topic pubsub.topics, part int, vals bytea[], keys bytea[], headers jsonb[],
    producer bigint, first_sequence bigint) RETURNS bigint
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    n CONSTANT int := cardinality(vals);
    now_us CONSTANT bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    relatives bigint[] := '{}'; counts int[] := '{}'; bodies bytea := ''::bytea; ends int[] := '{}'; crcs int[] := '{}';
    run_values bigint[] := '{}';
    body bytea := ''::bytea;
    packed bytea;
    first int := 1;
    result record;
BEGIN
    FOR i IN 1 .. n + 1 LOOP
        packed := CASE WHEN i <= n THEN pubsub.pack(now_us, keys[i], headers[i], vals[i]) END;
        IF i > first AND (i > n OR length(body) + length(packed) > 8000) THEN
            relatives := relatives || (first - 1)::bigint;
            counts := counts || (i - first);
            bodies := bodies || body;
            ends := ends || length(bodies);
            crcs := crcs || pubsub.body_crc(body);
            run_values := run_values
                || ARRAY[coalesce(producer, 0), coalesce(first_sequence, 0) + first - 1, i - first]::bigint[];
            body := ''::bytea;
            first := i;
        END IF;
        body := body || packed;
    END LOOP;
    EXECUTE format('SELECT base_offset, known FROM pubsub.append_%s_%s(0, $1, $2, $3, $4, $5, $6, $7, $8, $9, '
        '$10, $11, $12, $13, $14, $15)', topic.topic_id, part)
    INTO result
    USING CASE WHEN producer IS NULL THEN '{}' ELSE ARRAY[producer] END, ARRAY[first_sequence],
        ARRAY[first_sequence + n - 1], ARRAY[0]::bigint[], relatives, counts,
        array_fill(now_us, ARRAY[cardinality(counts)]), array_fill(now_us, ARRAY[cardinality(counts)]),
        (SELECT array_agg(at * 3 - 2) FROM generate_series(1, cardinality(counts)) AS at),
        (SELECT array_agg(at * 3) FROM generate_series(1, cardinality(counts)) AS at), run_values,
        array_fill(0::smallint, ARRAY[cardinality(counts)]), crcs, ends, bodies;
    RETURN coalesce(result.base_offset, result.known[1]);
END $$;

-- A partition of the topic: the one asked for, the key's, or any.
CREATE OR REPLACE FUNCTION pubsub.choose_partition(topic pubsub.topics, part int, key bytea) RETURNS int
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    chosen int;
BEGIN
    IF part < 0 OR part >= topic.partitions THEN
        RAISE EXCEPTION 'topic % has partitions 0 to %, and not %', quote_literal(topic.name),
            topic.partitions - 1, part USING ERRCODE = 'DP001';
    END IF;
    chosen := coalesce(part, pubsub.partition_of_key(topic, key));
    IF topic.share IS NULL THEN
        RETURN coalesce(chosen, floor(random() * topic.partitions)::int);
    END IF;
    -- Some are on other servers: without a key any of those that are here will do.
    PERFORM pubsub.refuse_elsewhere(topic, chosen);
    RETURN coalesce(chosen, (SELECT p.partition FROM pubsub.partitions AS p WHERE p.topic_id = topic.topic_id
                              ORDER BY random() LIMIT 1));
END $$;

-- Sends one record and returns its offset; the partition comes with it.
CREATE OR REPLACE FUNCTION pubsub.send(
    topic text, value bytea, key bytea DEFAULT NULL, headers jsonb DEFAULT NULL, part int DEFAULT NULL,
    OUT partition int, OUT message_offset bigint)
LANGUAGE plpgsql AS $$
DECLARE
    target CONSTANT pubsub.topics := pubsub.topic_named(topic);
BEGIN
    partition := pubsub.choose_partition(target, part, key);
    message_offset := pubsub.append_values(
        target, partition, ARRAY[value], ARRAY[key], ARRAY[headers], NULL, NULL);
END $$;

-- Sends many records in one transaction; one row of the result per partition that got some. Without
-- a key and a partition all of them go to one partition, so that rows are full.
CREATE OR REPLACE FUNCTION pubsub.send_batch(
    topic text, vals bytea[], keys bytea[] DEFAULT NULL, headers jsonb[] DEFAULT NULL, part int DEFAULT NULL,
    producer bigint DEFAULT NULL, first_sequence bigint DEFAULT NULL)
RETURNS TABLE (partition int, first_offset bigint, records int)
LANGUAGE plpgsql AS $$
DECLARE
    target CONSTANT pubsub.topics := pubsub.topic_named(topic);
    keyless CONSTANT int := pubsub.choose_partition(target, part, NULL);
    mine_values bytea[]; mine_keys bytea[]; mine_headers jsonb[];
BEGIN
    IF (producer IS NULL) <> (first_sequence IS NULL) OR (producer IS NOT NULL AND part IS NULL) THEN
        RAISE EXCEPTION 'a producer needs a sequence and a partition: sequences count per partition'
            USING ERRCODE = 'DP011';
    END IF;
    -- Negative ids stand for names. Producers with names call the functions of partitions, and what
    -- is sent here under the id of one would take its sequences.
    IF producer <= 0 THEN
        RAISE EXCEPTION 'producer % is not an id that new_producer gave', producer USING ERRCODE = 'DP011';
    END IF;
    FOR partition, mine_values, mine_keys, mine_headers IN
        SELECT coalesce(part, pubsub.partition_of_key(target, v.key), keyless) AS chosen,
               array_agg(v.value ORDER BY v.at), array_agg(v.key ORDER BY v.at), array_agg(v.header ORDER BY v.at)
          FROM unnest(vals, coalesce(keys, '{}'), coalesce(headers, '{}')) WITH ORDINALITY
               AS v (value, key, header, at)
         GROUP BY chosen ORDER BY chosen
    LOOP
        PERFORM pubsub.refuse_elsewhere(target, partition);
        first_offset := pubsub.append_values(
            target, partition, mine_values, mine_keys, mine_headers, producer, first_sequence);
        records := cardinality(mine_values);
        RETURN NEXT;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION pubsub.new_producer() RETURNS bigint
LANGUAGE sql AS $$ SELECT nextval('pubsub.producer_ids') $$;
