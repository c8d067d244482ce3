"""A group that reads while one of two servers ends."""

import sys
import time

from confluent_kafka import Consumer, KafkaException, Producer

common = {"bootstrap.servers": sys.argv[1]}
producer = Producer({**common, "enable.idempotence": True})
member = Consumer({**common, "group.id": "movers", "auto.offset.reset": "earliest",
                   "enable.auto.commit": False, "session.timeout.ms": 6000})
member.subscribe(["moving"])


def send(numbers):
    for number in numbers:
        producer.produce("moving", str(number), f"key {number % 11}")
    assert producer.flush(60) == 0, "not acknowledged"


def read(count, seen, within=90):
    until = time.monotonic() + within
    while len(seen) < count and time.monotonic() < until:
        for message in member.consume(200, 0.5):
            if message.error() is None:
                seen.add(int(message.value()))
    assert len(seen) == count, (len(seen), count)


def commit():
    # On a busy machine the member may have been silent for a session, and has to join again first.
    until = time.monotonic() + 30
    while True:
        try:
            member.commit(asynchronous=False)
            return
        except KafkaException:
            if time.monotonic() > until:
                raise
            member.consume(500, 0.5)


seen = set()
send(range(500))
read(500, seen)
commit()
print("half", flush=True)
# The other side ends a server, and then this input.
sys.stdin.read()
send(range(500, 1000))
read(1000, seen)
commit()
member.close()
print("good")
