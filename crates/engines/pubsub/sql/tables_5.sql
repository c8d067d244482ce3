-- Version 5: a topic says by which hash its keys find their partitions, and records can be deleted up to an offset.

-- Keys of the topics that are there stay where they are: all of them were placed by FNV-1a.
ALTER TABLE pubsub.topics ADD COLUMN partitioner text NOT NULL DEFAULT 'fnv1a'
    CHECK (partitioner IN ('fnv1a', 'murmur2'));

-- These have a parameter more now. Their earlier forms would stay beside the new ones, and a call that leaves parameters out
-- would fit both.
DROP FUNCTION IF EXISTS pubsub.create_topic(text, int, text, bigint, bigint, bigint, boolean);
DROP FUNCTION IF EXISTS pubsub.make_topic(text, int, text, bigint, bigint, bigint, boolean, int, uuid, int[]);
DROP FUNCTION IF EXISTS pubsub.create_home(text, text, bigint, bigint, bigint, boolean, text[]);
DROP FUNCTION IF EXISTS pubsub.create_share(text, int, text, bigint, bigint, bigint, boolean, int, uuid, int[]);
DROP FUNCTION IF EXISTS pubsub.row_from_time(int, int, bigint);
