"""The client in pure Python, which has the protocol from other hands than librdkafka."""

import sys
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

address = sys.argv[1]
admin = KafkaAdminClient(bootstrap_servers=address)
admin.create_topics([NewTopic("pure", 3, 1)])
time.sleep(1)
producer = KafkaProducer(bootstrap_servers=address, acks="all", compression_type="gzip")
places = [producer.send("pure", f"value {n}".encode(), f"key {n % 7}".encode(),
                        headers=[("n", str(n).encode())], timestamp_ms=1_700_000_000_000 + n)
          for n in range(1000)]
producer.flush(60)
places = [place.get(60) for place in places]
assert {place.partition for place in places} == {0, 1, 2}

reader = KafkaConsumer("pure", bootstrap_servers=address, group_id="pure-readers",
                       auto_offset_reset="earliest", enable_auto_commit=False,
                       consumer_timeout_ms=8000)
got = {}
for message in reader:
    got[(message.partition, message.offset)] = message
    if len(got) == 1000:
        break
for number, place in enumerate(places):
    message = got[(place.partition, place.offset)]
    assert message.value == f"value {number}".encode(), message
    assert message.key == f"key {number % 7}".encode()
    assert message.headers == [("n", str(number).encode())] or dict(message.headers) == {"n": str(number).encode()}
    assert message.timestamp == 1_700_000_000_000 + number
reader.commit()
for partition in range(3):
    place = TopicPartition("pure", partition)
    assert reader.committed(place) == reader.end_offsets([place])[place]
found = reader.offsets_for_times({TopicPartition("pure", 0): 1_700_000_000_500})
later = min((m for m in got.values() if m.partition == 0 and m.timestamp >= 1_700_000_000_500),
            key=lambda m: m.offset)
assert found[TopicPartition("pure", 0)].offset == later.offset, (found, later)
reader.close()
print("good")
