"""Static members: a process that is restarted keeps its partitions, and the others notice nothing."""

import sys
import time

from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "static"
GROUP = "of-static-members"
PATIENCE_S = 60
address = sys.argv[1]
# A consumer that was fenced says so, or that it cannot go on.
FENCED = (KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL)


class Member:
    """A consumer with a lasting name, and how often partitions were given to it or taken away."""

    def __init__(self, instance):
        self.changes = 0
        self.partitions = set()
        self.fatal = None
        self.read = set()
        self.consumer = Consumer({
            "bootstrap.servers": address,
            "group.id": GROUP,
            "group.instance.id": instance,
            "session.timeout.ms": 30_000,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        })
        self.consumer.subscribe([TOPIC], on_assign=self.given, on_revoke=self.taken)

    def given(self, _, partitions):
        self.changes += 1
        self.partitions = {one.partition for one in partitions}

    def taken(self, _, partitions):
        self.changes += 1
        self.partitions = set()

    def poll(self):
        message = self.consumer.poll(0.1)
        if message is not None and message.error() is None:
            self.read.add(message.value())
        elif message is not None and message.error().code() in FENCED:
            self.fatal = message.error()


def until(members, holds, what):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, what
        for member in members:
            member.poll()


admin = AdminClient({"bootstrap.servers": address})
admin.create_topics([NewTopic(TOPIC, num_partitions=4, replication_factor=1)])[TOPIC].result()
producer = Producer({"bootstrap.servers": address})
for number in range(40):
    producer.produce(TOPIC, value=b"%d" % number, partition=number % 4)
assert producer.flush(PATIENCE_S) == 0

left, right = Member("left"), Member("right")
until([left, right], lambda: len(left.partitions) == len(right.partitions) == 2, "two partitions each")
until([left, right], lambda: len(left.read | right.read) == 40, "every record")
had, changes = left.partitions, right.changes

# A static member that closes does not leave its group.
left.consumer.close()
for _ in range(10):
    right.poll()
again = Member("left")
until([again, right], lambda: again.partitions, "partitions after the restart")
assert again.partitions == had, (again.partitions, had)
until([again, right], lambda: len(again.read) == 20, "the records of its partitions")
assert right.changes == changes, "the other member noticed the restart"

# A second process with the same lasting name takes its place, and the first one is told.
thief = Member("left")
until([thief, again, right], lambda: again.fatal is not None, "the first process is fenced")
until([thief, right], lambda: thief.partitions == had, "its partitions go to the second")
assert right.changes == changes, "the other member noticed the fencing"

for member in (again, thief, right):
    member.consumer.close()
print("good")
