"""OSV records (schema 1.7) of GHSA, PyPI, Go, RustSec and others, and histories of them.

What decides. Record: `id`. Order: `commit_time` of a history line, else `modified`, else arrival. Year 1 is a
placeholder and not a date; `published` dates an edition only if there is nothing else, because it is filled in later.
It opens the record: the attribute `record_since`. A record without any of these dates is rejected. One without
`affected` is valid, and about no package. Scope: one map for the packages of a document, with `id` and `aliases` as the
names of the vulnerability. Types: `advisory_withdrawn` if `withdrawn` is set; else `patch_released` about the packages
with a fixed version and `advisory` about those without, so that a fix never hides that another package is open. An
edition's id is `ID@TIME`; if it has both kinds, the fixes are `ID@TIME/fixed`. Packages are named as published. Those
of a distribution's release (`Debian:12`), and those that one record names in several ecosystems, get the ecosystem as a
prefix (`Debian:12/curl`), because there the same name means different packages. Material: the aliases, whether the
record is withdrawn, and the ranges of each package, or its versions if it has no range but those of a repository. An
edition with another title, text, score or list of references is only `revised`. A fix that is only known as a commit
counts as a fix, and is called one: `commit c45d7c49a1b2`; it is no fixed version.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from stream_car.codec import format_time
from stream_car.codec.times import EARLIEST
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import (
    EMPTY_STATE,
    Conversion,
    FeedState,
    add_edition,
    digest_of,
    material_digest,
    next_edition,
)
from stream_car.feeds.fields import (
    decode_fields,
    first_sentence,
    make_document,
    other_fields,
    parse_date,
    parse_object,
    record_since,
    require_date,
    single_line,
)
from stream_car.feeds.splitting import BYTE_ORDER_MARK
from stream_car.versions.osv_ranges import AffectedPackage

CONVERTED = ("id", "aliases", "affected", "withdrawn", "modified", "published", "summary", "details", "schema_version")
FIXED = "/fixed"
NAMED_MAX = 3  # packages whose fixed versions are part of `state_text`


class OsvRecord(Struct):
    """The fields of a record that are converted."""

    id: str
    aliases: list[str] | None = None
    affected: list[AffectedPackage] | None = None
    withdrawn: str | None = None
    modified: str | None = None
    published: str | None = None
    summary: str | None = None
    details: str | None = None
    references: list[dict[str, object]] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the vulnerability."""
        return (self.id, *(self.aliases or ()))


COMMIT_SHOWN = 12  # characters of a commit

Fixes = Mapping[str, tuple[str, ...]]  # package -> fixed versions; empty if it is open


def convert(state: FeedState, data: bytes) -> Conversion:
    """Convert one record, or one line of a history: `{"commit_time": ..., "record": {...}}`."""
    tree = parse_object(data)
    committed = None
    if "record" in tree and "id" not in tree:
        commit_time, inner = tree.get("commit_time"), tree["record"]
        text = commit_time if isinstance(commit_time, str) else None
        committed = require_date(text, "The `commit_time` of a history line")
        if not isinstance(inner, dict):
            raise InvalidDocument("field", "`record` must be an OSV object.")
        tree = inner
    record = decode_fields(tree, OsvRecord)
    if not record.id.strip():
        raise InvalidDocument("field", "`id` must not be empty.")
    if committed is None and not record.modified and not record.published:
        reason = "The record has no date. OSV requires `modified`, such as 2024-01-31T00:00:00Z."
        raise InvalidDocument("field", reason, record.id)
    before = state.get(record.id) or EMPTY_STATE
    rank = committed if committed is not None else parse_date(record.modified, "`modified`", record.id)
    published = parse_date(record.published, "`published`", record.id)
    time = next((date for date in (rank, published) if date is not None), EARLIEST)
    new = next_edition(before, digest=digest_of(tree), time=time, rank=rank)
    if new is None:
        return Conversion(known=1)
    edition, nth = new.edition, new.nth
    label = str(len(before.editions) + 1) if rank is None else format_time(rank) + (f".{nth + 1}" if nth else "")
    versions = _fixed_events(record, git=False)
    attributes = {**other_fields(tree, CONVERTED), "material": _material(record), **record_since(record.published)}
    affected = _affected_by_package(tree, record)
    documents = [
        make_document(
            {"record": (record.id,)},
            {"vulnerability": record.names, "package": tuple(fixes)},
            id=f"{record.id}@{label}{suffix}",
            type=kind,
            time=edition.time,
            order=edition.order,
            attributes={
                **attributes,
                "affected": [entry for name in fixes for entry in affected.get(name, ())],
                "fixed": {name: list(versions[name]) for name in fixes if versions.get(name)},
                **_state(record, kind, fixes),
            },
            title=_title(record, kind, fixes),
            text=(_headline(record, kind, fixes), record.summary, record.details),
            source=record.id.partition("-")[0],
            url=_url(record),
        )
        for kind, suffix, fixes in _parts(record)
    ]
    return Conversion(documents=documents, states={record.id: add_edition(before, edition)})


def history_line(data: bytes, time: int) -> bytes:
    """Return a record as a line of a history, with the time in microseconds at which it was committed."""
    record = msgspec.Raw(data.removeprefix(BYTE_ORDER_MARK))
    return msgspec.json.encode({"commit_time": format_time(time), "record": record})


