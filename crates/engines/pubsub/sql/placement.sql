-- Topics whose partitions lie on several clusters. Each cluster has a topic of the same name with its share of the
-- partitions, their groups, epochs and producers: all that has to change together lies together. Only
-- the home knows which partition is where.

-- Says where a partition is that is not here; NULL: it is here, or nowhere.
CREATE OR REPLACE FUNCTION pubsub.elsewhere(topic pubsub.topics, part int) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT 'cluster ' || p.cluster FROM pubsub.placements AS p
                      WHERE p.topic_id = topic.topic_id AND p.partition = part), 'another cluster')
     WHERE topic.share IS NOT NULL AND part >= 0 AND part < topic.partitions
       AND NOT EXISTS (SELECT FROM pubsub.partitions AS p WHERE p.topic_id = topic.topic_id AND p.partition = part)
$$;

CREATE OR REPLACE FUNCTION pubsub.refuse_elsewhere(topic pubsub.topics, part int) RETURNS void
LANGUAGE plpgsql STABLE AS $$
DECLARE
    place CONSTANT text := pubsub.elsewhere(topic, part);
BEGIN
    IF place IS NOT NULL THEN
        RAISE EXCEPTION 'partition % of topic % is not on this server but on %', part, quote_literal(topic.name), place
            USING ERRCODE = 'DP015';
    END IF;
END $$;

-- The home's part: the topic, its partitions that are here (placed[n + 1] is NULL for partition n), and where
-- the others are. To be committed after every share was made.
CREATE OR REPLACE FUNCTION pubsub.create_home(
    topic_name text, compression text, retention_ms bigint, retention_bytes bigint,
    range_records bigint, retain_for_groups boolean, partitioner text, placed text[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    made pubsub.topics;
BEGIN
    made := pubsub.make_topic(topic_name, cardinality(placed), compression, retention_ms, retention_bytes,
        range_records, retain_for_groups, partitioner, 0, NULL,
        ARRAY(SELECT n - 1 FROM generate_series(1, cardinality(placed)) AS n WHERE placed[n] IS NULL));
    INSERT INTO pubsub.placements
        SELECT made.topic_id, n - 1, placed[n] FROM generate_series(1, cardinality(placed)) AS n
         WHERE placed[n] IS NOT NULL;
    RETURN made.topic_id;
END $$;

-- Another cluster's part. What an attempt left that got no further is made anew, unless there are records in it.
CREATE OR REPLACE FUNCTION pubsub.create_share(
    topic_name text, partitions int, compression text, retention_ms bigint, retention_bytes bigint,
    range_records bigint, retain_for_groups boolean, partitioner text, share int, home uuid, parts int[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    made pubsub.topics;
BEGIN
    IF EXISTS (SELECT FROM pubsub.topics AS t WHERE t.name = topic_name AND t.home = create_share.home
                  AND NOT EXISTS (SELECT FROM pubsub.partitions AS p
                                   WHERE p.topic_id = t.topic_id AND p.next_offset > 0)) THEN
        PERFORM pubsub.drop_topic(topic_name);
    END IF;
    made := pubsub.make_topic(topic_name, partitions, compression, retention_ms, retention_bytes, range_records,
        retain_for_groups, partitioner, share, home, parts);
    RETURN made.topic_id;
END $$;

-- Drops some of a share of this home's topic; true when nothing is left of it.
CREATE OR REPLACE FUNCTION pubsub.drop_share(topic_name text, home uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM pubsub.topics AS t WHERE t.name = topic_name AND t.home = drop_share.home)
        OR pubsub.drop_topic_step(topic_name);
END $$;
