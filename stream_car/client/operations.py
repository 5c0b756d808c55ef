"""Every call of the service, as the request to send and the answer to read; nothing here waits.

Promise: one description of each call for both clients. Long lists are asked for in pieces that the service takes.
"""

from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from stream_car.api import messages as m
from stream_car.client.retries import Ask, Plan, answer, as_body
from stream_car.codec import format_time
from stream_car.errors import InvalidRequest
from stream_car.queries import answers as a
from stream_car.queries.limits import pairs_of, require_list, require_time

Parts = Mapping[str, str] | str
ALL = 1 << 60
MENDED_BYTES = 1 << 20  # of mended input sent at once
TOML = ".toml"
Seen = m.Seen | tuple[str, int]


def query(
    text: str, k: int, depth: int, as_of: int | None, budget: int | None, after: Sequence[Seen], timeout_ms: int
) -> Plan[a.Answer]:
    """A question in words."""
    body = m.Query(
        text=text,
        k=k,
        depth=depth,
        as_of=_time(as_of),
        budget=budget,
        after=_seen(after),
        timeout_ms=timeout_ms,
    )
    return answer((yield _post("query", body)), a.Answer)


def relevance(text: str, k: int) -> Plan[tuple[a.Evidence, ...]]:
    """A question for plain search."""
    return answer((yield _post("relevance", m.Relevance(text=text, k=k))), tuple[a.Evidence, ...])


def resolve(
    names: Sequence[str], as_of: int | None, after: Sequence[Seen], timeout_ms: int
) -> Plan[tuple[a.Resolution, ...]]:
    """Names of documents, chunks or records, `NAMES_MAX` at a time."""
    require_list(names)
    found: tuple[a.Resolution, ...] = ()
    for at in range(0, len(names), m.NAMES_MAX):
        some = tuple(names[at : at + m.NAMES_MAX])
        body = m.Resolve(names=some, as_of=_time(as_of), after=_seen(after), timeout_ms=timeout_ms)
        found += answer((yield _post("resolve", body)), tuple[a.Resolution, ...])
    return found


def check(
    ids: Sequence[str], question: str | None, depth: int, as_of: int | None, after: Sequence[Seen], timeout_ms: int
) -> Plan[a.Audit]:
    """A retrieved set."""
    require_list(ids)
    body = m.Check(
        ids=tuple(ids), question=question, depth=depth, as_of=_time(as_of), after=_seen(after), timeout_ms=timeout_ms
    )
    return answer((yield _post("check", body)), a.Audit)


def frontier(parts: Parts, as_of: int | None) -> Plan[tuple[a.Frontier, ...]]:
    """What is in force in scopes."""
    return answer((yield _get("frontier", [*_scope(parts), *_as_of(as_of)])), tuple[a.Frontier, ...])


def history(parts: Parts) -> Plan[tuple[a.History, ...]]:
    """The timelines of scopes."""
    return answer((yield _get("history", _scope(parts))), tuple[a.History, ...])


def changes(parts: Parts | None, after: int, limit: int, behind: str) -> Plan[tuple[a.Told, ...]]:
    """Changes of frontiers, a page at a time."""
    found: tuple[a.Told, ...] = ()
    scope = _scope(parts) if parts else []
    while len(found) < limit:
        most = min(limit - len(found), m.PAGE_MAX)
        place = [("behind", behind)] if behind else []
        page = answer((yield _get("changes", [*scope, *place, *_page(after, most)])), tuple[a.Told, ...])
        found += page
        if len(page) < most:
            break
        behind = page[-1].position
    return found


def explain(name: str, as_of: int | None) -> Plan[a.Explanation]:
    """One document."""
    return answer((yield _get(f"explain/{_quoted(name)}", _as_of(as_of))), a.Explanation)


def rejected(after: int, limit: int) -> Plan[tuple[a.Rejected, ...]]:
    """Refused input, a page at a time."""
    found: tuple[a.Rejected, ...] = ()
    while len(found) < limit:
        most = min(limit - len(found), m.PAGE_MAX)
        page = answer((yield _get("rejected", _page(after, most))), tuple[a.Rejected, ...])
        found += page
        if len(page) < most:
            break
        after = page[-1].oseq
    return found


