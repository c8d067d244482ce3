"""What a user of confluent-kafka does: topics, records, groups, offsets, times."""

import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, NewPartitions, NewTopic
from confluent_kafka.admin import AlterConfigOpType, ResourceType

address = sys.argv[1]
common = {"bootstrap.servers": address}


def done(futures):
    for future in futures.values():
        future.result(30)


def consumer(group, **more):
    settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    return Consumer({**common, **settings, "session.timeout.ms": 6000, **more})


def read(reader, count, within=60):
    got, until = [], time.monotonic() + within
    while len(got) < count and time.monotonic() < until:
        for message in reader.consume(500, 0.5):
            if message.error():
                raise KafkaException(message.error())
            got.append(message)
    assert len(got) == count, (len(got), count)
    return got


# Topics: made, listed, changed, refused where they cannot be what is asked for.
admin = AdminClient(common)
done(admin.create_topics([NewTopic("orders", 4, 1, config={"retention.ms": "86400000"})]))
deadline = time.monotonic() + 30
while time.monotonic() < deadline:
    partitions = admin.list_topics("orders", 10).topics["orders"].partitions
    if len(partitions) == 4 and all(p.leader >= 0 for p in partitions.values()):
        break
    time.sleep(0.1)
assert len(partitions) == 4 and all(p.leader >= 0 for p in partitions.values()), partitions
for topic in [NewTopic("orders", 1, 1), NewTopic("copied", 1, 3), NewTopic("a b", 1, 1),
              NewTopic("compacted", 1, 1, config={"cleanup.policy": "compact"})]:
    try:
        done(admin.create_topics([topic]))
        raise AssertionError(topic.topic)
    except KafkaException:
        pass
resource = ConfigResource(ResourceType.TOPIC, "orders")
entries = admin.describe_configs([resource])[resource].result(30)
assert entries["retention.ms"].value == "86400000", entries
change = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
changed = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[change])
done(admin.incremental_alter_configs([changed]))
assert admin.describe_configs([resource])[resource].result(30)["retention.ms"].value == "3600000"
# The older way replaces all settings: what it does not name is back at its default.
done(admin.alter_configs([ConfigResource(ResourceType.TOPIC, "orders",
                                         set_config={"retention.bytes": "1000000000"})]))
entries = admin.describe_configs([resource])[resource].result(30)
assert entries["retention.bytes"].value == "1000000000", entries
assert entries["retention.ms"].value == "-1", entries

# Records: an idempotent producer, every compression, keys, headers, null values, times.
sent = {}
start_ms = 1_700_000_000_000
for at, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"]):
    producer = Producer({**common, "enable.idempotence": True, "compression.type": codec,
                         "linger.ms": 5})
    for number in range(400):
        key = f"customer-{number % 13}"
        value = None if number % 50 == 7 else f"{codec} {number}".encode()
        headers = [("trace", b"abc"), ("trace", None), ("codec", codec.encode())]
        stamp = start_ms + at * 1000 + number
        sent.setdefault(key, []).append((value, headers, stamp))
        producer.produce("orders", value, key, headers=headers, timestamp=stamp)
    assert producer.flush(60) == 0


def compare(messages):
    found = {}
    for message in messages:
        key = message.key().decode()
        found.setdefault(key, []).append((message.value(), message.headers(), message.timestamp()[1]))
    assert found == sent, "records differ"


# Two members share the topic, the group keeps its place, and a third finds nothing left.
first, second = consumer("billing"), consumer("billing")
first.subscribe(["orders"])
second.subscribe(["orders"])
got, until, both = [], time.monotonic() + 60, set()
while (len(got) < 2000 or len(both) < 2) and time.monotonic() < until:
    for name, member in (("first", first), ("second", second)):
        got += [m for m in member.consume(500, 0.2) if not m.error()]
        if len(member.assignment()) == 2:
            both.add(name)
assert len(got) == 2000 and len(both) == 2, (len(got), both)
first.commit(asynchronous=False)
second.commit(asynchronous=False)
described = admin.describe_consumer_groups(["billing"])["billing"].result(30)
assert len(described.members) == 2, described
assert described.state.name == "STABLE", described.state
first.close()
second.close()
compare(got)
third = consumer("billing")
third.subscribe(["orders"])
assert third.consume(1, 5) == [], "committed records came again"
third.close()

# A reader without a group's help: offsets by time, watermarks, committed offsets with metadata.
reader = consumer("by-hand")
low, high = reader.get_watermark_offsets(TopicPartition("orders", 0), 10)
assert low == 0 and high > 0, (low, high)
wanted = start_ms + 3000
places = reader.offsets_for_times([TopicPartition("orders", p, wanted) for p in range(4)], 10)
reader.assign(places)
late = read(reader, sum(1 for all in sent.values() for one in all if one[2] >= wanted))
assert min(message.timestamp()[1] for message in late) == wanted
beyond = reader.offsets_for_times([TopicPartition("orders", 0, start_ms + 10**9)], 10)
assert beyond[0].offset == -1, beyond
reader.commit(offsets=[TopicPartition("orders", 0, 17, "a note")], asynchronous=False)
kept = reader.committed([TopicPartition("orders", 0), TopicPartition("orders", 1)], 10)
assert (kept[0].offset, kept[0].metadata, kept[1].offset) == (17, "a note", -1001), kept
reader.close()

# Groups are listed and deleted, topics grow and go.
names = {group.group_id for group in admin.list_consumer_groups().result(30).valid}
assert names == {"billing", "by-hand"}, names
done(admin.delete_consumer_groups(["billing"]))
done(admin.create_partitions([NewPartitions("orders", 6)]))
assert len(admin.list_topics("orders", 10).topics["orders"].partitions) == 6
done(admin.delete_topics(["orders"]))
assert "orders" not in admin.list_topics(timeout=10).topics
print("good")
