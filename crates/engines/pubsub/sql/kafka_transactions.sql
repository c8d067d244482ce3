-- Transactions of Kafka's producers. What a producer sends is kept aside until it commits. Then it
-- is appended, and the offsets of its groups are stored, in one transaction of PostgreSQL. So the
-- log never has a record that may still be taken back, and every reader reads what is committed.
-- Functions return an error of Kafka's protocol, or 0: 45 a sequence that does not follow, 47 and
-- 90 a producer that a later one has replaced, 48 no transaction is under way, 49 another producer
-- has the name, 18 more than a transaction may hold, 3 there is no such partition.

-- Throws away what a producer has sent since its last commit.
CREATE OR REPLACE FUNCTION pubsub.kafka_forget_staged(producer bigint) RETURNS void
LANGUAGE sql AS $$ DELETE FROM pubsub.kafka_open WHERE producer_id = producer $$;

-- Why a request of this producer is refused; 0 if it is not.
CREATE OR REPLACE FUNCTION pubsub.kafka_producer_error(known pubsub.kafka_transactions, producer bigint, epoch int)
RETURNS int
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN known.producer_id IS DISTINCT FROM producer THEN 49
                WHEN known.producer_epoch <> epoch THEN 90 ELSE 0 END
$$;

-- Ends what is under way and gives the producer a new epoch, so that a process which still uses the
-- old one is refused. After the last epoch it gets a new id.
CREATE OR REPLACE FUNCTION pubsub.kafka_next_epoch(
    transactional text, OUT producer_id bigint, OUT producer_epoch int)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pubsub.kafka_forget_staged(t.producer_id) FROM pubsub.kafka_transactions AS t
      WHERE t.transactional_id = transactional;
    UPDATE pubsub.kafka_transactions AS t
       SET producer_id = CASE WHEN t.producer_epoch < 32766 THEN t.producer_id ELSE nextval('pubsub.producer_ids') END,
           producer_epoch = CASE WHEN t.producer_epoch < 32766 THEN t.producer_epoch + 1 ELSE 0 END,
           begun_at = NULL, committed = NULL, used_at = clock_timestamp()
     WHERE t.transactional_id = transactional
    RETURNING t.producer_id, t.producer_epoch INTO kafka_next_epoch.producer_id, kafka_next_epoch.producer_epoch;
END $$;

-- A producer begins, or begins anew. One that knows its id and epoch raises the epoch after an
-- error.
CREATE OR REPLACE FUNCTION pubsub.kafka_init_producer(
    transactional text, timeout_ms bigint, had_id bigint, had_epoch int,
    OUT error int, OUT producer_id bigint, OUT producer_epoch int)
LANGUAGE plpgsql AS $$
DECLARE
    known pubsub.kafka_transactions;
BEGIN
    error := 0;
    IF NOT EXISTS (SELECT FROM pubsub.kafka_transactions AS t WHERE t.transactional_id = transactional) THEN
        INSERT INTO pubsub.kafka_transactions (transactional_id, producer_id, producer_epoch, timeout_ms)
            VALUES (transactional, nextval('pubsub.producer_ids'), -1, kafka_init_producer.timeout_ms)
            ON CONFLICT (transactional_id) DO NOTHING;
    END IF;
    SELECT * INTO STRICT known FROM pubsub.kafka_transactions AS t WHERE t.transactional_id = transactional FOR UPDATE;
    -- The epoch before the present one: the answer to the last attempt got lost, unless records
    -- came since.
    IF had_id = known.producer_id AND had_epoch = known.producer_epoch - 1 AND known.begun_at IS NULL
        AND known.committed IS NULL THEN
        producer_id := known.producer_id;
        producer_epoch := known.producer_epoch;
        RETURN;
    END IF;
    IF had_id >= 0 AND (known.producer_id <> had_id OR known.producer_epoch <> had_epoch) THEN
        error := 90;
        RETURN;
    END IF;
    UPDATE pubsub.kafka_transactions AS t SET timeout_ms = kafka_init_producer.timeout_ms
     WHERE t.transactional_id = transactional;
    SELECT n.producer_id, n.producer_epoch INTO kafka_init_producer.producer_id, kafka_init_producer.producer_epoch
      FROM pubsub.kafka_next_epoch(transactional) AS n;
    -- A process that knows no epoch takes the name over from its predecessor, which may still ask
    -- with the epoch before. An abort of nothing is noted, so that its question is not taken for
    -- one whose answer got lost.
    IF had_id < 0 THEN
        UPDATE pubsub.kafka_transactions AS t SET committed = false WHERE t.transactional_id = transactional;
    END IF;
END $$;