def _parts(record: OsvRecord) -> Iterator[tuple[str, str, Fixes]]:
    """Yield the documents of an edition: the type, the suffix of the id, and the packages of each."""
    fixes = _fixes(record)
    if parse_date(record.withdrawn, "`withdrawn`", record.id) is not None:
        yield "advisory_withdrawn", "", fixes
        return
    fixed = {name: versions for name, versions in fixes.items() if versions}
    unfixed = {name: versions for name, versions in fixes.items() if not versions}
    if unfixed or not fixed:
        yield "advisory", "", unfixed
    if fixed:
        yield "patch_released", FIXED if unfixed else "", fixed


def _material(record: OsvRecord) -> str:
    affected = [
        {
            "package": [entry.package.ecosystem, entry.package.name] if entry.package is not None else [],
            "ranges": sorted([each.type, each.repo or "", *map(_sorted_items, each.events or ())] for each in ranges),
            "versions": [] if any(each.type != "GIT" for each in ranges) else sorted(entry.versions or ()),
        }
        for entry in record.affected or ()
        for ranges in [entry.ranges or ()]
    ]
    affected.sort(key=digest_of)
    is_withdrawn = parse_date(record.withdrawn, "`withdrawn`", record.id) is not None
    return material_digest([sorted(record.names), is_withdrawn, affected])


def _sorted_items(event: Mapping[str, str]) -> str:
    return " ".join(f"{name}={version}" for name, version in sorted(event.items()))


def _state(record: OsvRecord, kind: str, fixes: Fixes) -> dict[str, object]:
    """Return the attributes that say more about the state of the record: since when it holds, or in which versions."""
    if kind == "advisory_withdrawn":
        since = parse_date(record.withdrawn, "`withdrawn`", record.id)
        return {"state_since": format_time(since)} if since is not None else {}
    if kind != "patch_released":
        return {}
    named = list(fixes.items())[:NAMED_MAX]
    more = f" and {len(fixes) - NAMED_MAX} more packages" if len(fixes) > NAMED_MAX else ""
    parts = [f"{name} {', '.join(versions)}" if len(fixes) > 1 else ", ".join(versions) for name, versions in named]
    return {"state_text": single_line(f"fixed in {'; '.join(parts)}{more}")}


def _fixes(record: OsvRecord) -> Fixes:
    """Return the fixed versions of every package, or the commits if no version is known."""
    commits = _fixed_events(record, git=True)
    return {
        name: versions or tuple(f"commit {commit[:COMMIT_SHOWN]}" for commit in commits[name])
        for name, versions in _fixed_events(record, git=False).items()
        if name
    }


def _fixed_events(record: OsvRecord, *, git: bool) -> Fixes:
    """Return the fixed versions of every package, or with `git` the commits that fix it."""
    fixes: dict[str, dict[str, None]] = {}
    for entry, name in _named(record):
        fixed = fixes.setdefault(name, {})
        for each in entry.ranges or ():
            if (each.type == "GIT") == git:
                fixed.update(dict.fromkeys(event["fixed"] for event in each.events or () if event.get("fixed")))
    return {name: tuple(fixed) for name, fixed in fixes.items()}


def _affected_by_package(tree: Mapping[str, object], record: OsvRecord) -> Mapping[str, Sequence[object]]:
    """Return what the record says of each package, as it was published."""
    entries = tree.get("affected")
    affected: dict[str, list[object]] = {}
    for (_, name), entry in zip(_named(record), entries if isinstance(entries, list) else (), strict=True):
        affected.setdefault(name, []).append(entry)
    return affected


def _named(record: OsvRecord) -> list[tuple[AffectedPackage, str]]:
    """Return the entries of `affected`, each with the name of its package; empty if it names none."""
    ecosystems: dict[str, set[str]] = {}
    for entry in record.affected or ():
        if entry.package is not None:
            ecosystems.setdefault(entry.package.name, set()).add(entry.package.ecosystem)
    return [(entry, _name(entry, ecosystems)) for entry in record.affected or ()]


def _name(entry: AffectedPackage, ecosystems: Mapping[str, Collection[str]]) -> str:
    if entry.package is None or not entry.package.name.strip():
        return ""
    name, ecosystem = entry.package.name, entry.package.ecosystem
    is_ambiguous = ":" in ecosystem or len(ecosystems[name]) > 1
    return f"{ecosystem}/{name}" if ecosystem and is_ambiguous else name


def _title(record: OsvRecord, kind: str, fixes: Fixes) -> str:
    title = (record.summary or "").strip() or f"{record.id}: {first_sentence(record.details)}"
    if kind == "advisory_withdrawn":
        return title if title.lower().startswith("withdrawn") else f"Withdrawn: {title}"
    if kind == "patch_released":
        versions = next(iter(fixes.values())) if len(fixes) == 1 else ()
        return f"{title} (fixed{f' in {versions[-1]}' if len(versions) == 1 else ''})"
    return title


def _headline(record: OsvRecord, kind: str, fixes: Fixes) -> str:
    names = ", ".join(record.names)
    if kind == "advisory_withdrawn":
        return f"Withdrawn: {names} ({', '.join(fixes)})." if fixes else f"Withdrawn: {names}."
    if not fixes:
        return f"{names}. The record names no package."
    packages = "; ".join(f"{name} {', '.join(versions)}".strip() for name, versions in fixes.items())
    return f"{names}. {'Fixed in' if kind == 'patch_released' else 'No fix known for'}: {packages}."


def _url(record: OsvRecord) -> str:
    """Return the advisory's own page if the record names it, else its first web page."""
    for kind in ("ADVISORY", "WEB"):
        for reference in record.references or ():
            url = reference.get("url")
            if reference.get("type") == kind and isinstance(url, str):
                return url
    return ""
