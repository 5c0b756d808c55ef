"""Attributes that look like misspelt fields: `superseeds` is kept as an attribute, and voids nothing.

Promise: a hint, never a refusal; what a rule compares is no mistake, and neither is a name beside the
field that it resembles. Cost: one more reading of the JSON a document, one comparison a new name.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

import msgspec

from stream_car.cli.summary import Misspelt
from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset

FIELDS = (*Document.__struct_fields__, "retracted")
NEAR = 0.85


class Misspellings:
    """Looks at documents on their way, and counts."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._known = {*FIELDS, "v", *(name for rule in ruleset.rules.values() for name in rule.differ_on)}
        self._meant: dict[str, str | None] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def passing(self, documents: Iterable[bytes]) -> Iterator[bytes]:
        """The documents as they are."""
        for text in documents:
            self._look(text)
            yield text

    def found(self) -> list[Misspelt]:
        """What was seen so far."""
        return sorted(Misspelt(attribute=a, field=f, documents=n) for (a, f), n in self._counts.items())

    def _look(self, text: bytes) -> None:
        try:
            said = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        except msgspec.DecodeError:
            return  # its receipt will tell
        for name in said.keys() - self._known:
            if name not in self._meant:
                self._meant[name] = _field_like(name)
            meant = self._meant[name]
            if meant is not None and meant not in said:
                self._counts[name, meant] += 1


def _field_like(name: str) -> str | None:
    near = get_close_matches(name.lower().replace("-", "_"), FIELDS, n=1, cutoff=NEAR)
    return near[0] if near else None
