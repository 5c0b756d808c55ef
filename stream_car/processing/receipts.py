"""What a publisher is told of one record, from what the fold made of it."""

from difflib import get_close_matches
from functools import lru_cache

import msgspec
from msgspec import Struct

from stream_car.core.documents import Document, Statement
from stream_car.core.rules import Ruleset
from stream_car.processing.effects import Effects, Outcome


class LikelyTypo(Struct, frozen=True, kw_only=True):
    """An attribute that looks like a field which the document does not have."""

    attribute: str
    field: str


class Receipt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one published message. `lacking`: keys that its type's rules need and it has not.

    `likely_typos` are attributes that were probably meant as fields; they are kept as attributes, and void nothing.
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
    """The receipt; `said` is `None` where the record could not be read."""
    document = statement if isinstance(statement, Document) else None
    refused = effects.rejection
    taken = document if effects.outcome in ("accepted", "pending") else None
    return Receipt(
        offset=offset,
        outcome=effects.outcome,
        id=statement.id if statement is not None else (refused.id if refused is not None else None),
        revision=statement.revision if statement is not None else None,
        type=document.type if document is not None else None,
        code=refused.code if refused is not None else None,
        reason=refused.reason if refused is not None else None,
        scopes=effects.scopes,
        lacking=ruleset.missing_keys(taken) if taken is not None and not effects.scopes else (),
        misspelt=likely_typos(taken, ruleset) if taken is not None else (),
    )


DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Document)}
FIELDS = (*DEFAULTS, "retracted")
NEAR = 0.85


def likely_typos(document: Document, ruleset: Ruleset) -> tuple[LikelyTypo, ...]:
    """The attributes of a document that were probably meant as fields."""
    found = [(name, field) for name in document.attributes if (field := _field_like(name)) is not None]
    if not found:
        return ()
    compared = {name for rule in ruleset.rules.values() for name in rule.differ_on}
    return tuple(
        LikelyTypo(attribute=name, field=field)
        for name, field in found
        if name not in compared and not _is_set(document, field)
    )


def _is_set(document: Document, field: str) -> bool:
    """Whether a field says more than it does where it is left out."""
    return field in DEFAULTS and getattr(document, field) != DEFAULTS[field]


@lru_cache(maxsize=4096)
def _field_like(name: str) -> str | None:
    near = get_close_matches(name.lower().replace("-", "_"), FIELDS, n=1, cutoff=NEAR)
    return near[0] if near else None
