"""Decoded values as Stage 2 has them at hand, by the store's keys."""

from collections.abc import Generator, Iterable
from typing import cast

from stream_car.core.members import Page, Pages, Scope
from stream_car.core.revisions import held_key
from stream_car.core.standing import Held
from stream_car.core.timeline import scope_key

Values = dict[bytes, object]


def known(values: Values, keys: Iterable[bytes]) -> Generator[list[bytes], None, None]:
    """Ask for the keys that are not at hand, in one round."""
    lacking = list(dict.fromkeys(key for key in keys if key not in values))
    if lacking:
        yield lacking


def scope_at(values: Values, name: str) -> Scope:
    """A scope's header; one that was never seen is empty."""
    found = values.get(scope_key(name))
    return cast(Scope, found) if found is not None else Scope(name)


def held_at(values: Values, name: str) -> Held | None:
    """What is known of an id; `None` if it is not part of the corpus now."""
    found = cast("Held | None", values.get(held_key(name)))
    return found if found is not None and found.is_present else None


def pages_of(values: Values) -> Pages:
    """The pages among the values."""
    return cast(Pages, cast("dict[bytes, Page]", values))
