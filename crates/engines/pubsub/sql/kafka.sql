-- Groups of Kafka's clients: which broker coordinates a group, and how far it has read.

-- Enters a broker, and returns its number. Those that ended a day ago are forgotten, and so are
-- groups of a day ago that never stored an offset: a client that only asks for a group's
-- coordinator makes the group.
CREATE OR REPLACE FUNCTION pubsub.kafka_enter(host text, port int, broker_address text, lease_ms bigint) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    entered int;
BEGIN
    DELETE FROM pubsub.kafka_nodes AS n WHERE n.lease_until < clock_timestamp() - interval '1 day';
    DELETE FROM pubsub.kafka_groups AS g
     WHERE g.created_at < clock_timestamp() - interval '1 day'
       AND NOT EXISTS (SELECT FROM pubsub.kafka_offsets AS o WHERE o.group_name = g.name)
       AND NOT EXISTS (SELECT FROM pubsub.kafka_nodes AS n WHERE n.node_id = g.node_id);
    INSERT INTO pubsub.kafka_nodes (host, port, broker_address, lease_until)
        VALUES (kafka_enter.host, kafka_enter.port, kafka_enter.broker_address,
                clock_timestamp() + lease_ms * interval '1 millisecond')
        RETURNING node_id INTO entered;
    RETURN entered;
END $$;

-- Renews a broker's lease. False: it had lapsed, and others may coordinate its groups by now.
CREATE OR REPLACE FUNCTION pubsub.kafka_renew(node int, lease_ms bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    held_until timestamptz;
BEGIN
    SELECT n.lease_until INTO held_until FROM pubsub.kafka_nodes AS n WHERE n.node_id = node FOR UPDATE;
    UPDATE pubsub.kafka_nodes AS n SET lease_until = clock_timestamp() + lease_ms * interval '1 millisecond'
     WHERE n.node_id = node;
    RETURN coalesce(held_until >= clock_timestamp(), false);
END $$;

-- Ends a broker's lease, so that its groups go to others at once.
CREATE OR REPLACE FUNCTION pubsub.kafka_leave(node int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE pubsub.kafka_nodes AS n SET lease_until = clock_timestamp() - interval '1 millisecond' WHERE n.node_id = node;
END $$;

-- A name belongs to groups of Kafka's clients or to groups of the functions in group.sql, whose
-- members do not know of each other. A session that makes a group locks its name, so that two
-- sessions do not make one of each.
CREATE OR REPLACE FUNCTION pubsub.lock_group_name(group_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('pubsub group ' || group_name, 0));
END $$;

-- By the owner, because roles that only consume need not see the groups of others.
CREATE OR REPLACE FUNCTION pubsub.refuse_group_of_kafka(group_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pubsub.lock_group_name(group_name);
    IF EXISTS (SELECT FROM pubsub.kafka_groups AS g WHERE g.name = group_name) THEN
        RAISE EXCEPTION 'group % is one of Kafka''s clients, which share partitions in another way: take another name',
            quote_literal(group_name) USING ERRCODE = 'DP010';
    END IF;
END $$;

-- Which broker coordinates a group. A group whose broker has ended goes to the one that asks.
CREATE OR REPLACE FUNCTION pubsub.kafka_coordinator(group_name text, asking int) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    coordinator int;
    other text;
BEGIN
    SELECT g.node_id INTO coordinator FROM pubsub.kafka_groups AS g WHERE g.name = group_name;
    IF coordinator = asking OR EXISTS (SELECT FROM pubsub.kafka_nodes AS n
                                        WHERE n.node_id = coordinator AND n.lease_until >= clock_timestamp()) THEN
        RETURN coordinator;
    END IF;
    IF coordinator IS NULL THEN
        PERFORM pubsub.lock_group_name(group_name);
        SELECT t.name INTO other FROM pubsub.groups AS g JOIN pubsub.topics AS t USING (topic_id)
         WHERE g.name = group_name LIMIT 1;
        IF other IS NOT NULL THEN
            RAISE EXCEPTION 'topic % has a group % of dyno''s own consumers, which share partitions in another way: take another name',
                quote_literal(other), quote_literal(group_name) USING ERRCODE = 'DP010';
        END IF;
        INSERT INTO pubsub.kafka_groups (name, node_id) VALUES (group_name, asking) ON CONFLICT (name) DO NOTHING;
    END IF;
    SELECT g.node_id INTO coordinator FROM pubsub.kafka_groups AS g WHERE g.name = group_name FOR UPDATE;
    IF EXISTS (SELECT FROM pubsub.kafka_nodes AS n
                WHERE n.node_id = coordinator AND n.lease_until >= clock_timestamp()) THEN
        RETURN coordinator;
    END IF;
    UPDATE pubsub.kafka_groups AS g SET node_id = asking WHERE g.name = group_name;
    RETURN asking;
END $$;

-- Refuses a broker that does not coordinate a group any more. The lock keeps others from taking the
-- group over until the caller's transaction ends, so that nothing is stored behind the back of a
-- successor.
CREATE OR REPLACE FUNCTION pubsub.check_kafka_coordinator(group_name text, node int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM pubsub.kafka_groups AS g JOIN pubsub.kafka_nodes AS n USING (node_id)
      WHERE g.name = group_name AND g.node_id = node AND n.lease_until >= clock_timestamp() FOR SHARE OF g;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'node % does not coordinate group % any more', node, quote_literal(group_name)
            USING ERRCODE = 'DP003';
    END IF;
END $$;

-- Stores how far a group has read. The last commit counts, also when it goes back: members decide
-- that.
CREATE OR REPLACE FUNCTION pubsub.kafka_commit(
    group_name text, node int, topics int[], parts int[], committed_to bigint[], metadata bytea[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pubsub.check_kafka_coordinator(group_name, node);
    INSERT INTO pubsub.kafka_offsets AS o (group_name, topic_id, partition, committed, metadata, committed_at)
        SELECT kafka_commit.group_name, g.topic, g.part, g.committed, g.said, clock_timestamp()
          FROM unnest(topics, parts, committed_to, kafka_commit.metadata) AS g (topic, part, committed, said)
         ORDER BY g.topic, g.part
        ON CONFLICT ON CONSTRAINT kafka_offsets_pkey DO UPDATE
           SET committed = excluded.committed, metadata = excluded.metadata, committed_at = excluded.committed_at;
END $$;

-- Deletes a group with its offsets. The caller has seen that it has no members.
CREATE OR REPLACE FUNCTION pubsub.kafka_delete_group(group_name text, node int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pubsub.check_kafka_coordinator(group_name, node);
    DELETE FROM pubsub.kafka_groups AS g WHERE g.name = group_name;
END $$;
