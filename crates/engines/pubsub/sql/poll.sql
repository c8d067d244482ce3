-- Groups for any driver: everything by name, and positions kept by the server.

CREATE OR REPLACE FUNCTION pubsub.heartbeat(topic text, group_name text, member_name text)
RETURNS TABLE (partition int, generation bigint, committed bigint, wanted boolean)
LANGUAGE plpgsql AS $$
DECLARE
    grp CONSTANT int := (pubsub.group_named(topic, group_name)).group_id;
BEGIN
    -- What is wanted by another and fully committed is given up here.
    RETURN QUERY SELECT * FROM pubsub.group_heartbeat(grp, member_name, ARRAY(
        SELECT a.partition FROM pubsub.assignments AS a
         WHERE a.group_id = grp AND a.member = member_name AND a.wanted IS NOT NULL AND a.committed >= a.claimed_to));
END $$;

CREATE OR REPLACE FUNCTION pubsub.leave_group(topic text, group_name text, member_name text) RETURNS void
LANGUAGE sql AS $$ SELECT pubsub.group_leave((pubsub.group_named(topic, group_name)).group_id, member_name) $$;

-- Where a batch ends that begins at an offset: after so many records, or with the row that fills
-- the bytes.
CREATE OR REPLACE FUNCTION pubsub.batch_end(topic int, part int, from_offset bigint, records int, most_bytes bigint)
RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    base bigint; row_count int; row_bytes int;
    upto bigint := from_offset;
BEGIN
    FOR base, row_count, row_bytes IN EXECUTE format(
        'SELECT base_offset, count, bytes FROM pubsub.log_%s_%s WHERE base_offset > $1 - 65536 '
        'AND base_offset + count > $1 AND base_offset < $1 + $2 ORDER BY base_offset', topic, part)
        USING from_offset, records
    LOOP
        EXIT WHEN upto > from_offset AND row_bytes > most_bytes;
        upto := base + row_count;
        most_bytes := most_bytes - row_bytes;
    END LOOP;
    RETURN least(upto, from_offset + records);
END $$;

-- The next records of one owned partition, which are then claimed. None while another session
-- shares partitions anew: to wait for that while holding other cursors could be for ever.
CREATE OR REPLACE FUNCTION pubsub.poll_partition(
    topic text, grp int, member_name text, part int, at_generation bigint, records int)
RETURNS TABLE (message_offset bigint, "time" timestamptz, key bytea, headers jsonb, value bytea)
LANGUAGE plpgsql AS $$
DECLARE
    place CONSTANT pubsub.partitions := pubsub.partition_row(pubsub.topic_named(topic), part);
    from_offset bigint;
    upto bigint;
BEGIN
    SELECT a.claimed_to INTO from_offset FROM pubsub.assignments AS a
     WHERE a.group_id = grp AND a.partition = part AND a.member = member_name AND a.generation = at_generation
       FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF from_offset < place.first_offset THEN
        PERFORM pubsub.group_skip_lost(grp, member_name, part, at_generation);
        from_offset := place.first_offset;
    END IF;
    upto := pubsub.batch_end(place.topic_id, part, from_offset, records, 4194304);
    UPDATE pubsub.assignments AS a SET claimed_to = upto
     WHERE a.group_id = grp AND a.partition = part AND upto > from_offset;
    RETURN QUERY SELECT m.message_offset, m."time", m.key, m.headers, m.value
                   FROM pubsub.messages(topic, part, from_offset, upto) AS m;
END $$;

-- The next records of a member's partitions, at most 4 MiB of rows of each. Renews the lease. A
-- partition that another member wants gets no more records, and is given up as soon as what it gave
-- is committed.
CREATE OR REPLACE FUNCTION pubsub.poll(topic text, group_name text, member_name text, max_records int DEFAULT 500)
RETURNS TABLE (partition int, generation bigint, message_offset bigint, "time" timestamptz,
               key bytea, headers jsonb, value bytea)
LANGUAGE plpgsql AS $$
DECLARE
    grp CONSTANT int := (pubsub.group_named(topic, group_name)).group_id;
    owned record;
    remaining int := max_records;
    given int;
