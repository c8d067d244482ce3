"""Transactions: all of it or nothing, for every reader, with the offsets of the group that was read."""

import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_S = 60
address = sys.argv[1]
admin = AdminClient({"bootstrap.servers": address})


def topic(name, partitions):
    made = NewTopic(name, num_partitions=partitions, replication_factor=1)
    admin.create_topics([made])[name].result()


def producer(name, **settings):
    made = Producer({"bootstrap.servers": address, "transactional.id": name, **settings})
    made.init_transactions(PATIENCE_S)
    return made


def consumer(group, **settings):
    return Consumer({"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest",
                     "enable.auto.commit": False, **settings})


def everything(name, partitions, isolation):
    """What a reader of this isolation level finds in a topic now."""
    reader = consumer("nobody", **{"isolation.level": isolation})
    ends = {}
    for partition in range(partitions):
        _, ends[partition] = reader.get_watermark_offsets(TopicPartition(name, partition), PATIENCE_S)
    reader.assign([TopicPartition(name, partition, 0) for partition in range(partitions)])
    found, until = [], time.monotonic() + PATIENCE_S
    while len(found) < sum(ends.values()):
        assert time.monotonic() < until, "the reader did not reach the end"
        message = reader.poll(1)
        if message is not None and message.error() is None:
            found.append((message.partition(), message.value()))
    reader.close()
    return sorted(found)


def nothing_and_everything_agree(name, partitions):
    committed = everything(name, partitions, "read_committed")
    assert committed == everything(name, partitions, "read_uncommitted")
    return committed


def fails(code, call):
    try:
        call()
    except KafkaException as error:
        assert error.args[0].code() == code, error
        return
    raise AssertionError(f"error {code} was expected")


# Several partitions at once, and nothing before the commit.
topic("out", 3)
one = producer("one")
one.begin_transaction()
for number in range(300):
    one.produce("out", value=b"%d" % number, partition=number % 3)
assert one.flush(PATIENCE_S) == 0
assert nothing_and_everything_agree("out", 3) == []
one.commit_transaction(PATIENCE_S)
committed = nothing_and_everything_agree("out", 3)
assert len(committed) == 300, len(committed)

# What is aborted never was, and the producer goes on.
one.begin_transaction()
for number in range(300):
    one.produce("out", value=b"aborted", partition=number % 3)
assert one.flush(PATIENCE_S) == 0
one.abort_transaction(PATIENCE_S)
assert nothing_and_everything_agree("out", 3) == committed
one.begin_transaction()
one.produce("out", value=b"after", partition=1)
one.commit_transaction(PATIENCE_S)
committed = nothing_and_everything_agree("out", 3)
assert len(committed) == 301 and (1, b"after") in committed

# A second process of the same name ends the first one's transaction and refuses its end.
one.begin_transaction()
one.produce("out", value=b"fenced", partition=0)
assert one.flush(PATIENCE_S) == 0
other = producer("one")
fails(KafkaError._FENCED, lambda: one.commit_transaction(PATIENCE_S))
other.begin_transaction()
other.produce("out", value=b"other", partition=0)
other.commit_transaction(PATIENCE_S)
committed = nothing_and_everything_agree("out", 3)
assert len(committed) == 302 and (0, b"other") in committed and (0, b"fenced") not in committed

# Records are read, changed and written, each exactly once: the offsets are part of the transaction.
topic("in", 2)
topic("changed", 2)
plain = Producer({"bootstrap.servers": address})
for number in range(200):
    plain.produce("in", value=b"%d" % number, partition=number % 2)
assert plain.flush(PATIENCE_S) == 0


def change(turns, name):
    """Reads and writes in transactions, every second of which is aborted and done again."""
    reader, writer = consumer("changers", **{"isolation.level": "read_committed"}), producer(name)
    reader.subscribe(["in"])
    aborts = 0
    while turns > 0:
        batch = [one for one in reader.consume(20, 2) if one.error() is None]
        if not batch:
            break
        writer.begin_transaction()
        for message in batch:
            writer.produce("changed", value=b"changed " + message.value(), partition=message.partition())
        ends = {}
        for message in batch:
            ends[message.partition()] = message.offset() + 1
        offsets = [TopicPartition("in", partition, end) for partition, end in ends.items()]
        writer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), PATIENCE_S)
        turns -= 1
        if turns % 2:
            writer.abort_transaction(PATIENCE_S)
            aborts += 1
            # The group's offsets are where they were, so the records are read again.
            reader.unsubscribe()
            reader.subscribe(["in"])
        else:
            writer.commit_transaction(PATIENCE_S)
    reader.close()
    return aborts


assert change(5, "changer") > 0
change(1_000, "changer")
found = [value for _, value in nothing_and_everything_agree("changed", 2)]
assert sorted(found) == sorted(b"changed %d" % number for number in range(200)), len(found)

# A transaction that takes too long is aborted without its producer.
slow = producer("slow", **{"transaction.timeout.ms": 1_000})
slow.begin_transaction()
slow.produce("out", value=b"slow", partition=2)
assert slow.flush(PATIENCE_S) == 0
time.sleep(5)
fails(KafkaError._FENCED, lambda: slow.commit_transaction(PATIENCE_S))
assert nothing_and_everything_agree("out", 3) == committed
print("good")
