"""Documents by the entities they are about, and the entities that a question names.

Promise: this is what a scope-indexed system may see (Definition 14): scopes and times, no rules. Entities in a
question are recognized by the regular expressions of the paper's probe; a question that matches none cannot be probed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from stream_car.core.documents import Document

FORMS: Mapping[str, re.Pattern[str]] = {
    "cve": re.compile(r"\bCVE-\d{4}-\d{4,}\b", re.IGNORECASE),
    "package": re.compile(r"^Is (\S+) still affected"),
    "product": re.compile(r"^Is (\S+) still affected"),
    "employee": re.compile(r"\bEMP\d+-\w+"),
    "ticker": re.compile(r"\b(?!CVE\b)[A-Z]{1,5}\b"),
    "question": re.compile(r"\bLEGALQ-\d+\b"),
    "case": re.compile(r"\b[A-Z]\w+ v\. [A-Z]\w+, \d+ U\.S\. \d+"),
}
Pairs = frozenset[tuple[str, str]]  # (scope key, folded value)


class Entities:
    """Documents by each `(key, value)` of their scopes, in order of time."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._pairs: dict[str, Pairs] = {}
        self._times: dict[str, tuple[int, int]] = {}
        self._names: dict[tuple[str, str], set[str]] = {}
        for document in documents:
            pairs = frozenset(
                (key, _fold(value)) for part in document.scope for key, values in part.items() for value in values
            )
            self._pairs[document.id] = pairs
            self._times[document.id] = document.precedence
            for pair in pairs:
                self._names.setdefault(pair, set()).add(document.id)

    def named_in(self, text: str) -> Pairs:
        """Return the entities that a question names, of those that occur in documents."""
        matches = ((key, match) for key, form in FORMS.items() for match in form.finditer(text))
        pairs = {(key, _fold(match.group(match.lastindex or 0))) for key, match in matches}
        return frozenset(pairs & self._names.keys())

    def matching(self, pairs: Pairs) -> list[str]:
        """Return the documents that have one of these values for every key, latest first."""
        by_key: dict[str, set[str]] = {}
        for pair in pairs:
            by_key[pair[0]] = by_key.get(pair[0], set()) | self._names.get(pair, set())
        return self._latest_first(set.intersection(*by_key.values())) if by_key else []

    def is_about(self, name: str, pairs: Pairs) -> bool:
        """Return whether a document has one of these values for every key."""
        return {key for key, _ in self._pairs[name] & pairs} == {key for key, _ in pairs}

    def beside(self, name: str) -> list[str]:
        """Return the documents with exactly the same scope, including this one, latest first."""
        pairs = self._pairs[name]
        if not pairs:
            return [name]
        shared = set.intersection(*(self._names[pair] for pair in pairs))
        return self._latest_first({other for other in shared if self._pairs[other] == pairs})

    def after(self, name: str) -> list[str]:
        """Return the later documents with the same scope, latest first."""
        return [other for other in self.beside(name) if self._times[other] > self._times[name]]

    def _latest_first(self, names: set[str]) -> list[str]:
        return sorted(names, key=lambda name: (self._times[name], name), reverse=True)


def without_repeats(*lists: Sequence[str]) -> list[str]:
    """Concatenate lists, each name once."""
    return list(dict.fromkeys(name for names in lists for name in names))


def _fold(value: str) -> str:
    """Reduce a value to letters and digits: `Nelson v. Perez, 330 U.S. 625` equals `nelson_v_perez_330us625`."""
    return "".join(char for char in value.lower() if char.isalnum())
