"""Receipts: the outcome of one published record, as the fold decided it, for its publisher."""

from difflib import get_close_matches
from functools import lru_cache

import msgspec
from msgspec import Struct

from stream_car.core.documents import Document, Statement
from stream_car.core.rules import Ruleset
from stream_car.processing.effects import Effects, Outcome


class LikelyTypo(Struct, frozen=True, kw_only=True):
    """An attribute whose name looks like a misspelt field that the document lacks."""

    attribute: str
    field: str


class Receipt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one published message.

    `lacking` are the keys that the rules of the document's type need, if it joins no scope. `misspelt` are attributes
    that were probably meant as fields; they are kept as attributes and void nothing.
    """

    offset: int
    outcome: Outcome
    id: str | None = None
    revision: int | None = None
    type: str | None = None
    code: str | None = None
    reason: str | None = None
    scopes: int = 0
    lacking: tuple[str, ...] = ()
    misspelt: tuple[LikelyTypo, ...] = ()


def receipt_of(offset: int, statement: Statement | None, effects: Effects, ruleset: Ruleset) -> Receipt:
    """Return the receipt of a record. `statement` is `None` if the record could not be decoded."""
    document = statement if isinstance(statement, Document) else None
    rejection = effects.rejection
    accepted = document if effects.outcome in ("accepted", "pending") else None
    return Receipt(
        offset=offset,
        outcome=effects.outcome,
        id=statement.id if statement is not None else (rejection.id if rejection is not None else None),
        revision=statement.revision if statement is not None else None,
        type=document.type if document is not None else None,
        code=rejection.code if rejection is not None else None,
        reason=rejection.reason if rejection is not None else None,
        scopes=effects.scopes,
        lacking=ruleset.missing_keys(accepted) if accepted is not None and not effects.scopes else (),
        misspelt=likely_typos(accepted, ruleset) if accepted is not None else (),
    )


_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Document)}
_FIELDS = (*_DEFAULTS, "retracted")
_SIMILARITY_MIN = 0.85


def likely_typos(document: Document, ruleset: Ruleset) -> tuple[LikelyTypo, ...]:
    """Return the attributes of a document that were probably meant as fields.

    An attribute that some rule compares is not reported, nor one that resembles a field which the document also has.
    """
    candidates = [(name, field) for name in document.attributes if (field := _field_like(name)) is not None]
    if not candidates:
        return ()
    compared = {name for rule in ruleset.rules.values() for name in rule.differ_on}
    return tuple(
        LikelyTypo(attribute=name, field=field)
        for name, field in candidates
        if name not in compared and not _is_set(document, field)
    )


def _is_set(document: Document, field: str) -> bool:
    """Return whether a field differs from its default."""
    return field in _DEFAULTS and getattr(document, field) != _DEFAULTS[field]


@lru_cache(maxsize=4096)
def _field_like(name: str) -> str | None:
    matches = get_close_matches(name.lower().replace("-", "_"), _FIELDS, n=1, cutoff=_SIMILARITY_MIN)
    return matches[0] if matches else None
