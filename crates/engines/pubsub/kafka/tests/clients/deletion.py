"""Deletes records by two clients, and reads what is left."""

import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition as Place
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError as PureError

address = sys.argv[1]
start_ms = 1_700_000_000_000
admin = KafkaAdminClient(bootstrap_servers=address)
admin.create_topics([NewTopic("events", 2, 1)])
time.sleep(1)
producer = KafkaProducer(bootstrap_servers=address, acks="all")
for number in range(2000):
    # The times of a partition go up, and then down.
    producer.send("events", f"value {number}".encode(), partition=number % 2,
                  timestamp_ms=start_ms + min(number, 2000 - number))
producer.flush(60)
first, second = TopicPartition("events", 0), TopicPartition("events", 1)
reader = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest",
                       consumer_timeout_ms=8000)


def numbers(places):
    reader.assign(places)
    reader.seek_to_beginning(*places)
    ends = reader.end_offsets(places)
    got = []
    while any(reader.position(place) < ends[place] for place in places):
        for message in (m for all in reader.poll(2000).values() for m in all):
            got.append((message.partition, int(message.value.split()[1])))
    return sorted(got)


# A pure client deletes from one partition, by an offset within a row; the other one stays whole.
deleted = admin.delete_records({first: 333})
assert deleted[first]["low_watermark"] == 333, deleted
assert reader.beginning_offsets([first, second]) == {first: 333, second: 0}
left = [(n % 2, n) for n in range(2000) if n % 2 == 1 or n >= 666]
assert numbers([first, second]) == sorted(left)

# A consumer that stands before the beginning is told, and begins where there is something.
reader.assign([first])
reader.seek(first, 100)
records = []
while not records:
    records = [m for all in reader.poll(2000).values() for m in all]
assert records[0].offset == 333, records[0]

# The record of a time is one of those that are left.
found = reader.offsets_for_times({first: start_ms + 10})
assert found[first].offset == 333, found
# The row that holds 995 to 999 has a later record before them, which is gone.
admin.delete_records({first: 995})
assert reader.offsets_for_times({first: start_ms + 100})[first] is None
assert reader.offsets_for_times({first: start_ms + 4})[first].offset == 995

# What is not there cannot be deleted; nothing comes back; all goes with -1.
try:
    admin.delete_records({first: 1001})
    raise AssertionError("it was not refused")
except PureError as error:
    assert "OffsetOutOfRange" in repr(error), repr(error)
assert admin.delete_records({first: 10})[first]["low_watermark"] == 995
assert admin.delete_records({first: -1})[first]["low_watermark"] == 1000

# The other client, on the other partition.
other = AdminClient({"bootstrap.servers": address})
place = Place("events", 1, 400)
assert other.delete_records([place])[place].result(30).low_watermark == 400
member = Consumer({"bootstrap.servers": address, "group.id": "late", "auto.offset.reset": "earliest"})
assert member.get_watermark_offsets(Place("events", 0), 10) == (1000, 1000)
assert member.get_watermark_offsets(Place("events", 1), 10) == (400, 1000)
member.close()
beyond = Place("events", 1, 1001)
try:
    other.delete_records([beyond])[beyond].result(30)
    raise AssertionError("it was not refused")
except KafkaException as error:
    assert error.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE, error
assert numbers([first, second]) == [(1, n) for n in range(801, 2000, 2)]
print("good")
