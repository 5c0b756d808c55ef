"""Which known key a change means: "staging moved from db-3 to db-7" means the one whose value is db-3.

Promise: a change gets a known key only if exactly one can be meant; otherwise it keeps its own.
"""

import re
from collections.abc import Iterable

from stream_car.memory.documents import scope_of, value_in
from stream_car.memory.extraction import Fact
from stream_car.memory.keys import IS, MemoryKey, comparable, key_in
from stream_car.memory.restatements import restated_values
from stream_car.queries.answers import Evidence

COUNTED = ("number", "duration", "size", "share", "money", "temperature", "weight", "length")
_KIND = re.compile(r" \((?P<kind>[a-z]+)\)$")


def meant(fact: Fact, held: Iterable[Evidence]) -> MemoryKey | None:
    """Return the one key that a change means among values that hold; `None` if there is none, or several."""
    keys = {key_in(scope_of(evidence)) for evidence in held if _is_meant(fact, evidence)}
    return keys.pop() if len(keys) == 1 else None


def restatement(text: str, held: Evidence) -> Fact | None:
    """Return the fact of a text that says the same as what holds, or the same with another value; else `None`.

    A value that was published beside a text, not in it, is replaced by none.
    """
    key, value = key_in(scope_of(held)), str(held.attributes.get("object", ""))
    if held.text == text:
        return Fact(key, value)
    values = restated_values(text, held.text)
    if values is None:
        return None
    if comparable(values[1]) == comparable(value):
        return Fact(key, values[0])
    return Fact(key, text) if value == held.text or "<" in str(key) else None


def _is_meant(fact: Fact, evidence: Evidence) -> bool:
    key = key_in(scope_of(evidence))
    if fact.former:
        value, former = str(value_in(evidence)), comparable(fact.former)
        is_former = former in (value, value.split(maxsplit=1)[0] if value[:1].isdigit() else value)
        return is_former and _words(fact.key) <= _words(key)
    return (
        comparable(key.subject) == comparable(fact.key.subject)
        and _base(key) == _base(fact.key)
        and _kind(fact.key) == "number"  # without a unit, which the value that holds has
        and _kind(key) in COUNTED
    )


def _base(key: MemoryKey) -> str:
    return _KIND.sub("", key.relation)


def _kind(key: MemoryKey) -> str:
    match = _KIND.search(key.relation)
    return match["kind"] if match is not None else "name"


def _words(key: MemoryKey) -> set[str]:
    return set(comparable(f"{key.subject} {_base(key)}").split()) - {IS}
