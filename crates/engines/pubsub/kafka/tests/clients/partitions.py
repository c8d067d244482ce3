"""Which partitions two clients choose for keys, by hashes that they compute themselves."""

import sys
import time

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from confluent_kafka.admin import ResourceType
from kafka import KafkaProducer

address = sys.argv[1]
keys = ["", "a", "ab", "abc", "abcd", "\u00e9\u00fc\u20ac"] + [f"customer-{n}" for n in range(100)]
admin = AdminClient({"bootstrap.servers": address})


def done(futures):
    for future in futures.values():
        future.result(30)


def refused(act, reason):
    try:
        done(act())
    except KafkaException as error:
        assert reason in str(error), error
        return
    raise AssertionError("it was not refused")


def create(topic, partitions, **config):
    return admin.create_topics([NewTopic(topic, partitions, 1, config=config)])


def alter(**settings):
    entries = [ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
               for name, value in settings.items()]
    resource = ConfigResource(ResourceType.TOPIC, "shared", incremental_configs=entries)
    return admin.incremental_alter_configs([resource])


def described(topic):
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return admin.describe_configs([resource])[resource].result(30)["partitioner"]


# A topic that a client of Kafka creates has its hash, unless it asks for another one; none changes.
done(create("shared", 5))
done(create("own", 1, partitioner="fnv1a"))
refused(lambda: create("other", 1, partitioner="crc32"), "not one of fnv1a, murmur2")
assert (described("shared").value, described("shared").is_default) == ("murmur2", True)
assert (described("own").value, described("own").is_default) == ("fnv1a", False)
assert described("own").is_read_only
refused(lambda: alter(partitioner="fnv1a"), 'the partitioner of topic "shared" stays murmur2')
done(alter(partitioner="murmur2", retention_ms="86400000"))
assert described("shared").value == "murmur2"

deadline = time.monotonic() + 30
while any(p.leader < 0 for p in admin.list_topics("shared", 10).topics["shared"].partitions.values()):
    assert time.monotonic() < deadline, "the topic has no leaders"
    time.sleep(0.1)
pure = KafkaProducer(bootstrap_servers=address, acks="all")
sent = {key: pure.send("shared", b"pure", key.encode()) for key in keys}
chosen = {key: place.get(60).partition for key, place in sent.items()}
placed = {}
other = Producer({"bootstrap.servers": address, "partitioner": "murmur2_random"})
for key in keys:
    other.produce("shared", b"other", key.encode(), on_delivery=lambda error, message:
                  placed.__setitem__((message.key() or b"").decode(), message.partition()))
assert other.flush(60) == 0
assert placed == chosen, (placed, chosen)
for key in keys:
    print(key, chosen[key], sep="\t")
print("good")
