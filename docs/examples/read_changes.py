"""What enters and leaves frontiers, read with kafka-python alone: `python read_changes.py localhost:9092 places.json`.

Every change counts once, although Kafka may contain it twice: the numbers of a shard rise one by one, so a change that
is not above the last number is a repeat. Only one generation of rules is followed, because another one reports every
frontier again. Where reading continues is kept in a file, written after the work is done. If you keep your results in a
database, keep the places there, in the same transaction.
"""

import json
import re
import sys
from pathlib import Path
from typing import NotRequired, TypedDict

from kafka import KafkaConsumer, TopicPartition

TOPIC = "streamcar.changes"
CHANGE_ID = re.compile(rb"([!-~]{1,200})/([0-9]{1,9})/([0-9]{1,18})")  # generation, shard and number


class Member(TypedDict):
    id: str
    why: NotRequired[str]


class Change(TypedDict):
    scope: str
    entered: list[Member]
    left: list[Member]


class Places(TypedDict):
    """The generation that is followed, and for each partition the next offset and the number of the last change."""

    generation: str
    partitions: dict[str, tuple[int, int]]


def main(
    address: str, file: Path, topic: str = TOPIC, idle_ms: float = float("inf"), generation: str | None = None
) -> None:
    places: Places = json.loads(file.read_text()) if file.exists() else {"generation": "", "partitions": {}}
    if generation is not None and generation != places["generation"]:
        places = {"generation": generation, "partitions": {}}  # other rules: their changes report every frontier again
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
        consumer.seek(partition, places["partitions"].get(str(partition.partition), (0, 0))[0])
    for record in consumer:
        partition = str(record.partition)
        expected, last = places["partitions"].get(partition, (0, 0))
        match = CHANGE_ID.fullmatch(dict(record.headers).get("ce_id") or b"")
        if match is not None and match[2].decode() == partition:
            places["generation"] = places["generation"] or match[1].decode()  # follow the first that is there
            number = int(match[3])
            # A gap is only believed if Kafka has deleted records. Otherwise another program made the number up.
            is_next = number == last + 1 or (number > last and (not last or record.offset > expected))
            change = parse(record.value) if is_next and match[1].decode() == places["generation"] else None
            if change is not None:
                act_on(change)
                last = number
        places["partitions"][partition] = (record.offset + 1, last)
        save(file, places)


def parse(value: bytes | None) -> Change | None:
    """Return a change, or nothing if another program wrote this."""
    try:
        change: Change = json.loads(value or b"")
        "".join([change["scope"], *(member["id"] for member in (*change["entered"], *change["left"]))])
        return change
    except (ValueError, LookupError, TypeError):
        return None


def act_on(change: Change) -> None:
    """Do your own work. More than 256 members of a type are a run: type, start, end, count."""
    for member in change["entered"]:
        print("+", change["scope"], member["id"], flush=True)
    for member in change["left"]:
        print("-", change["scope"], member["id"], member.get("why", ""), flush=True)


def save(file: Path, places: Places) -> None:
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
        generation=more[2] if more[2:] else None,
    )
