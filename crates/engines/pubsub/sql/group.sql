-- Groups of consumers: which member owns which partition, and how far it has been read. All in
-- plpgsql, which keeps its plans: functions of SQL are planned at every call.

CREATE OR REPLACE FUNCTION pubsub.group_named(topic text, group_name text) RETURNS pubsub.groups
LANGUAGE plpgsql STABLE AS $$
DECLARE
    target CONSTANT pubsub.topics := pubsub.topic_named(topic);
    found_group pubsub.groups;
BEGIN
    SELECT * INTO found_group FROM pubsub.groups AS g WHERE g.topic_id = target.topic_id AND g.name = group_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'topic % has no group %', quote_literal(topic),
            coalesce(quote_literal(group_name), 'without a name') USING ERRCODE = 'DP008';
    END IF;
    RETURN found_group;
END $$;

-- Hands a partition to a member, or with NULL takes it from its owner. Records that the former
-- owner could have been given and did not commit are delivered again: they are counted here, once.
CREATE OR REPLACE FUNCTION pubsub.hand_over(grp int, part int, new_owner text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pubsub.assignments AS a
       SET member = new_owner, generation = a.generation + 1, wanted = NULL, wanted_at = NULL,
           redelivered = a.redelivered + greatest(least(a.claimed_to, p.next_offset) - a.committed, 0),
           claimed_to = a.committed
      FROM pubsub.partitions AS p, pubsub.groups AS g
     WHERE a.group_id = grp AND a.partition = part AND g.group_id = grp
       AND p.topic_id = g.topic_id AND p.partition = part;
END $$;

-- A function that changes several cursors locks all of them first, in the order in which commits
-- do. Otherwise the two could wait for each other.
CREATE OR REPLACE FUNCTION pubsub.lock_assignments(grp int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM pubsub.assignments AS a WHERE a.group_id = grp ORDER BY a.partition FOR UPDATE;
END $$;

-- Whether the members and what they own are as they should be, which most heartbeats find.
CREATE OR REPLACE FUNCTION pubsub.is_balanced(grp int) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (WITH alive AS (
        SELECT m.member, m.lease_ms FROM pubsub.members AS m
         WHERE m.group_id = grp AND m.lease_until >= clock_timestamp()
    ), owned AS (
        SELECT a.*, coalesce(a.wanted, a.member) AS future FROM pubsub.assignments AS a WHERE a.group_id = grp
    ), loads AS (
        SELECT (SELECT count(*) FROM owned AS o WHERE o.future = m.member) AS has FROM alive AS m
    )
    SELECT (SELECT count(*) FROM alive) = (SELECT count(*) FROM pubsub.members AS m WHERE m.group_id = grp)
       AND (SELECT count(*) FROM owned) = (SELECT count(*) FROM pubsub.groups AS g JOIN pubsub.partitions AS p USING (topic_id)
                                            WHERE g.group_id = grp)
       AND NOT EXISTS (SELECT FROM owned AS o LEFT JOIN alive AS m ON m.member = o.member
                        WHERE m.member IS NULL
                           OR o.wanted_at < clock_timestamp() - m.lease_ms * interval '2 milliseconds'
                           OR o.wanted IS NOT NULL AND o.wanted NOT IN (SELECT w.member FROM alive AS w))
       AND (SELECT coalesce(max(l.has) - min(l.has), 0) < 2 FROM loads AS l));
END $$;

-- Where a group begins to read a partition. One that was added after the group was made may not
-- reach as far as the group's start: then it is read from its end, which comes to the start in
-- time.
CREATE OR REPLACE FUNCTION pubsub.first_cursor(topic pubsub.topics, place pubsub.partitions, start text) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF start LIKE 'offset:%' THEN
        RETURN least(substring(start FROM 8)::bigint, place.next_offset);
    END IF;
    RETURN pubsub.offset_of_start(topic.name, place.partition, start);
END $$;

-- Shares the partitions among the members whose leases hold. A member that owns more than a fair
-- share is told by "wanted" what to give up. It keeps that until it releases it, or for two more
-- leases. The caller holds the group's row.
CREATE OR REPLACE FUNCTION pubsub.rebalance(grp int) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    free record;
    giver record;
    taker text;
    all_partitions int;
    -- Every second share of a topic fills up from the last member on, so that what is left over on
    -- one cluster does not always go to the member that gets it on the others.
    turn CONSTANT int := (SELECT CASE WHEN coalesce(t.share, 0) % 2 = 0 THEN 1 ELSE -1 END
                            FROM pubsub.groups AS g JOIN pubsub.topics AS t USING (topic_id) WHERE g.group_id = grp);
BEGIN
    IF pubsub.is_balanced(grp) THEN
        RETURN;
    END IF;
    PERFORM pubsub.lock_assignments(grp);
    DELETE FROM pubsub.members WHERE group_id = grp AND lease_until < clock_timestamp();
    INSERT INTO pubsub.assignments (group_id, partition, committed, claimed_to)
        SELECT grp, p.partition, s.at, s.at
          FROM pubsub.groups AS g JOIN pubsub.topics AS t USING (topic_id)
          JOIN pubsub.partitions AS p USING (topic_id),
               LATERAL (SELECT pubsub.first_cursor(t, p, g.start) AS at) AS s
         WHERE g.group_id = grp
           AND NOT EXISTS (SELECT FROM pubsub.assignments AS a WHERE a.group_id = grp AND a.partition = p.partition);
    PERFORM pubsub.hand_over(grp, a.partition, NULL) FROM pubsub.assignments AS a
     WHERE a.group_id = grp AND a.member IS NOT NULL
       AND (NOT EXISTS (SELECT FROM pubsub.members AS m WHERE m.group_id = grp AND m.member = a.member)
            OR a.wanted_at < clock_timestamp() - 2 * (SELECT m.lease_ms * interval '1 millisecond'
                  FROM pubsub.members AS m WHERE m.group_id = grp AND m.member = a.member));
    UPDATE pubsub.assignments AS a SET wanted = NULL, wanted_at = NULL
     WHERE a.group_id = grp AND a.wanted IS NOT NULL
       AND NOT EXISTS (SELECT FROM pubsub.members AS m WHERE m.group_id = grp AND m.member = a.wanted);
    FOR free IN SELECT partition FROM pubsub.assignments
                 WHERE group_id = grp AND member IS NULL ORDER BY partition LOOP
        SELECT m.member INTO taker FROM pubsub.members AS m WHERE m.group_id = grp
         ORDER BY (SELECT count(*) FROM pubsub.assignments AS a
                    WHERE a.group_id = grp AND coalesce(a.wanted, a.member) = m.member),
                  turn * extract(epoch FROM m.joined_at), m.member LIMIT 1;
        EXIT WHEN taker IS NULL;
        PERFORM pubsub.hand_over(grp, free.partition, taker);
    END LOOP;
    SELECT count(*) INTO all_partitions FROM pubsub.assignments WHERE group_id = grp;
    FOR i IN 1 .. all_partitions LOOP
        SELECT m.member, (SELECT count(*) FROM pubsub.assignments AS a
                           WHERE a.group_id = grp AND coalesce(a.wanted, a.member) = m.member) AS has
          INTO free FROM pubsub.members AS m WHERE m.group_id = grp
         ORDER BY has, turn * extract(epoch FROM m.joined_at), m.member LIMIT 1;
        SELECT coalesce(a.wanted, a.member) AS member, count(*) AS has,
               max(a.partition) FILTER (WHERE a.wanted IS NULL) AS part
          INTO giver FROM pubsub.assignments AS a WHERE a.group_id = grp
         GROUP BY 1 HAVING max(a.partition) FILTER (WHERE a.wanted IS NULL) IS NOT NULL
         ORDER BY has DESC, 1 LIMIT 1;
        EXIT WHEN free.has IS NULL OR giver.has IS NULL OR giver.has < free.has + 2;
        UPDATE pubsub.assignments SET wanted = free.member, wanted_at = clock_timestamp()
         WHERE group_id = grp AND partition = giver.part;
    END LOOP;
END $$;

-- What a member owns now.
CREATE OR REPLACE FUNCTION pubsub.owned(grp int, member_name text)
RETURNS TABLE (partition int, generation bigint, committed bigint, wanted boolean)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT a.partition, a.generation, a.committed, a.wanted IS NOT NULL
      FROM pubsub.assignments AS a WHERE a.group_id = grp AND a.member = member_name ORDER BY a.partition;
END $$;

-- Enters a group, which is made when there is none, and returns its number. A member that joins
-- again is a new one: what it owned gets a new generation, so that its former self cannot commit.
CREATE OR REPLACE FUNCTION pubsub.join_group(
    topic text, group_name text, member_name text, lease_ms bigint DEFAULT 10000,
    start text DEFAULT 'earliest', when_lost text DEFAULT 'skip') RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    target CONSTANT pubsub.topics := pubsub.topic_named(topic);
    grp int;
BEGIN
    IF lease_ms IS NULL OR lease_ms < 100 OR lease_ms > 86400000 THEN
        RAISE EXCEPTION 'a lease of % ms is not within 100 and 86400000', lease_ms USING ERRCODE = 'DP011';
    END IF;
    PERFORM pubsub.check_name('group', group_name);
    IF member_name IS NULL OR length(member_name) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION '% cannot be the name of a member: it is 1 to 200 characters', quote_nullable(member_name)
            USING ERRCODE = 'DP011';
    END IF;
    IF when_lost IS NULL OR when_lost NOT IN ('skip', 'fail') THEN
        RAISE EXCEPTION 'when_lost % is not one of skip, fail', quote_nullable(when_lost) USING ERRCODE = 'DP011';
    END IF;
    PERFORM pubsub.check_start(join_group.start);
    IF NOT EXISTS (SELECT FROM pubsub.groups AS g WHERE g.topic_id = target.topic_id AND g.name = group_name) THEN
        PERFORM pubsub.refuse_group_of_kafka(group_name);
        -- A place that a partition does not reach is refused before there is a group that stands
        -- there for ever.
        PERFORM pubsub.offset_of_start(topic, p.partition, join_group.start)
           FROM pubsub.partitions AS p WHERE p.topic_id = target.topic_id;
    END IF;
    INSERT INTO pubsub.groups (topic_id, name, start, when_lost)
        VALUES (target.topic_id, group_name, join_group.start, join_group.when_lost)
        ON CONFLICT (topic_id, name) DO NOTHING;
    SELECT group_id INTO grp FROM pubsub.groups AS g
     WHERE g.topic_id = target.topic_id AND g.name = group_name FOR UPDATE;
    INSERT INTO pubsub.members AS m (group_id, member, lease_until, lease_ms)
        VALUES (grp, member_name, clock_timestamp() + join_group.lease_ms * interval '1 millisecond',
                join_group.lease_ms)
        ON CONFLICT (group_id, member) DO UPDATE
           SET lease_until = excluded.lease_until, lease_ms = excluded.lease_ms;
    PERFORM pubsub.lock_assignments(grp);
    PERFORM pubsub.hand_over(grp, a.partition, member_name)
       FROM pubsub.assignments AS a WHERE a.group_id = grp AND a.member = member_name;
    PERFORM pubsub.rebalance(grp);
    RETURN grp;
END $$;

-- Renews the lease, gives partitions back, and returns what the member owns. A member whose lease
-- lapsed is told so: it has to join again, and to forget what it had.
CREATE OR REPLACE FUNCTION pubsub.group_heartbeat(
    grp int, member_name text, released int[] DEFAULT '{}')
RETURNS TABLE (partition int, generation bigint, committed bigint, wanted boolean)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM pubsub.groups WHERE group_id = grp FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no group with number %', grp USING ERRCODE = 'DP008';
    END IF;
    UPDATE pubsub.members AS m SET lease_until = clock_timestamp() + m.lease_ms * interval '1 millisecond'
     WHERE m.group_id = grp AND m.member = member_name AND m.lease_until >= clock_timestamp();
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is not a member of group %: its lease lapsed, or it never joined',
            quote_nullable(member_name), grp USING ERRCODE = 'DP009';
    END IF;
    IF cardinality(released) > 0 THEN
        PERFORM pubsub.lock_assignments(grp);
    END IF;
    PERFORM pubsub.hand_over(grp, a.partition, a.wanted) FROM pubsub.assignments AS a
     WHERE a.group_id = grp AND a.member = member_name AND a.partition = ANY (released);
    PERFORM pubsub.rebalance(grp);
    RETURN QUERY SELECT * FROM pubsub.owned(grp, member_name);
END $$;

CREATE OR REPLACE FUNCTION pubsub.group_leave(grp int, member_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM pubsub.groups WHERE group_id = grp FOR UPDATE;
    DELETE FROM pubsub.members AS m WHERE m.group_id = grp AND m.member = member_name;
    PERFORM pubsub.rebalance(grp);
END $$;

-- Stores how far partitions were read (NULL: as it is; never back: of two commits that overtake
-- each other the further one counts, and reset_group is the way back), and how far records may be
-- handed out (NULL: as it is; lower than before when a member says that it handed out less).
-- Returns the partitions that were refused: not the member's at that generation any more, or
-- committed beyond the claim.
CREATE OR REPLACE FUNCTION pubsub.group_commit(
    grp int, member_name text, parts int[], generations bigint[], committed_to bigint[], claims bigint[])
RETURNS int[]
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    refused int[];
BEGIN
    IF cardinality(parts) > 1 THEN
        -- In the order in which lock_assignments goes.
        PERFORM FROM pubsub.assignments AS a
          WHERE a.group_id = grp AND a.partition = ANY (parts) ORDER BY a.partition FOR UPDATE;
    END IF;
    WITH given AS (
        SELECT * FROM unnest(parts, generations, committed_to, claims) AS g (partition, generation, committed, claimed)
    ), stored AS (
        UPDATE pubsub.assignments AS a
           SET committed = greatest(g.committed, a.committed), claimed_to = coalesce(g.claimed, a.claimed_to)
          FROM given AS g
         WHERE a.group_id = grp AND a.partition = g.partition AND a.member = member_name
           AND a.generation = g.generation
           AND coalesce(g.committed, 0) BETWEEN 0 AND coalesce(g.claimed, a.claimed_to)
        RETURNING a.partition
    )
    SELECT coalesce(array_agg(g.partition ORDER BY g.partition), '{}') INTO refused FROM given AS g
     WHERE g.partition NOT IN (SELECT s.partition FROM stored AS s);
    RETURN refused;
END $$;

-- A reader found that retention took the records where it wanted to go on. Moves it to the first
-- record that is there and counts what it lost, or refuses, as the group was made.
CREATE OR REPLACE FUNCTION pubsub.group_skip_lost(grp int, member_name text, part int, at_generation bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    policy text;
    first bigint;
    moved bigint;
BEGIN
    SELECT g.when_lost, p.first_offset INTO policy, first
      FROM pubsub.groups AS g JOIN pubsub.partitions AS p USING (topic_id)
     WHERE g.group_id = grp AND p.partition = part;
    IF policy = 'fail' THEN
        RAISE EXCEPTION 'group % wants to go on before offset % of partition %, where nothing is left', grp, first, part
            USING ERRCODE = 'DP006';
    END IF;
    UPDATE pubsub.assignments AS a
       SET lost = a.lost + greatest(first - a.committed, 0), committed = greatest(a.committed, first),
           claimed_to = greatest(a.claimed_to, first)
     WHERE a.group_id = grp AND a.partition = part AND a.member = member_name AND a.generation = at_generation
    RETURNING a.committed INTO moved;
    IF moved IS NULL THEN
        RAISE EXCEPTION 'partition % is not %''s at generation % any more', part, member_name, at_generation
            USING ERRCODE = 'DP003';
    END IF;
    RETURN moved;
END $$;
