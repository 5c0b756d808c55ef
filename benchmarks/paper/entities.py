"""Documents by the entities they speak about, and the entities that a question names by their form.

Promise: what a scope-indexed system may see (Definition 14): scopes and times, no rules. The forms are
the regular expressions of the paper's probe; a question that names nothing in such a form cannot be probed.
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
Pairs = frozenset[tuple[str, str]]


class Entities:
    """Every document by each `(key, value)` of its scope, in order of time."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._scopes: dict[str, Pairs] = {}
        self._times: dict[str, tuple[int, int]] = {}
        self._having: dict[tuple[str, str], set[str]] = {}
        for one in documents:
            pairs = frozenset((key, _folded(value)) for part in one.scope for key, vs in part.items() for value in vs)
            self._scopes[one.id] = pairs
            self._times[one.id] = one.precedence
            for pair in pairs:
                self._having.setdefault(pair, set()).add(one.id)

    def named(self, text: str) -> Pairs:
        """The values that a question names in their form and that some document has."""
        found = {
            (key, _folded(match.group(match.lastindex or 0)))
            for key, form in FORMS.items()
            for match in form.finditer(text)
        }
        return frozenset(found & self._having.keys())

    def matching(self, pairs: Pairs) -> list[str]:
        """The documents that have, for every key, one of these values; the latest first."""
        by_key: dict[str, set[str]] = {}
        for pair in pairs:
            by_key[pair[0]] = by_key.get(pair[0], set()) | self._having.get(pair, set())
        return self._latest_first(set.intersection(*by_key.values())) if by_key else []

    def is_about(self, name: str, pairs: Pairs) -> bool:
        """Whether a document has, for every key among these, one of the values."""
        return {key for key, _ in self._scopes[name] & pairs} == {key for key, _ in pairs}

    def beside(self, name: str) -> list[str]:
        """The documents of exactly the same scope, the document among them; the latest first."""
        pairs = self._scopes[name]
        if not pairs:
            return [name]
        shared = set.intersection(*(self._having[pair] for pair in pairs))
        return self._latest_first({one for one in shared if self._scopes[one] == pairs})

    def after(self, name: str) -> list[str]:
        """Those of the same scope that are later, the latest first."""
        return [one for one in self.beside(name) if self._times[one] > self._times[name]]

    def _latest_first(self, names: set[str]) -> list[str]:
        return sorted(names, key=lambda name: (self._times[name], name), reverse=True)


def without_repeats(*lists: Sequence[str]) -> list[str]:
    """The lists behind one another, each name once."""
    return list(dict.fromkeys(name for one in lists for name in one))


def _folded(value: str) -> str:
    """A value as letters and digits: `Nelson v. Perez, 330 U.S. 625` is written `nelson_v_perez_330us625` too."""
    return "".join(char for char in value.lower() if char.isalnum())
