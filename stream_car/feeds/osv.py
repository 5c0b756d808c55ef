"""OSV records (schema 1.7): GHSA, PyPI, Go, RustSec and the like, and histories of them.

What decides. Record: `id`. Order: `commit_time` of a history line, else `modified`, else the order of
arrival (year 1 is a placeholder and no date; `published` is only used where there is nothing else, for it is
filled in later). Scope: one map for every package, with `id` and `aliases` as the names of the vulnerability.
Types: `advisory_withdrawn` where `withdrawn` is set; else `patch_released` about the packages with a fixed
version and `advisory` about those without, so that a fix never hides that another package is open. An edition
is called `ID@TIME`; where it says both, the fixes are `ID@TIME/fixed`. Packages go by their name; those of a
distribution's release (`Debian:12`), and those that one record names in several ecosystems, have the
ecosystem in front (`Debian:12/curl`), because one name means different packages there.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from stream_car.codec import format_time
from stream_car.codec.times import EARLIEST
from stream_car.core.documents import Document, ScopeMap
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import NOTHING_SEEN, Converted, Position, digest_of, next_edition, remembered
from stream_car.feeds.reading import body, first_sentence, fitted, line, moment, rest_of, scope_of, shaped, tree_of

READ = ("id", "aliases", "affected", "withdrawn", "modified", "published", "summary", "details", "schema_version")
FIXED = "/fixed"


class Range(Struct):
    """Versions that are affected; an event may say `fixed`."""

    events: list[dict[str, str]] | None = None


class Package(Struct):
    """What identifies a package."""

    name: str
    ecosystem: str = ""


class Affected(Struct):
    """A package, and which of its versions are affected."""

    package: Package | None = None
    ranges: list[Range] | None = None


class Record(Struct):
    """The fields of a record that are read."""

    id: str
    aliases: list[str] | None = None
    affected: list[Affected] | None = None
    withdrawn: str | None = None
    modified: str | None = None
    published: str | None = None
    summary: str | None = None
    details: str | None = None
    references: list[dict[str, object]] | None = None


Fixes = Mapping[str, tuple[str, ...]]  # package -> fixed versions, none where it is open


def convert(position: Position, data: bytes) -> Converted:
    """One record, or one line of a history: `{"commit_time": ..., "record": {...}}`."""
    tree = tree_of(data)
    committed = None
    if "record" in tree and "id" not in tree:
        committed = _committed(tree.get("commit_time"))
        inner = tree["record"]
        if not isinstance(inner, dict):
            raise InvalidDocument("field", "`record` must be an OSV object")
        tree = inner
    record = shaped(tree, Record)
    if not record.id.strip():
        raise InvalidDocument("field", "`id` is empty")
    seen = position.get(record.id) or NOTHING_SEEN
    own = committed if committed is not None else moment(record.modified, what="`modified`", name=record.id)
    published = moment(record.published, what="`published`", name=record.id)
    time = own if own is not None else published if published is not None else EARLIEST
    following = next_edition(seen, digest=digest_of(tree), time=time, rank=own)
    if following is None:
        return Converted(known=1)
    edition, nth = following.edition, following.nth
    label = str(len(seen.editions) + 1) if own is None else format_time(own) + (f".{nth + 1}" if nth else "")
    rest = rest_of(tree, READ)
    documents = [
        fitted(
            Document(
                id=f"{record.id}@{label}{suffix}",
                type=kind,
                time=edition.time,
                order=edition.order,
                scope=scope_of(*_scope(record, fixes)),
                attributes={**rest, "fixed": {name: list(versions) for name, versions in fixes.items() if versions}},
                title=_title(record, kind, fixes),
                text=body(_headline(record, kind, fixes), record.summary, record.details),
                source=line(record.id.partition("-")[0]),
                url=_url(record),
            )
        )
        for kind, suffix, fixes in _parts(record)
    ]
    return Converted(documents=documents, seen={record.id: remembered(seen, edition)})


def _committed(text: object) -> int:
    found = moment(text, what="`commit_time`") if isinstance(text, str) else None
    if found is None:
        raise InvalidDocument("time", "a history line needs its `commit_time`")
    return found


def _parts(record: Record) -> Iterator[tuple[str, str, Fixes]]:
    """The documents of an edition: type, what follows the edition's name, and the packages each speaks about."""
    fixes = _fixes(record)
    if moment(record.withdrawn, what="`withdrawn`", name=record.id) is not None:
        yield "advisory_withdrawn", "", fixes
        return
    fixed = {name: versions for name, versions in fixes.items() if versions}
    unfixed = {name: versions for name, versions in fixes.items() if not versions}
    if unfixed or not fixed:
        yield "advisory", "", unfixed
    if fixed:
        yield "patch_released", FIXED if unfixed else "", fixed


def _fixes(record: Record) -> Fixes:
    """The fixed versions of every package."""
    affected = [one for one in record.affected or () if one.package is not None and one.package.name.strip()]
    homes: dict[str, set[str]] = {}
    for one in affected:
        assert one.package is not None
        homes.setdefault(one.package.name, set()).add(one.package.ecosystem)
    found: dict[str, dict[str, None]] = {}
    for one in affected:
        assert one.package is not None
        name, home = one.package.name, one.package.ecosystem
        called = f"{home}/{name}" if home and (":" in home or len(homes[name]) > 1) else name
        versions = found.setdefault(called, {})
        for some in one.ranges or ():
            versions.update(dict.fromkeys(event["fixed"] for event in some.events or () if event.get("fixed")))
    return {name: tuple(versions) for name, versions in found.items()}


def _scope(record: Record, fixes: Fixes) -> Iterator[Mapping[str, tuple[str, ...]] | ScopeMap]:
    names = (record.id, *(record.aliases or ()))
    yield {"record": (record.id,)}
    yield {"vulnerability": names, "package": tuple(fixes)}


def _title(record: Record, kind: str, fixes: Fixes) -> str:
    said = (record.summary or "").strip() or f"{record.id}: {first_sentence(record.details)}"
    if kind == "advisory_withdrawn":
        return line(said if said.lower().startswith("withdrawn") else f"Withdrawn: {said}")
    if kind == "patch_released":
        versions = next(iter(fixes.values())) if len(fixes) == 1 else ()
        return line(f"{said} (fixed{f' in {versions[-1]}' if len(versions) == 1 else ''})")
    return line(said)


def _headline(record: Record, kind: str, fixes: Fixes) -> str:
    called = ", ".join((record.id, *(record.aliases or ())))
    if kind == "advisory_withdrawn":
        return f"Withdrawn: {called} ({', '.join(fixes)})."
    told = [f"{name} {', '.join(versions)}".strip() for name, versions in fixes.items()]
    return f"{called}. {'Fixed in' if kind == 'patch_released' else 'No fix known for'}: {'; '.join(told)}."


def _url(record: Record) -> str:
    """The advisory's own page, where the record names one."""
    for wanted in ("ADVISORY", "WEB"):
        for reference in record.references or ():
            url = reference.get("url")
            if reference.get("type") == wanted and isinstance(url, str):
                return line(url)
    return ""
