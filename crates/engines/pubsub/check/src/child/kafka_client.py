"""A client of Kafka in a check, over librdkafka: a producer, or a member of a group.

It does the job that its argument says, writes events as lines of JSON, and ends when its standard
input does. The events and the bytes of a message are those of the checker (event.rs, message.rs).
"""

import hashlib
import json
import struct
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

# A message: magic, producer, partition, sequence, due time, filler, FNV-1a over all before it.
HEAD = struct.Struct(">IIIQq")
MAGIC = 0x6479636B
KEYS = 64
AT_ONCE_MAX = 500
# A consumer commits after this many polls. What is not committed when it dies is delivered again.
ROUNDS = 4
# Servers are away for seconds at most; giving up earlier would leave outcomes unknown.
DELIVERY_TIMEOUT_MS = 120_000


def now_us():
    return time.time_ns() // 1000


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


class Events:
    """Lines for the checker. What is written is read even if this process is killed then."""

    def __init__(self):
        self.lines = []
        self.stopping = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while sys.stdin.buffer.read(1):
            pass
        self.stopping.set()

    def add(self, event, **fields):
        self.lines.append(json.dumps({"t": now_us(), "e": event, **fields}) + "\n")

    def flush(self):
        sys.stdout.write("".join(self.lines))
        sys.stdout.flush()
        self.lines.clear()


def fatal(error):
    """An error after which the client cannot go on ends the process, which fails the check."""
    if error.fatal():
        sys.exit(f"librdkafka: {error}")


def common(job):
    return {
        "bootstrap.servers": job["endpoint"],
        "client.id": f"check {job.get('producer', job.get('member'))}",
        "error_cb": fatal,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "socket.timeout.ms": 5000,
        "topic.metadata.refresh.interval.ms": 1000,
    }


class Schedule:
    """Messages at a constant rate, which does not wait for answers."""

    def __init__(self, job):
        self.job = job
        self.began_us = now_us()
        self.made = 0
        self.sequences = [0] * job["partitions"]

    def due(self):
        now, messages = now_us(), []
        while len(messages) < AT_ONCE_MAX:
            due_us = self.began_us + self.made * 1_000_000 // self.job["rate"]
            if due_us > now:
                break
            messages.append(self._make(due_us))
        return messages

    def _make(self, due_us):
        key = f"key {self.made * 29 % KEYS}".encode()
        partition = fnv1a(key) % len(self.sequences)
        identity = {"p": self.job["producer"], "q": partition, "s": self.sequences[partition]}
        self.sequences[partition] += 1
        self.made += 1
        content = HEAD.pack(MAGIC, identity["p"], identity["q"], identity["s"], due_us)
        # The filler depends on the identity, so a mix of two messages fails the checksum.
        missing = self.job["value_bytes"] - len(content) - 8
        content += hashlib.shake_128(content[:20]).digest(max(missing, 0))
        checksum = fnv1a(content)
        return identity, checksum, due_us, key, content + checksum.to_bytes(8, "big")


def produce(job, events):
    producer = Producer({
        **common(job), "enable.idempotence": True, "linger.ms": 2, "retry.backoff.ms": 20,
        "message.timeout.ms": DELIVERY_TIMEOUT_MS,
    })
    schedule = Schedule(job)

    def answered(identity):
        def tell(error, message):
            if error is None:
                # librdkafka knows no offset of a message whose own answer got lost, and which it
                # knows to be in the log by the answer to a later one.
                offset = message.offset()
                events.add("acknowledged", o=-1 if offset is None else offset, **identity)
            else:
                # Whether the last attempt arrived is not known, whatever the error says.
                events.add("unknown", **identity)
        return tell

    while not events.stopping.is_set():
        messages = schedule.due()
        for identity, checksum, due_us, _, _ in messages:
            events.add("send", c=checksum, d=due_us, **identity)
        # The checker must know of a message before the log can have it.
        events.flush()
        for identity, _, _, key, content in messages:
            while True:
                try:
                    producer.produce(job["topic"], content, key, identity["q"],
                                     on_delivery=answered(identity))
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.poll(0 if messages else 0.002)
        events.flush()
    producer.flush(50)
    events.flush()


class Member:
    """A member of a group, and what it was given and has not committed."""

    def __init__(self, job, events):
        self.job, self.events = job, events
        # Assignments are counted, since librdkafka does not tell the group's generation: within
        # one, a member must be given each partition in order and without gaps.
        self.assignments = 0
        self.open = {}
        self.consumer = Consumer({
            **common(job), "group.id": job["group_name"], "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "session.timeout.ms": job["lease_ms"],
            "heartbeat.interval.ms": max(job["lease_ms"] // 5, 50),
        })
        self.consumer.subscribe([job["topic"]], on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, consumer, partitions):
        self.assignments += 1
        self.open.clear()

    def _revoked(self, consumer, partitions):
        # Another member may have them by now, and it begins at what was committed.
        self.open.clear()

    def poll(self):
        # One by one: a batch may hold messages from before a new assignment and after it.
        message = self.consumer.poll(0.1)
        for _ in range(AT_ONCE_MAX):
            if message is None:
                break
            self.deliver(message)
            message = self.consumer.poll(0)
        if message is not None:
            self.deliver(message)
        self.events.flush()

    def deliver(self, message):
        if message.error() is not None:
            fatal(message.error())
            return
        content = message.value()
        checksum = int.from_bytes(content[-8:], "big")
        magic, producer, partition, sequence, _ = HEAD.unpack_from(content)
        if magic != MAGIC or fnv1a(content[:-8]) != checksum:
            sys.exit(f"damaged message at {message.offset()} of {message.partition()}")
        self.events.add("delivered", g=self.job["group"], m=self.job["member"],
                        n=self.assignments, o=message.offset(), l=message.partition(),
                        p=producer, q=partition, s=sequence, c=checksum)
        self.open[message.partition()] = message.offset() + 1

    def commit(self):
        if not self.open:
            return
        wanted = [TopicPartition(self.job["topic"], place, next_offset)
                  for place, next_offset in self.open.items()]
        asked_us = now_us()
        try:
            answers = self.consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as failure:
            fatal(failure.args[0])
            # A refusal commits nothing. After a lost answer it may be committed, which the history
            # expresses by the missing answer. Both are tried again with the next messages.
            return
        for answer in answers:
            # The group's generation is not known here, and 0 is not compared.
            self.events.add("commit", g=self.job["group"], m=self.job["member"], n=0,
                            l=answer.partition, o=answer.offset, a=asked_us,
                            y=answer.error is None)
            if answer.error is None:
                self.open.pop(answer.partition, None)
        self.events.flush()


def consume(job, events):
    member, rounds = Member(job, events), 0
    while not events.stopping.is_set():
        member.poll()
        rounds += 1
        if rounds % ROUNDS == 0:
            member.commit()
    member.commit()
    member.consumer.close()


def main():
    job = json.loads(sys.argv[1])
    {"produce": produce, "consume": consume}[job["job"]](job, Events())


if __name__ == "__main__":
    main()
