"""What a program may pass to a call, as the values that requests have.

Promise: everything here raises `InvalidRequest`, with the name of the argument as its code. These functions only bring
arguments into the form of a request; `codec.check_request` checks every request that was built from them.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, SupportsIndex, TypeVar

from msgspec import DecodeError, Struct

from stream_car.api import requests as r
from stream_car.codec import check_request
from stream_car.codec.expectations import TIME_FORMS, must_be, with_article
from stream_car.codec.times import from_micros, parse_time, to_micros
from stream_car.core.scope_names import scope_parts
from stream_car.errors import DocumentsRejected, InvalidRequest
from stream_car.feeds import find_format
from stream_car.lockfiles.dependencies import DependencyFile
from stream_car.queries.answers import Base64, Published
from stream_car.queries.read_options import MinRevision

_log = logging.getLogger("stream_car")

ALL = r.SAFE_INTEGER_MAX
TOML = ".toml"
PAIRS = "KEY=VALUE, several joined by commas, or a mapping of strings to strings"
RULE_PACKS = "a name of a shipped rule pack, a path, or a list of these"
CORRECTIONS = "a mapping of offsets to text or bytes"
DEPENDENCY_FILES = "a list of paths"
REVISIONS = "a list of pairs (id, revision)"

OnRejected = Literal["raise", "log", "ignore"]
ScopeArgument = Mapping[str, str] | str
ScopesArgument = Mapping[str, str] | Mapping[str, Sequence[str]] | str
RulesArgument = str | Path | Sequence[str | Path]
DependencyFileArgument = str | Path | DependencyFile
T = TypeVar("T")


class Opening(Struct, frozen=True, kw_only=True):
    """The arguments of `open` that are checked like those of a request."""

    future: r.Future | None = None


class Publishing(r.PublishOptions, frozen=True, kw_only=True):
    """The arguments of `publish` that are checked like those of a request."""

    on_rejected: OnRejected = "log"


def publishing(*, strict: bool, format: str, on_rejected: OnRejected) -> r.PublishOptions:
    """Return how documents are published."""
    options = check_request(Publishing(strict=strict, format=format, on_rejected=on_rejected))
    if options.format:
        find_format(options.format)
    return r.PublishOptions(strict=options.strict, format=options.format)


def report_rejected(published: Published, on_rejected: OnRejected) -> Published:
    """Return what became of a publication. Raises `DocumentsRejected`, or logs, if a document was rejected."""
    unreadable = published.converted.unreadable if published.converted is not None else ()
    problems = (
        *(f"Document {rec.id!r} ({rec.code}): {rec.reason}" for rec in published.receipts if rec.outcome == "rejected"),
        *(f"What is at {piece.where} ({piece.code}): {piece.reason}" for piece in unreadable),
    )
    if not problems or on_rejected == "ignore":
        return published
    number, total = len(problems), len(published.receipts) + len(unreadable)
    subject = f"{number:,} of {total:,} documents {'was' if number == 1 else 'were'}"
    head = f"{subject} rejected; the others are stored." if number < total else f"{subject} rejected."
    if on_rejected == "raise":
        raise DocumentsRejected(head, problems)
    _log.warning("%s The first: %s", head, problems[0])
    return published


def opening(future: r.Future | None) -> r.Future | None:
    """Return `future` if it has one of its values."""
    return check_request(Opening(future=future)).future


def _wrong(field: str, expectation: str, value: object) -> InvalidRequest:
    return InvalidRequest(field, must_be(field, expectation, value))


def time(value: datetime | str | None, field: str = "as_of") -> datetime | None:
    """Return a time as an aware `datetime`."""
    if value is None:
        return None
    if not isinstance(value, datetime | str):
        raise _wrong(field, f"an aware datetime, {TIME_FORMS}", value)
    try:
        if isinstance(value, str):
            return from_micros(parse_time(value))
        if value.utcoffset() is None:
            raise InvalidRequest(field, f"`{field}` has no time zone. Use datetime(..., tzinfo=UTC).")
        return from_micros(to_micros(value))
    except OverflowError:
        raise InvalidRequest(field, f"`{field}` is not a time. In UTC it is outside the years 0001 to 9999.") from None
    except ValueError as error:
        raise InvalidRequest(field, f"`{field}` is not a time. {error}") from None


def names(values: Iterable[str], *, field: str = "names") -> tuple[str, ...]:
    """Return names as a tuple. One string, whose letters would be taken for names, is an error."""
    return _items(values, field, "a list of strings")


def _items(values: Iterable[T], field: str, expectation: str) -> tuple[T, ...]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise _wrong(field, expectation, values)
    return tuple(values)


def parts(values: Iterable[r.Part]) -> tuple[r.Part, ...]:
    """Return what an answer includes of its documents."""
    return _items(values, "include", "a list of strings")


def revisions(values: Iterable[tuple[str, int]]) -> tuple[MinRevision, ...]:
    """Return the revisions that an answer must count."""
    return tuple(map(_revision, _items(values, "min_revisions", REVISIONS)))


def _revision(value: object) -> MinRevision:
    if isinstance(value, MinRevision):
        return value
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidRequest("min_revisions", f"`min_revisions` must be {REVISIONS}. {value!r:.60} is not a pair.")
    return MinRevision(*value)


def scope(value: ScopeArgument) -> tuple[str, ...]:
    """Return the `KEY=VALUE` pairs of a scope."""
    pairs = optional_scope(value)
    if not pairs:
        raise InvalidRequest("scope", "`scope` is empty. Name at least one KEY=VALUE.")
    return pairs


def optional_scope(value: ScopesArgument | None) -> tuple[str, ...]:
    """Return the `KEY=VALUE` pairs of scopes, or none if there is no scope. A key may have several values."""
    if value is None or value == "":
        return ()
    if not isinstance(value, str | Mapping):
        raise _wrong("scope", PAIRS, value)
    try:
        pairs = list(scope_parts(value)) if isinstance(value, str) else list(_each_pair(value))
    except (DecodeError, UnicodeEncodeError):
        raise _wrong("scope", PAIRS, value) from None
    except ValueError as error:
        raise InvalidRequest("scope", f"{must_be('scope', PAIRS, value)} {error}") from None
    for pair in pairs:
        for part in pair:
            if not isinstance(part, str):
                raise InvalidRequest("scope", f"`scope` must be {PAIRS}. It has {part!r:.60}, which is not a string.")
    return tuple(f"{key}={value}" for key, value in pairs)


def _each_pair(scope: Mapping[str, str | Sequence[str]]) -> Iterator[tuple[str, str]]:
    for key, values in scope.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            yield key, values
        else:
            yield from ((key, value) for value in values)


def rules(value: RulesArgument) -> tuple[str | r.RuleText, ...]:
    """Return rule packs: shipped ones by name, files by their text."""
    return tuple(_text(Path(pack)) if _is_file(pack) else str(pack) for pack in rule_paths(value))


def rule_paths(value: RulesArgument) -> tuple[str | Path, ...]:
    """Return rule packs: shipped ones by name, files by their path."""
    packs = (value,) if isinstance(value, str | Path) else _items(value, "rules", RULE_PACKS)
    for pack in packs:
        if not isinstance(pack, str | Path):
            raise _wrong("rules", RULE_PACKS, value if len(packs) > 1 else pack)
    return packs


def _is_file(pack: str | Path) -> bool:
    return isinstance(pack, Path) or pack.endswith(TOML) or "/" in pack


def _text(path: Path) -> r.RuleText:
    return r.RuleText(name=path.name, text=_read(path, "rules"))


def _read(path: Path, field: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        cure = "Check the path, and that you may read the file."
        raise InvalidRequest(field, f"{path} cannot be read: {error.strerror or error}. {cure}") from error
    except UnicodeDecodeError as error:
        reason = f"{path} is not UTF-8: the byte at {error.start} is wrong. Save it as UTF-8."
        raise InvalidRequest(field, reason) from error


def dependency_files(values: Iterable[DependencyFileArgument]) -> tuple[DependencyFile, ...]:
    """Return lockfiles and bills of material with their texts."""
    return tuple(map(_dependency_file, _items(values, "files", DEPENDENCY_FILES)))


def _dependency_file(value: DependencyFileArgument) -> DependencyFile:
    if isinstance(value, DependencyFile):
        return value
    file = path(value, "files")
    return DependencyFile(name=file.name, text=_read(file, "files"))


def path(value: object, field: str) -> Path:
    """Return a path. An empty text, which would mean the current folder, is an error."""
    if not isinstance(value, str | Path) or value == "" or "\0" in str(value):
        raise _wrong(field, "a path", value)
    return Path(value)


def instance(value: T, kind: type[T], field: str) -> T:
    """Return a value if it is of this class."""
    if not isinstance(value, kind):
        raise _wrong(field, with_article(kind.__name__), value)
    return value


def replay(corrected: Mapping[int, bytes | str] | None, offsets: Iterable[int], *, dry_run: bool) -> r.Replay:
    """Return the request that replays these inputs, corrected where there is a correction."""
    corrections = {} if corrected is None else corrected
    if not isinstance(corrections, Mapping):
        raise _wrong("corrected", CORRECTIONS, corrections)
    others = _items(offsets, "offsets", "a list of offsets")
    for place, offset in enumerate(others):
        if not isinstance(offset, SupportsIndex):
            raise InvalidRequest("offsets", must_be(f"offsets[{place}]", "an integer", offset))
    return r.Replay(
        offsets=tuple(dict.fromkeys(offset for offset in others if offset not in corrections)),
        corrected=tuple(r.Corrected(offset=offset, value=_content(value)) for offset, value in corrections.items()),
        dry_run=dry_run,
    )


def _content(value: bytes | str) -> str | Base64:
    if isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        raise _wrong("corrected", CORRECTIONS, value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Base64(value)
