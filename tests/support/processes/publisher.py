"""A process that publishes until it is killed, and prints which offset was acknowledged.

Promise: the log is always a prefix of `message(0), message(1), ...`, however many processes wrote it and however they
ended.
"""

import sys
from random import Random

import stream_car
from stream_car.codec import encode, encode_mapping
from stream_car.core.documents import Document

RULE_PACKS = ("facts", "security")
BATCH_MAX = 60
START = 1_600_000_000_000_000


def message(n: int) -> bytes:
    """Return the n-th message: a document of one of few scopes, or a correction or retraction of an earlier one."""
    random = Random(n)
    chance = random.random()
    name = f"d{random.randrange(n)}" if n and chance < 0.2 else f"d{n}"
    if name != f"d{n}" and chance < 0.07:
        return encode_mapping({"id": name, "retracted": True})
    kind = random.choice(("fact", "advisory", "release_note"))
    scope: dict[str, tuple[str, ...]] = {
        "subject": (f"s{random.randrange(3)}",),
        "relation": (f"r{random.randrange(2)}",),
    }
    if kind != "fact":
        scope = {"vulnerability": (f"V{random.randrange(40)}",), "package": ("p", f"q{random.randrange(3)}")}
    return encode(
        Document(
            id=name,
            revision=n + 1,
            type=kind,
            time=START + random.randrange(100_000),
            scope=(scope,),
            supersedes=(f"d{random.randrange(n)}",) if n and random.random() < 0.03 and name == f"d{n}" else (),
            attributes={"value": random.randrange(3)},
            title=f"word{n}",
        )
    )


def main(path: str, seed: int) -> None:
    random = Random(seed)
    _print("ready")
    with stream_car.open(path, rules=RULE_PACKS) as engine:
        while True:
            offset = engine.directory.next_offset
            engine.publish(message(n) for n in range(offset, offset + random.randint(1, BATCH_MAX)))
            _print(str(engine.directory.next_offset))


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
