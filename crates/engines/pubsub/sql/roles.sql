-- Privileges of roles that do not own the schema. The owner calls these; all of them can be called again.
--
-- Records are kept apart by topic. The small tables beside them (counters, groups, cursors) are shared by all topics, so a
-- role that may use one group can change the cursors of another: roles keep applications from accidents, not from each other.

CREATE OR REPLACE FUNCTION pubsub.grant_use(role_name name) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA pubsub TO %I', role_name);
    EXECUTE format('GRANT SELECT ON pubsub.schema_version, pubsub.topics, pubsub.partitions, pubsub.brokers, pubsub.ranges, '
        'pubsub.placements, pubsub.clusters, pubsub.identity TO %I', role_name);
END $$;

-- A role that sends to a topic. It cannot read what others sent, but for the positions of its own records.
CREATE OR REPLACE FUNCTION pubsub.grant_producer(topic text, role_name name) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    target CONSTANT pubsub.topics := pubsub.topic_named(topic);
    part int;
BEGIN
    PERFORM pubsub.grant_use(role_name);
    EXECUTE format('GRANT UPDATE (next_offset, span_latest, span_latest_before) ON pubsub.partitions TO %I', role_name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON pubsub.producers, pubsub.chains TO %I', role_name);
    EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE pubsub.producer_ids TO %I', role_name);
    FOR part IN SELECT p.partition FROM pubsub.partitions AS p WHERE p.topic_id = target.topic_id LOOP
        EXECUTE format('GRANT INSERT ON pubsub.log_%s_%s TO %I', target.topic_id, part, role_name);
        EXECUTE format('GRANT SELECT (base_offset, count, runs) ON pubsub.log_%s_%s TO %I',
            target.topic_id, part, role_name);
    END LOOP;
END $$;

-- A role that reads a topic, alone or in groups.
CREATE OR REPLACE FUNCTION pubsub.grant_consumer(topic text, role_name name) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    target CONSTANT pubsub.topics := pubsub.topic_named(topic);
    log text;
BEGIN
    PERFORM pubsub.grant_use(role_name);
    EXECUTE format('GRANT UPDATE (awaited) ON pubsub.partitions TO %I', role_name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON pubsub.groups, pubsub.assignments TO %I', role_name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON pubsub.members TO %I', role_name);
    -- The library reads ranges by their own names; later ranges get the privileges of the partition's table.
    FOR log IN SELECT format('log_%s_%s', p.topic_id, p.partition) FROM pubsub.partitions AS p
                WHERE p.topic_id = target.topic_id
               UNION ALL
               SELECT format('log_%s_%s_%s', r.topic_id, r.partition, r.first_offset) FROM pubsub.ranges AS r
                WHERE r.topic_id = target.topic_id LOOP
        EXECUTE format('GRANT SELECT ON pubsub.%I TO %I', log, role_name);
    END LOOP;
    EXECUTE format('GRANT SELECT ON pubsub.%I TO %I', pubsub.view_name(target.topic_id, target.name), role_name);
END $$;

-- A role that sends to a queue and works on it.
CREATE OR REPLACE FUNCTION pubsub.grant_queue(queue text, role_name name) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    id CONSTANT int := (pubsub.queue_named(queue)).queue_id;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA pubsub TO %I', role_name);
    EXECUTE format('GRANT SELECT ON pubsub.schema_version, pubsub.queues TO %I', role_name);
    EXECUTE format('GRANT USAGE ON SEQUENCE pubsub.claim_ids, pubsub.queue_%s_ids TO %I', id, role_name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON pubsub.queue_%1$s, pubsub.queue_%1$s_state, '
        'pubsub.queue_%1$s_dead, pubsub.queue_%1$s_done TO %2$I', id, role_name);
END $$;
