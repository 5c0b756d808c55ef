"""Receipts: the outcome of one published record, as the fold decided it, for its publisher."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from stream_car.codec.unicode import hidden_characters
from stream_car.core.changes import Rejection
from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import scope_parts
from stream_car.errors import InvalidDocument
from stream_car.processing.effects import DecodedRecord, Effects, Outcome
from stream_car.processing.shard import AppliedRecord
from stream_car.suggest import suggest


class LikelyTypo(Struct, frozen=True, kw_only=True):
    """An attribute whose name looks like a field that the document lacks, or like a key, as `scope.package`."""

    attribute: str
    field: str


class UnknownKey(Struct, frozen=True, kw_only=True):
    """A key in the scope of a document that no rule pack mentions, and the one that was probably meant, if any."""

    key: str
    meant: str = ""


class HiddenCharacter(Struct, frozen=True, kw_only=True):
    """A character of a name that readers cannot see or tell apart: `place` is `id` or the key of a scope."""

    place: str
    character: str  # such as U+00A0


class Receipt(Struct, frozen=True, kw_only=True):
    """The outcome of one published message.

    `missing_keys` are the keys that the rules of the document's type need, if it joins no scope. `likely_typos` are
    attributes that were probably meant as fields or scope keys; they are kept as attributes and void nothing.
    `unknown_keys` are scope keys that no rule pack mentions; they are kept and do nothing. `hidden_characters` are
    in the id or in scopes, which are others than those without them. `kept` is false if the
    input was rejected and its bytes are not in the log, because its client has sent too much that was rejected;
    `offset` is then that of the record that counts it.
    """

    offset: int
    outcome: Outcome
    id: str | None = None
    revision: int | None = None
    type: str | None = None
    code: str | None = None
    reason: str | None = None
    scopes: int = 0
    missing_keys: tuple[str, ...] = ()
    likely_typos: tuple[LikelyTypo, ...] = ()
    unknown_keys: tuple[UnknownKey, ...] = ()
    hidden_characters: tuple[HiddenCharacter, ...] = ()
    kept: bool = True


def receipt_of(
    offset: int, decoded: DecodedRecord, outcome: Outcome, rejection: Rejection | None, ruleset: Ruleset
) -> Receipt:
    """Return the receipt of a record that had this outcome."""
    statement = decoded.statement
    document = statement if isinstance(statement, Document) else None
    accepted = document if outcome in ("accepted", "pending") else None
    scopes = len(decoded.scopes) if accepted is not None else 0
    missing = ruleset.missing_keys(accepted) if accepted is not None and not scopes else ()
    return Receipt(
        offset=offset,
        outcome=outcome,
        id=statement.id if statement is not None else (rejection.id if rejection is not None else None),
        revision=statement.revision if statement is not None else None,
        type=document.type if document is not None else None,
        code=rejection.code if rejection is not None else None,
        reason=rejection.reason if rejection is not None else None,
        scopes=scopes,
        missing_keys=missing,
        likely_typos=likely_typos(accepted, ruleset, missing) if accepted is not None else (),
        unknown_keys=unknown_keys(accepted, ruleset) if accepted is not None else (),
        hidden_characters=_hidden_characters(accepted.id, decoded.scopes) if accepted is not None else (),
    )


def _hidden_characters(document_id: str, scopes: Iterable[str]) -> tuple[HiddenCharacter, ...]:
    """Return the characters of an id and of the scopes of its document that readers cannot see or tell apart."""
    if document_id.isascii() and all(map(str.isascii, scopes)):
        return ()
    names = [("id", document_id)] if not document_id.isascii() else []
    names += [part for scope in scopes if not scope.isascii() for part in scope_parts(scope)]
    pairs = ((place, character) for place, name in names for character in hidden_characters(name))
    return tuple(HiddenCharacter(place=place, character=character) for place, character in dict.fromkeys(pairs))


def rejected_receipt(offset: int, error: InvalidDocument) -> Receipt:
    """Return the receipt of input that is not kept; the record at `offset` counts it."""
    return Receipt(
        offset=offset, outcome="rejected", id=error.document_id, code=error.code, reason=error.reason, kept=False
    )


def receipts_of(
    applied: Iterable[AppliedRecord[DecodedRecord, Effects]], ruleset: Ruleset, *, first: int = 0
) -> list[Receipt]:
    """Return the receipts of records that were applied, from offset `first` on."""
    return [
        receipt_of(item.record.offset, item.decoded, item.effects.outcome, item.effects.rejection, ruleset)
        for item in applied
        if item.record.offset >= first
    ]


_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Document)}
_FIELDS = (*_DEFAULTS, "retracted")
_SIMILARITY_MIN = 0.85


def likely_typos(document: Document, ruleset: Ruleset, missing_keys: Sequence[str] = ()) -> tuple[LikelyTypo, ...]:
    """Return the attributes of a document that were probably meant as fields, or as one of the missing scope keys.

    An attribute that some rule compares is not reported, nor one that resembles a field which the document also has.
    """
    if not document.attributes:
        return ()
    candidates = [(name, field) for name in document.attributes if (field := _similar_field(name)) is not None]
    keys = [
        LikelyTypo(attribute=name, field=f"scope.{key}")
        for name in (document.attributes if missing_keys else ())
        if (key := suggest(name.lower(), missing_keys, similarity_min=_SIMILARITY_MIN)) is not None
    ]
    if not candidates:
        return tuple(keys)
    compared = {name for rule in ruleset.rules.values() for name in rule.differ_on}
    fields = (
        LikelyTypo(attribute=name, field=field)
        for name, field in candidates
        if name not in compared and not _is_set(document, field)
    )
    return (*fields, *keys)


def unknown_keys(document: Document, ruleset: Ruleset) -> tuple[UnknownKey, ...]:
    """Return the scope keys of a document that no rule pack mentions.

    The key that was probably meant is one that the document's type lacks, or else any other.
    """
    unknown = ruleset.unknown_keys(document)
    if not unknown:
        return ()
    missing, known = ruleset.missing_keys(document), sorted(ruleset.known_keys)
    return tuple(
        UnknownKey(key=key, meant=suggest(key.lower(), missing) or suggest(key.lower(), known) or "") for key in unknown
    )


def _is_set(document: Document, field: str) -> bool:
    """Return whether a field differs from its default."""
    return field in _DEFAULTS and getattr(document, field) != _DEFAULTS[field]


@lru_cache(maxsize=4096)
def _similar_field(name: str) -> str | None:
    return suggest(name.lower().replace("-", "_"), _FIELDS, similarity_min=_SIMILARITY_MIN)
