"""What a program may pass to a call, as the values that requests have.

Promise: everything here raises `InvalidRequest`, with the name of the argument as its code.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from stream_car.api import requests as r
from stream_car.codec.times import from_micros, parse_time
from stream_car.core.scope_names import scope_parts
from stream_car.errors import InvalidRequest
from stream_car.queries.answers import Base64
from stream_car.queries.read_options import MinRevision

ALL = 1 << 60
TOML = ".toml"

ScopeArgument = Mapping[str, str] | str
RulesArgument = str | Path | Sequence[str | Path]


def time(value: datetime | str | None) -> datetime | None:
    """Return a time as an aware `datetime`."""
    if value is None:
        return None
    try:
        moment = value if isinstance(value, datetime) else from_micros(parse_time(value))
    except (TypeError, ValueError) as error:
        raise InvalidRequest("as_of", f"`as_of` is not a time. {error}") from None
    if moment.tzinfo is None:
        raise InvalidRequest("as_of", "`as_of` has no time zone. Use datetime(..., tzinfo=UTC).")
    return moment.astimezone(UTC)


def names(values: Sequence[str], *, field: str = "names") -> tuple[str, ...]:
    """Return names as a tuple. One string, whose letters would be taken for names, is an error."""
    if isinstance(values, str):
        raise InvalidRequest(field, "Pass a list of names, not one string.")
    return tuple(values)


def revisions(values: Iterable[tuple[str, int]]) -> tuple[MinRevision, ...]:
    """Return the revisions that an answer must count."""
    return tuple(MinRevision(name, revision) for name, revision in values)


def scope(value: ScopeArgument) -> tuple[str, ...]:
    """Return the `KEY=VALUE` pairs of a scope."""
    try:
        pairs = list(scope_parts(value)) if isinstance(value, str) else list(value.items())
    except ValueError as error:
        raise InvalidRequest("scope", f"{error}. Write KEY=VALUE, and join several by commas.") from error
    if not pairs:
        raise InvalidRequest("scope", "Name at least one KEY=VALUE.")
    return tuple(f"{key}={value}" for key, value in pairs)


def rules(value: RulesArgument) -> tuple[str | r.RuleText, ...]:
    """Return rule packs: shipped ones by name, files by their text."""
    given = (value,) if isinstance(value, str | Path) else value
    return tuple(_text(Path(pack)) if _is_file(pack) else str(pack) for pack in given)


def _is_file(pack: str | Path) -> bool:
    return isinstance(pack, Path) or pack.endswith(TOML) or "/" in pack


def _text(path: Path) -> r.RuleText:
    try:
        return r.RuleText(name=path.name, text=path.read_text(encoding="utf-8"))
    except OSError as error:
        cure = "Check the path, and that you may read the file."
        raise InvalidRequest("rules", f"{path} cannot be read: {error.strerror or error}. {cure}") from error
    except UnicodeDecodeError as error:
        reason = f"{path} is not UTF-8: the byte at {error.start} is wrong. Save it as UTF-8."
        raise InvalidRequest("rules", reason) from error


def replay(corrected: Mapping[int, bytes], offsets: Iterable[int], *, dry_run: bool) -> r.Replay:
    """Return the request that replays these inputs, corrected where there is a correction."""
    return r.Replay(
        offsets=tuple(sorted({*offsets} - corrected.keys())),
        corrected=tuple(r.Corrected(offset=offset, value=_content(corrected[offset])) for offset in sorted(corrected)),
        dry_run=dry_run,
    )


def _content(value: bytes) -> str | Base64:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Base64(value)