-- A transaction begins with the first partition or group that it names, and goes on with further
-- ones.
CREATE OR REPLACE FUNCTION pubsub.kafka_begin(transactional text, producer bigint, epoch int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    known pubsub.kafka_transactions;
    error int;
BEGIN
    SELECT * INTO known FROM pubsub.kafka_transactions AS t WHERE t.transactional_id = transactional FOR UPDATE;
    error := pubsub.kafka_producer_error(known, producer, epoch);
    IF error <> 0 THEN
        RETURN error;
    END IF;
    IF known.begun_at IS NULL THEN
        INSERT INTO pubsub.kafka_open (producer_id) VALUES (producer);
        UPDATE pubsub.kafka_transactions AS t SET begun_at = clock_timestamp(), committed = NULL
         WHERE t.transactional_id = transactional;
    ELSIF NOT EXISTS (SELECT FROM pubsub.kafka_open AS o WHERE o.producer_id = producer) THEN
        -- A crash of the server has lost what it had sent.
        PERFORM pubsub.kafka_next_epoch(transactional);
        RETURN 90;
    END IF;
    RETURN 0;
END $$;

-- Why nothing may be kept aside for this producer now; 0 if it may. Several things may be kept at
-- once, but the transaction does not end meanwhile, because its end takes the same row for itself.
CREATE OR REPLACE FUNCTION pubsub.kafka_may_stage(transactional text, producer bigint, epoch int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    known pubsub.kafka_transactions;
    error int;
BEGIN
    -- Nothing is promised before the end of the transaction, which waits for the disk.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT * INTO known FROM pubsub.kafka_transactions AS t WHERE t.transactional_id = transactional FOR SHARE;
    error := pubsub.kafka_producer_error(known, producer, epoch);
    IF error = 0 AND (known.begun_at IS NULL
        OR NOT EXISTS (SELECT FROM pubsub.kafka_open AS o WHERE o.producer_id = producer)) THEN
        RETURN 48;
    END IF;
    RETURN error;
END $$;

-- Keeps a batch aside, as the rows that it becomes.
CREATE OR REPLACE FUNCTION pubsub.kafka_stage(
    transactional text, producer bigint, epoch int, most_bytes bigint, topic int, part int, first bigint, last bigint,
    row_relatives bigint[], counts int[], first_times bigint[], last_times bigint[],
    run_from int[], run_to int[], run_values bigint[], row_flags smallint[], crcs int[], body_ends int[], bodies bytea)
RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    error CONSTANT int := pubsub.kafka_may_stage(transactional, producer, epoch);
    reached bigint;
    held bigint;
BEGIN
    IF error <> 0 THEN
        RETURN CASE error WHEN 90 THEN 47 ELSE error END;
    END IF;
    SELECT max(s.last_sequence) INTO reached FROM pubsub.kafka_staged AS s
     WHERE s.producer_id = producer AND s.topic_id = topic AND s.partition = part;
    IF reached IS NULL THEN
        SELECT p.sequence INTO reached FROM pubsub.producers AS p
         WHERE p.topic_id = topic AND p.partition = part AND p.producer_id = producer;
    END IF;
    IF first <> coalesce(reached + 1, 0) AND NOT pubsub.begins_epoch(first, reached) THEN
        -- A batch that was kept already, and whose answer got lost.
        RETURN CASE WHEN last <= reached AND first >> 48 = reached >> 48 THEN 0 ELSE 45 END;
    END IF;
    -- Else it could never be published, and the transaction would fail as a whole.
    IF NOT EXISTS (SELECT FROM pubsub.partitions AS p WHERE p.topic_id = topic AND p.partition = part) THEN
        RETURN 3;
    END IF;
    SELECT sum(octet_length(s.bodies)) INTO held FROM pubsub.kafka_staged AS s WHERE s.producer_id = producer;
    IF coalesce(held, 0) + octet_length(bodies) > most_bytes THEN
        RETURN 18;
    END IF;
    INSERT INTO pubsub.kafka_staged VALUES (producer, topic, part, first, last, row_relatives, counts, first_times,
        last_times, run_from, run_to, run_values, row_flags, crcs, body_ends, bodies);
    RETURN 0;
END $$;

-- Keeps offsets of a group aside.
CREATE OR REPLACE FUNCTION pubsub.kafka_stage_offsets(
    transactional text, producer bigint, epoch int, group_name text,
    topics int[], parts int[], committed_to bigint[], metadata bytea[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    error CONSTANT int := pubsub.kafka_may_stage(transactional, producer, epoch);
BEGIN
    IF error <> 0 THEN
        RETURN error;
    END IF;
    INSERT INTO pubsub.kafka_staged_offsets AS o (producer_id, group_name, topic_id, partition, committed, metadata)
        SELECT producer, kafka_stage_offsets.group_name, g.topic, g.part, g.committed, g.said
          FROM unnest(topics, parts, committed_to, kafka_stage_offsets.metadata) AS g (topic, part, committed, said)
        ON CONFLICT ON CONSTRAINT kafka_staged_offsets_pkey DO UPDATE
           SET committed = excluded.committed, metadata = excluded.metadata;
    RETURN 0;
END $$;

-- Appends what was kept aside, and stores the offsets.
CREATE OR REPLACE FUNCTION pubsub.kafka_publish(producer bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    staged pubsub.kafka_staged;
    base bigint;
BEGIN
    -- In the order in which brokers lock partitions, so that they and this session never wait for
    -- each other.
    FOR staged IN SELECT * FROM pubsub.kafka_staged AS s WHERE s.producer_id = producer
                   ORDER BY s.topic_id, s.partition, s.first_sequence LOOP
        EXECUTE format('SELECT base_offset FROM pubsub.append_%s_%s(0, ARRAY[$1], ARRAY[$2], ARRAY[$3], ARRAY[0]::bigint[], '
            '$4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)', staged.topic_id, staged.partition)
           INTO base
          USING producer, staged.first_sequence, staged.last_sequence, staged.row_relatives, staged.counts,
                staged.first_times, staged.last_times, staged.run_from, staged.run_to, staged.run_values,
                staged.row_flags, staged.crcs, staged.body_ends, staged.bodies;
        IF base IS NULL THEN
            RAISE EXCEPTION 'records of producer % are in partition % of topic % already, and were not committed',
                producer, staged.partition, staged.topic_id USING ERRCODE = 'DP005';
        END IF;
    END LOOP;
    INSERT INTO pubsub.kafka_offsets AS o (group_name, topic_id, partition, committed, metadata, committed_at)
        SELECT s.group_name, s.topic_id, s.partition, s.committed, s.metadata, clock_timestamp()
          FROM pubsub.kafka_staged_offsets AS s WHERE s.producer_id = producer
         ORDER BY s.group_name, s.topic_id, s.partition
        ON CONFLICT ON CONSTRAINT kafka_offsets_pkey DO UPDATE
           SET committed = excluded.committed, metadata = excluded.metadata, committed_at = excluded.committed_at;
END $$;

-- Ends a transaction. An end that is repeated is answered as the first time.
CREATE OR REPLACE FUNCTION pubsub.kafka_end(transactional text, producer bigint, epoch int, commits boolean) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    known pubsub.kafka_transactions;
    error int;
BEGIN
    SELECT * INTO known FROM pubsub.kafka_transactions AS t WHERE t.transactional_id = transactional FOR UPDATE;
    error := pubsub.kafka_producer_error(known, producer, epoch);
    IF error <> 0 THEN
        RETURN error;
    END IF;
    IF known.begun_at IS NULL THEN
        RETURN CASE WHEN known.committed = commits THEN 0 ELSE 48 END;
    END IF;
    IF commits AND NOT EXISTS (SELECT FROM pubsub.kafka_open AS o WHERE o.producer_id = producer) THEN
        PERFORM pubsub.kafka_next_epoch(transactional);
        RETURN 90;
    END IF;
    IF commits THEN
        PERFORM pubsub.kafka_publish(producer);
    ELSE
        -- The producer counts on from the sequences of what is thrown away.
        INSERT INTO pubsub.producers AS p (topic_id, partition, producer_id, sequence, last_base, last_first)
            SELECT s.topic_id, s.partition, producer, max(s.last_sequence), min(l.next_offset) - 1, max(s.last_sequence) + 1
              FROM pubsub.kafka_staged AS s JOIN pubsub.partitions AS l USING (topic_id, partition)
             WHERE s.producer_id = producer GROUP BY s.topic_id, s.partition ORDER BY s.topic_id, s.partition
            ON CONFLICT (topic_id, partition, producer_id) DO UPDATE
               SET sequence = excluded.sequence, last_base = excluded.last_base,
                   last_first = excluded.last_first, seen_at = excluded.seen_at;
    END IF;
    PERFORM pubsub.kafka_forget_staged(producer);
    UPDATE pubsub.kafka_transactions AS t SET begun_at = NULL, committed = commits, used_at = clock_timestamp()
     WHERE t.transactional_id = transactional;
    RETURN 0;
END $$;

-- Ends transactions that take longer than their producers said, and forgets producers that were not
-- seen for a week. Returns how many transactions it ended.
CREATE OR REPLACE FUNCTION pubsub.kafka_expire_transactions() RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    late text;
    ended int := 0;
BEGIN
    FOR late IN SELECT t.transactional_id FROM pubsub.kafka_transactions AS t
                 WHERE t.begun_at + t.timeout_ms * interval '1 millisecond' < clock_timestamp()
                 ORDER BY t.transactional_id FOR UPDATE SKIP LOCKED LOOP
        PERFORM pubsub.kafka_next_epoch(late);
        ended := ended + 1;
    END LOOP;
    DELETE FROM pubsub.kafka_transactions AS t
     WHERE t.begun_at IS NULL AND t.used_at < clock_timestamp() - interval '7 days';
    RETURN ended;
END $$;
