"""What enters and leaves frontiers, read with kafka-python alone: `python read_changes.py localhost:9092 places.json`.

Every change counts once, although Kafka may contain it twice: the numbers of a shard rise one by one, so a change that
is not above the last number is a repeat. Where reading continues is kept in a file, written after the work is done. If
you keep your results in a database, keep the places there, in the same transaction.
"""

import json
import sys
from pathlib import Path
from typing import NotRequired, TypedDict

from kafka import KafkaConsumer, TopicPartition

TOPIC = "streamcar.changes"

Place = tuple[int, str, int]  # of a partition: the next offset, and generation and number of the last change


class Member(TypedDict):
    id: str
    why: NotRequired[str]


class Change(TypedDict):
    scope: str
    entered: list[Member]
    left: list[Member]


def main(address: str, file: Path, topic: str = TOPIC, idle_ms: float = float("inf")) -> None:
    places: dict[str, Place] = json.loads(file.read_text()) if file.exists() else {}
    consumer = KafkaConsumer(
        bootstrap_servers=address,
        group_id=None,  # no group: the places are ours
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        consumer_timeout_ms=idle_ms,
    )
    partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
    consumer.assign(partitions)
    for partition in partitions:
        offset, _, _ = places.get(str(partition.partition), (0, "", 0))
        consumer.seek(partition, offset)
    for record in consumer:
        position = dict(record.headers)["ce_id"].decode()
        generation, _, digits = position.rsplit("/", 2)
        number = int(digits)
        _, known, last = places.get(str(record.partition), (0, generation, 0))
        if generation != known:
            last = 0  # other rules: their changes begin with 1, and report every frontier again
        if number > last:
            act_on(json.loads(record.value))
            last = number
        places[str(record.partition)] = (record.offset + 1, generation, last)
        save(file, places)


def act_on(change: Change) -> None:
    """Do your own work. More than 256 members of a type are a run: type, start, end, count."""
    for member in change["entered"]:
        print("+", change["scope"], member["id"], flush=True)
    for member in change["left"]:
        print("-", change["scope"], member["id"], member.get("why", ""), flush=True)


def save(file: Path, places: dict[str, Place]) -> None:
    new = file.with_suffix(".new")
    new.write_text(json.dumps(places))
    new.replace(file)


if __name__ == "__main__":
    address, name, *more = sys.argv[1:]
    main(
        address,
        Path(name),
        topic=more[0] if more else TOPIC,
        idle_ms=float(more[1]) if more[1:] else float("inf"),
    )