BEGIN
    IF max_records IS NULL OR max_records < 1 OR max_records > 100000 THEN
        RAISE EXCEPTION 'max_records % is not within 1 and 100000', max_records USING ERRCODE = 'DP011';
    END IF;
    -- The group's row is locked until the caller commits: a member that does not get it renews only
    -- its lease.
    PERFORM FROM pubsub.groups AS g WHERE g.group_id = grp FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        PERFORM pubsub.heartbeat(topic, group_name, member_name);
    ELSE
        UPDATE pubsub.members AS m SET lease_until = clock_timestamp() + m.lease_ms * interval '1 millisecond'
         WHERE m.group_id = grp AND m.member = member_name AND m.lease_until >= clock_timestamp();
        IF NOT FOUND THEN
            RAISE EXCEPTION '% is not a member of group %: its lease lapsed, or it never joined',
                quote_nullable(member_name), quote_literal(group_name) USING ERRCODE = 'DP009';
        END IF;
    END IF;
    FOR owned IN
        SELECT a.partition, a.generation, a.committed, p.next_offset FROM pubsub.assignments AS a
          JOIN pubsub.groups AS g USING (group_id)
          JOIN pubsub.partitions AS p ON p.topic_id = g.topic_id AND p.partition = a.partition
         WHERE a.group_id = grp AND a.member = member_name AND a.wanted IS NULL
           AND (a.claimed_to < p.next_offset OR a.committed > p.next_offset)
         ORDER BY random()
    LOOP
        IF owned.committed > owned.next_offset THEN
            RAISE EXCEPTION 'group % stands at offset % of partition %, beyond the end of the log, which is at %',
                quote_literal(group_name), owned.committed, owned.partition, owned.next_offset
                USING ERRCODE = 'DP006', HINT = 'pubsub.reset_group sets it to a place that is there.';
        END IF;
        EXIT WHEN remaining <= 0;
        partition := owned.partition;
        generation := owned.generation;
        FOR message_offset, "time", key, headers, value IN
            SELECT * FROM pubsub.poll_partition(
                topic, grp, member_name, owned.partition, owned.generation, remaining)
        LOOP
            remaining := remaining - 1;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END $$;

-- Stores that everything before an offset is done with. Refused when the partition is not the
-- member's at this generation any more, or when the offset was not handed out.
CREATE OR REPLACE FUNCTION pubsub.commit(
    topic text, group_name text, member_name text, part int, at_generation bigint, upto bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    grp CONSTANT int := (pubsub.group_named(topic, group_name)).group_id;
BEGIN
    IF cardinality(pubsub.group_commit(grp, member_name, ARRAY[part], ARRAY[at_generation], ARRAY[upto],
                                       ARRAY[NULL::bigint])) > 0 THEN
        RAISE EXCEPTION 'offset % of partition % is not committed: % does not own it at generation %, or was not given it',
            upto, part, member_name, at_generation USING ERRCODE = 'DP003';
    END IF;
END $$;

-- Asks to be told of the next records of a member's partitions, on the session's channels, and
-- returns whether to wait for that: a notification comes when the caller's transaction has ended
-- and something is appended. False: something is there already, or nothing is the member's. Poll
-- again after some seconds all the same, which also renews the lease.
CREATE OR REPLACE FUNCTION pubsub.await_group(topic text, group_name text, member_name text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    target CONSTANT pubsub.groups := pubsub.group_named(topic, group_name);
    owned record;
    waits boolean := false;
BEGIN
    FOR owned IN SELECT a.partition, least(a.claimed_to, p.next_offset) AS at
                   FROM pubsub.assignments AS a
                   JOIN pubsub.partitions AS p ON p.topic_id = target.topic_id AND p.partition = a.partition
                  WHERE a.group_id = target.group_id AND a.member = member_name AND a.wanted IS NULL
                  ORDER BY a.partition LOOP
        EXECUTE format('LISTEN pubsub_%s_%s', target.topic_id, owned.partition);
        IF NOT pubsub.await(target.topic_id, owned.partition, owned.at) THEN
            RETURN false;
        END IF;
        waits := true;
    END LOOP;
    RETURN waits;
END $$;
