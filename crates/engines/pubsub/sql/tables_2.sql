-- Version 2: readers without anything to read can ask to be told of the next append.

-- The offset at which somebody waits for a record; the append that begins there notifies.
ALTER TABLE pubsub.partitions ADD COLUMN awaited bigint NOT NULL DEFAULT -1;
