"""A process that publishes until it is killed, and says which offset was acknowledged.

Promise: the log is always a beginning of `said(0), said(1), ...`, whoever wrote it and however it ended.
"""

import sys
from random import Random

import stream_car
from stream_car import Document
from stream_car.codec import encode, encode_mapping

DOMAINS = ("facts", "security")
BATCH_MAX = 60
START = 1_600_000_000_000_000


def said(n: int) -> bytes:
    """The n-th message: documents of few scopes, now and then a correction or a retraction of an earlier one."""
    random = Random(n)
    what = random.random()
    name = f"d{random.randrange(n)}" if n and what < 0.2 else f"d{n}"
    if name != f"d{n}" and what < 0.07:
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
    _tell("ready")
    with stream_car.open(path, domains=DOMAINS) as engine:
        while True:
            at = engine.next_offset
            engine.publish(said(n) for n in range(at, at + random.randint(1, BATCH_MAX)))
            _tell(str(engine.next_offset))


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
