"""What enters and leaves frontiers, read with kafka-python alone: `python read_changes.py localhost:9092 places.json`.

Every change counts once, although Kafka may hold it twice: numbers of a shard rise one by one, and what is not
above the last number seen is a repeat. Where reading goes on is kept in a file, written after the work is done:
if you keep your results in a database, keep the places there, in the same transaction.
"""

import json
import sys
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

TOPIC = "streamcar.changes"


def main(address, file, topic=TOPIC, idle_ms=None):
    places = json.loads(file.read_text()) if file.exists() else {}  # per partition: offset, generation, number
    consumer = KafkaConsumer(
        bootstrap_servers=address,
        group_id=None,  # no group: the places are ours
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        consumer_timeout_ms=float("inf") if idle_ms is None else idle_ms,
    )
    partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
    consumer.assign(partitions)
    for partition in partitions:
        consumer.seek(partition, places.get(str(partition.partition), [0])[0])
    for record in consumer:
        name = dict(record.headers)["ce_id"].decode()
        generation, _, number = name.rsplit("/", 2)
        _, known, last = places.get(str(record.partition), [0, generation, 0])
        if generation != known:
            last = 0  # other rules: their changes begin with 1, and tell every frontier anew
        if int(number) > last:
            act_on(json.loads(record.value))
            last = int(number)
        places[str(record.partition)] = [record.offset + 1, generation, last]
        keep(file, places)


def act_on(change):
    """Here your work begins. Members beyond 256 come as a run: type, from, to, count."""
    for member in change["entered"]:
        print("+", change["scope"], member["id"], flush=True)
    for member in change["left"]:
        print("-", change["scope"], member["id"], member["why"], flush=True)


def keep(file, places):
    new = file.with_suffix(".new")
    new.write_text(json.dumps(places))
    new.replace(file)


if __name__ == "__main__":
    address, file, *more = sys.argv[1:]
    main(address, Path(file), *more[:1], *map(int, more[1:]))
