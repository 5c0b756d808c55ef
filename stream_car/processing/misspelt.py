"""Attributes that look like misspelt fields: `superseeds` is kept as an attribute, and voids nothing.

Promise: a hint, never a refusal; what a rule compares is no mistake, and neither is a name beside the field that it
resembles. Cost: a look-up an attribute, one comparison a new name.
"""

from difflib import get_close_matches
from functools import lru_cache

import msgspec

from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.queries.answers import Misspelt

DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Document)}
FIELDS = (*DEFAULTS, "retracted")
NEAR = 0.85


def misspelt(document: Document, ruleset: Ruleset) -> tuple[Misspelt, ...]:
    """The attributes of a document that were probably meant as fields."""
    found = [(name, field) for name in document.attributes if (field := _field_like(name)) is not None]
    if not found:
        return ()
    compared = {name for rule in ruleset.rules.values() for name in rule.differ_on}
    return tuple(
        Misspelt(attribute=name, field=field)
        for name, field in found
        if name not in compared and not _is_said(document, field)
    )


def _is_said(document: Document, field: str) -> bool:
    """Whether a field says more than it does where it is left out."""
    return field in DEFAULTS and getattr(document, field) != DEFAULTS[field]


@lru_cache(maxsize=4096)
def _field_like(name: str) -> str | None:
    near = get_close_matches(name.lower().replace("-", "_"), FIELDS, n=1, cutoff=NEAR)
    return near[0] if near else None
