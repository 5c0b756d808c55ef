"""Everything that can be asked of the attacked folder, and a digest of each answer.

Promise: two folders that mean the same give equal answers, and scores within `SCORE_TOLERANCE`. Cost: 0.6 seconds of
CPU, or 0.25 if only every fourth question of a long series is asked.
"""

import random
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from itertools import chain
from math import isclose

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.scope_names import scope_parts
from stream_car.errors import InvalidDocument, InvalidRequest, StreamCarError
from stream_car.local.engine import Engine
from tests.attack.specimen import RARE_WORDS, Specimen

QUERIES = 24
AS_OF = "2022-11-11"
BATCH = 1000
FEW = 100  # more than any question finds
SCORE_TOLERANCE = 0.2  # a replaced document counts until its segment is merged

_encode = msgspec.json.Encoder(order="sorted").encode


class Questions(Struct, frozen=True):
    """The ids and scopes to ask about; `make_questions` finds them in the healthy folder."""

    ids: tuple[str, ...]
    scopes: tuple[str, ...]
    pairs: tuple[str, ...]

    def each(self, car: Engine, *, step: int = 1) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield a label and a question. With a `step`, long series are thinned out."""
        yield "status", car.status
        yield "rules", car.rules
        yield "pending", car.pending
        yield "rejected", partial(car.rejected, limit=BATCH)
        yield "resolve", partial(car.resolve, self.ids[:BATCH])
        yield f"resolve as of {AS_OF}", partial(car.resolve, self.ids[:BATCH:step], as_of=AS_OF)
        yield "check", partial(car.check, self.ids[:BATCH:step])
        for pair in self.pairs[1::4]:
            yield f"frontier as of {AS_OF} {pair}", partial(car.frontier, pair, as_of=AS_OF)
        for name in self.ids[::step]:
            yield f"explain {name}", partial(car.explain, name)
        for pair in self.pairs[:: min(step, 2)]:
            yield f"frontier {pair}", partial(car.frontier, pair)
        for scope in self.scopes[::step]:
            yield f"history {scope}", partial(car.history, scope)
        for pair in self.pairs[::4]:
            yield f"changes {pair}", partial(car.changes, pair)
        yield "all changes", lambda: _all_changes(car)
        yield "documents in force", lambda: list(car.subscribe())
        yield "scopes", lambda: list(car.subscribe(view="scope"))
        for text in _texts(QUERIES // step):
            yield f"query {text}", partial(_query, car, text)
        for text in _texts(QUERIES // 3 // step):
            yield f"search {text}", partial(_search, car, text)


class Picture(Struct, frozen=True):
    """What a folder answered: digests and best scores by label, and the errors that the package raised instead."""

    digests: dict[str, bytes]
    scores: dict[str, float]
    errors: dict[str, str]

    def differences(self, other: "Picture") -> list[str]:
        """Return the labels of answers that differ, as far as both have them."""
        return [
            label
            for label, digest in self.digests.items()
            if digest != other.digests[label] or not self._has_score_of(other, label)
        ]

    def _has_score_of(self, other: "Picture", label: str) -> bool:
        return isclose(self.scores.get(label, 0.0), other.scores.get(label, 0.0), rel_tol=SCORE_TOLERANCE)


class Scored(Struct, frozen=True):
    """An answer without what depends on the merges of the text index, and its best score."""

    answer: object
    score: float


def take_picture(car: Engine, questions: Questions, specimen: Specimen, *, step: int = 1) -> Picture:
    """Ask everything, then read the feed on and look at its facts."""
    picture = Picture({}, {}, {})
    for label, answer in answers(car, questions, specimen, step=step):
        if isinstance(answer, StreamCarError):
            picture.errors[label] = str(answer)
            continue
        if isinstance(answer, Scored):
            picture.scores[label] = answer.score
        picture.digests[label] = blake2b(to_bytes(answer), digest_size=12).digest()
    return picture


def answers(
    car: Engine, questions: Questions, specimen: Specimen, *, step: int = 1
) -> Iterator[tuple[str, object | StreamCarError]]:
    """Yield every answer with its label, or the error that the package raised. Other errors are raised."""
    feed: list[tuple[str, Callable[[], object]]] = [("feed", partial(_facts_after_reading, car, specimen))]
    for label, ask in chain(questions.each(car, step=step), feed):
        try:
            answer = ask()
        except (InvalidRequest, InvalidDocument) as error:  # the question was good, so this is another answer
            answer = repr(error)
        except StreamCarError as error:
            answer = error
        yield label, answer


def to_bytes(answer: object) -> bytes:
    """Return an answer as JSON, without scores."""
    return _encode(answer.answer if isinstance(answer, Scored) else answer)


def make_questions(car: Engine) -> Questions:
    """Find every id and every scope of a folder."""
    ids = tuple(car.directory.projection.names())
    memberships = (membership for name in ids for membership in car.explain(name).memberships)
    scopes = tuple(sorted({membership.scope for membership in memberships}))
    pairs = sorted({f"{key}={value}" for scope in scopes for key, value in scope_parts(scope) if '"' not in value})
    return Questions(ids, scopes, tuple(pairs))


def _all_changes(car: Engine) -> list[object]:
    changes: list[object] = []
    after = ""
    while batch := car.changes(after=after, limit=BATCH):
        changes += batch
        after = batch[-1].position
    return changes


def _query(car: Engine, text: str) -> Scored:
    """Ask for more than there is. A rebuild may move scores, and so the order, and which anchors share a group."""
    answer = car.query(text, k=FEW, depth=FEW)
    plain = replace(
        answer,
        results=tuple(sorted(answer.results, key=lambda document: document.id)),
        groups=(),
        scopes=(),
        certificate=replace(
            answer.certificate, covered=tuple(sorted(answer.certificate.covered)), coverage=0.0, rounds=0, lookups=0
        ),
    )
    return Scored(plain, max((group.score for group in answer.groups), default=0.0))


def _search(car: Engine, text: str) -> object:
    return sorted(car.search(text, k=FEW), key=lambda document: document.id)


def _facts_after_reading(car: Engine, specimen: Specimen) -> object:
    specimen.read_feed(car)
    return [car.frontier(f"subject=person {number}") for number in range(20)]


def _texts(count: int) -> Iterator[str]:
    """Questions that few documents match."""
    chance = random.Random("questions")
    for _ in range(count):
        yield " ".join(chance.sample(RARE_WORDS, chance.randint(1, 3)))
    yield "person 7 home"
    yield "nothing-of-it"