def replay(mended: Mapping[int, bytes], only: Collection[int], *, trial: bool) -> Plan[tuple[a.Replayed, ...]]:
    """Refused input again: those mended or named, or else all, some at a time."""
    named = sorted({*only, *mended})
    if not named:
        named = sorted([one.offset for one in (yield from rejected(0, ALL))])
    found: tuple[a.Replayed, ...] = ()
    for some in _portions(named, mended):
        sent = tuple(m.Mended(offset=at, value=_value(mended[at])) for at in some if at in mended)
        as_it_came = tuple(at for at in some if at not in mended)
        body = m.Replay(offsets=as_it_came, mended=sent, dry_run=trial)
        found += answer((yield _post("replay", body)), tuple[a.Replayed, ...])
    return found


def _portions(named: Sequence[int], mended: Mapping[int, bytes]) -> Iterator[list[int]]:
    """As many inputs as the service takes at once."""
    portion: list[int] = []
    size = 0
    for at in named:
        size += len(mended.get(at, b""))
        if portion and (len(portion) == m.MENDED_MAX or size > MENDED_BYTES):
            yield portion
            portion, size = [], len(mended.get(at, b""))
        portion.append(at)
    if portion:
        yield portion


def _value(sent: bytes) -> str | m.Base64:
    try:
        return sent.decode()
    except UnicodeDecodeError:
        return m.Base64(b64encode(sent).decode())


def rebuild(packs: Sequence[str | Path], future: Literal["wait", "apply"] | None, *, dry_run: bool) -> Plan[m.Progress]:
    """Other rules; packs that are files are sent along."""
    files = [Path(pack) for pack in packs if isinstance(pack, Path) or pack.endswith(TOML)]
    names = tuple(str(pack) for pack in packs if Path(pack) not in files)
    body = m.Rebuild(packs=names, texts=tuple(map(_text, files)), future=future, dry_run=dry_run)
    ask = Ask(method="POST", path="/v1/rebuild", body=as_body(body), repeatable=False)
    return answer((yield ask), m.Progress)


def _text(file: Path) -> m.PackText:
    try:
        return m.PackText(name=file.name, text=file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest("packs", f"{file} cannot be read: {error}") from error


def rebuilding() -> Plan[m.Progress]:
    """How far a rebuild is."""
    return answer((yield _get("rebuild")), m.Progress)


def pending() -> Plan[tuple[m.Waiting, ...]]:
    """What waits."""
    return answer((yield _get("pending")), tuple[m.Waiting, ...])


def rules() -> Plan[m.Rules]:
    """The rules in force."""
    return answer((yield _get("rules")), m.Rules)


def status() -> Plan[m.Standing]:
    """Where the service stands."""
    return answer((yield _get("status")), m.Standing)


def subscription(
    view: str,
    ids: Sequence[str],
    types: Sequence[str],
    domains: Sequence[str],
    parts: Parts | None,
    snapshot: bool | None,
) -> Ask:
    """The request for a stream of changes."""
    chosen = [("id", name) for name in ids] + [("type", name) for name in types] + [("domain", n) for n in domains]
    said = [("snapshot", str(snapshot).lower())] if snapshot is not None else []
    return _get("subscribe", [("view", view), *chosen, *(_scope(parts) if parts else []), *said])


def _post(name: str, body: Struct) -> Ask:
    return Ask(method="POST", path=f"/v1/{name}", body=as_body(body))


def _get(name: str, parameters: Sequence[tuple[str, str]] = ()) -> Ask:
    return Ask(method="GET", path=f"/v1/{name}", parameters=tuple(parameters))


def _quoted(name: str) -> str:
    """An id as one step of a path; dots alone would be taken for folders."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _time(as_of: int | None) -> str | None:
    require_time(as_of)
    try:
        return format_time(as_of) if as_of is not None else None
    except ValueError as error:
        raise InvalidRequest("as_of", f"`as_of` is no time: {error}") from None


def _as_of(as_of: int | None) -> list[tuple[str, str]]:
    time = _time(as_of)
    return [] if time is None else [("as_of", time)]


def _page(after: int, limit: int) -> list[tuple[str, str]]:
    return [("after", str(after)), ("limit", str(limit))]


def _scope(parts: Parts) -> list[tuple[str, str]]:
    return [("scope", f"{key}={value}") for key, value in pairs_of(parts)]


def _seen(after: Sequence[Seen]) -> tuple[m.Seen, ...]:
    return tuple(_each_seen(after))


def _each_seen(after: Sequence[Seen]) -> Iterator[m.Seen]:
    for one in after:
        yield one if isinstance(one, m.Seen) else m.Seen(*one)
