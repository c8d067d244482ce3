-- Groups as a whole: how far behind they are, setting them to another place, dropping them.

CREATE OR REPLACE FUNCTION pubsub.group_lag(topic text, group_name text)
RETURNS TABLE (partition int, member text, generation bigint, committed bigint, next_offset bigint, lag bigint,
               redelivered bigint, lost bigint, lease_until timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT a.partition, a.member, a.generation, a.committed, p.next_offset,
           greatest(p.next_offset - greatest(a.committed, p.first_offset), 0), a.redelivered, a.lost, m.lease_until
      FROM pubsub.group_named(topic, group_name) AS g
      JOIN pubsub.assignments AS a ON a.group_id = g.group_id
      JOIN pubsub.partitions AS p ON p.topic_id = g.topic_id AND p.partition = a.partition
      LEFT JOIN pubsub.members AS m ON m.group_id = g.group_id AND m.member = a.member
     ORDER BY a.partition
$$;

-- All groups of all topics. One query over small tables: no record is read.
CREATE OR REPLACE FUNCTION pubsub.group_lags()
RETURNS TABLE (topic text, group_name text, partition int, member text, generation bigint, committed bigint,
               next_offset bigint, lag bigint, redelivered bigint, lost bigint)
LANGUAGE sql STABLE AS $$
    SELECT t.name, g.name, a.partition, a.member, a.generation, a.committed, p.next_offset,
           greatest(p.next_offset - greatest(a.committed, p.first_offset), 0), a.redelivered, a.lost
      FROM pubsub.groups AS g
      JOIN pubsub.topics AS t USING (topic_id)
      JOIN pubsub.assignments AS a USING (group_id)
      JOIN pubsub.partitions AS p ON p.topic_id = g.topic_id AND p.partition = a.partition
     ORDER BY t.name, g.name, a.partition
$$;

-- Locks a group's row and returns the group; refuses one that has living members, unless it is to be done all the same.
CREATE OR REPLACE FUNCTION pubsub.idle_group(topic text, group_name text, force boolean) RETURNS pubsub.groups
LANGUAGE plpgsql AS $$
DECLARE
    target CONSTANT pubsub.groups := pubsub.group_named(topic, group_name);
    alive text;
BEGIN
    PERFORM FROM pubsub.groups AS g WHERE g.group_id = target.group_id FOR UPDATE;
    SELECT string_agg(m.member, ', ' ORDER BY m.member) INTO alive FROM pubsub.members AS m
     WHERE m.group_id = target.group_id AND m.lease_until >= clock_timestamp();
    IF alive IS NOT NULL AND force IS NOT TRUE THEN
        RAISE EXCEPTION 'group % of topic % has living members: %', quote_literal(group_name), quote_literal(topic), alive
            USING ERRCODE = 'DP016', HINT = 'Stop them, wait until their leases lapse, or force it.';
    END IF;
    RETURN target;
END $$;

-- Sets a group to a place: earliest, latest, offset:N or time:MICROSECONDS, in all partitions or in one. Places before the
-- first record that is kept become that record; places beyond the end are refused. With force, members that live are
-- fenced off by new generations and go on from the new place.
CREATE OR REPLACE FUNCTION pubsub.reset_group(
    topic text, group_name text, start text, part int DEFAULT NULL, force boolean DEFAULT false)
RETURNS TABLE (partition int, was bigint, committed bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    target CONSTANT pubsub.groups := pubsub.idle_group(topic, group_name, force);
BEGIN
    PERFORM pubsub.check_start(start);
    IF part IS NOT NULL THEN
        PERFORM pubsub.partition_row(pubsub.topic_named(topic), part);
    END IF;
    PERFORM pubsub.lock_assignments(target.group_id);
    RETURN QUERY
        WITH places AS MATERIALIZED (
            SELECT p.partition, a.committed AS was,
                   greatest(pubsub.offset_of_start(reset_group.topic, p.partition, reset_group.start), p.first_offset) AS at
              FROM pubsub.partitions AS p
              LEFT JOIN pubsub.assignments AS a ON a.group_id = target.group_id AND a.partition = p.partition
             WHERE p.topic_id = target.topic_id AND (part IS NULL OR p.partition = part)
        ), stored AS (
            INSERT INTO pubsub.assignments AS a (group_id, partition, committed, claimed_to)
            SELECT target.group_id, s.partition, s.at, s.at FROM places AS s
                ON CONFLICT (group_id, partition) DO UPDATE
               SET committed = excluded.committed, claimed_to = excluded.committed, generation = a.generation + 1
            RETURNING a.partition, a.committed
        )
        SELECT s.partition, s.was, t.committed FROM places AS s JOIN stored AS t USING (partition) ORDER BY s.partition;
END $$;

-- Drops a group with its cursors. Members that live, with force, are told that there is no such group.
CREATE OR REPLACE FUNCTION pubsub.drop_group(topic text, group_name text, force boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    gone CONSTANT pubsub.groups := pubsub.idle_group(topic, group_name, force);
BEGIN
    DELETE FROM pubsub.groups AS g WHERE g.group_id = gone.group_id;
END $$;
