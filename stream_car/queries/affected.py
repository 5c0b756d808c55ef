"""Which versions of packages are affected: a read over the documents in force.

Promise: supersession is not decided here. A record counts if a document of it is in force and does not say that it has
ended. A document that was superseded by a fix without versions of its own still tells which versions are affected.
Cost: a look-up in the index per name of a package, then a few rounds of reads for all packages together. No search.
Documents that do not concern a version are read once, and then known by what they say of versions.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from stream_car.codec.times import from_micros
from stream_car.core.documents import Document
from stream_car.core.scope_names import ALIAS, LINK, scope_parts
from stream_car.core.stored import Entry
from stream_car.core.timeline import in_order, latest_edition, scope_key
from stream_car.core.walk import WalkResult
from stream_car.errors import InvalidRequest
from stream_car.ports import AnchorIndex
from stream_car.queries.answers import Incomplete, Step
from stream_car.queries.assembly import read_fates
from stream_car.queries.findings import Disagreement, PackageFindings, RecordFinding, Succession
from stream_car.queries.known_history import existed
from stream_car.queries.outcomes import Fates, reasons_of, steps_of
from stream_car.queries.scope_members import ends_of, size_until
from stream_car.queries.snapshot import Snapshot
from stream_car.queries.statements_cache import DocumentStatements, StatementsCache
from stream_car.queries.vulnerability_context import (
    EXPLOITED,
    VexTrust,
    fold,
    read_context,
    with_context,
)
from stream_car.versions.packages import Package, check_form, lookup_names, parse_package
from stream_car.versions.verdicts import NO_RANGES, RANKS, PackageStatus, Verdict

RECORDS_MAX = 2_000
RECORDS_TOGETHER_MAX = 20_000  # of all packages of a question
EDITIONS_MAX = 200  # of each type, the latest ones, and the first
PACKAGE_MAX = 2_000  # characters
OPPOSITES = {"affected": "not_affected", "not_affected": "affected"}


class PackageQuestion(Struct, frozen=True, kw_only=True):
    """What is asked: the packages, the product that they are part of, and whose statements count.

    With `all`, records that do not concern the version are listed as well, and those that hold no more.
    """

    packages: tuple[Package, ...]
    product: str = ""
    vex_authors: tuple[str, ...] = ()
    all: bool = False
    records_max: int = RECORDS_MAX  # of one package


def parse_packages(texts: Iterable[str], *, field: str = "packages") -> tuple[Package, ...]:
    """Read packages, each once. Raises `InvalidRequest` with the name of the field.

    In a file, a name may be anything: what its author wrote is taken as it is.
    """
    packages = []
    for text in dict.fromkeys(texts):
        if len(text) > PACKAGE_MAX:
            raise InvalidRequest(field, f"{text[:100]!r}... is longer than {PACKAGE_MAX:,} characters.")
        try:
            packages.append(parse_package(text))
            if field != "files":
                check_form(packages[-1])
        except ValueError as error:
            raise InvalidRequest(field, f"{text[:100]!r} is not a package: {error}") from None
    return tuple(packages)


class _Record(Struct, frozen=True):
    """A record, or a document without one, and its editions that are in effect, oldest first.

    `latest` is the latest edition, which may be several documents.
    """

    name: str
    editions: tuple[Entry, ...]
    latest: tuple[Entry, ...]


class _Candidate(Struct, frozen=True):
    """A document that may say whether a package is affected, with its verdict and what it leads to."""

    package: Package
    record: _Record
    entry: Entry
    statements: DocumentStatements
    verdict: Verdict
    walk: WalkResult | None = None  # of a superseded document


class AffectedReader:
    """Answers one question over one snapshot."""

    def __init__(
        self, snapshot: Snapshot, index: AnchorIndex, question: PackageQuestion, cache: StatementsCache
    ) -> None:
        self.snapshot = snapshot
        self.index = index
        self.question = question
        self.cache = cache
        self.ruleset = snapshot.ruleset
        self.reasons: dict[Incomplete, None] = {}
        self.bodies: dict[str, Document] = {}
        self.later: dict[str, Entry] = {}  # by scope, the first editions of records that have none as of the snapshot
        self._spellings: dict[Package, tuple[str, ...]] = {}
        self.without_history: set[Package] = set()  # named by a record of which it is unknown what it said

    async def read(self) -> tuple[PackageFindings, ...]:
        """Return what is known of each package."""
        records = await self._records()
        latest = {entry.id: entry for own in records.values() for record in own for entry in record.latest}
        statements = await self._read_statements(latest.values())
        candidates = [
            candidate
            for package, own in records.items()
            for record in own
            for entry in record.latest
            if (candidate := self._candidate(package, record, entry, statements.get(entry.id))) is not None
        ]
        named = {candidate.package for candidate in candidates}
        candidates = self._of_interest(candidates)
        await self._read_bodies(candidate.entry for candidate in candidates)
        candidates = [candidate for candidate in candidates if candidate.entry.id in self.bodies]
        names = list(dict.fromkeys(candidate.entry.id for candidate in candidates))
        known = dict(zip(names, await self.snapshot.anchor_statuses(names), strict=True))
        active = [each for each in candidates if (status := known[each.entry.id]) is not None and status[1]]
        superseded = [each for each in candidates if (status := known[each.entry.id]) is not None and not status[1]]
        superseded = await self._with_walks(superseded)
        active = await self._with_inherited_verdicts(active, superseded)
        disputed = await self._disputed(active, superseded)
        counting = {(each.package.text, each.entry.id) for each in disputed}
        superseded = [each for each in superseded if (each.package.text, each.entry.id) not in counting]
        findings = await self._findings([*active, *disputed], superseded)
        return tuple(
            self._summary(package, findings.get(package.text, []), is_named=package in named)
            for package in self.question.packages
        )

    def _of_interest(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """Leave out what does not concern the version, unless all is wanted.

        What else is known of a vulnerability that does concern it is kept, and what a silent fix may rest on.
        """
        if self.question.all:
            return candidates
        concerning = [each for each in candidates if each.verdict.status != "not_affected"]
        silent = {each.package.text for each in concerning if not each.statements.versions.has_versions}
        names: dict[str, set[str]] = {}
        for each in concerning:
            names.setdefault(each.package.text, set()).update(each.statements.folded_names)
        return [
            each
            for each in candidates
            if each.verdict.status != "not_affected"
            or each.package.text in silent
            or not each.statements.folded_names.isdisjoint(names.get(each.package.text, ()))
        ]

    # What may concern the packages

    async def _records(self) -> dict[Package, list[_Record]]:
        """Return the records that name each package now or did so once."""
        targets: dict[Package, list[str]] = {}
        count = 0
        for package in self.question.packages:
            scopes: dict[str, None] = {}
            for alias in self._spellings_of(package):
                scopes |= dict.fromkeys(await self.index.scopes([(ALIAS, alias)], self.question.records_max + 1))
            if len(scopes) > self.question.records_max:
                self.reasons["limit"] = None
            targets[package] = list(scopes)[: self.question.records_max]
            count += len(targets[package])
            if count > RECORDS_TOGETHER_MAX:
                reason = f"More than {RECORDS_TOGETHER_MAX:,} records name these packages. Ask for fewer at a time."
                raise InvalidRequest("packages", reason)
            await self.snapshot.yield_control()
        wanted = dict.fromkeys(target for own in targets.values() for target in own)
        await self.snapshot.load([scope_key(target) for target in wanted])
        records = {target: await self._record(target) for target in wanted}
        await self._note_unknown_history(targets)
        return {
            package: [record for target in own if (record := records[target]) is not None]
            for package, own in targets.items()
        }

    def _spellings_of(self, package: Package) -> tuple[str, ...]:
        """Return how the names of a package may be spelt as aliases."""
        if package not in self._spellings:
            spellings = (alias for name in lookup_names(package) for alias in self.ruleset.aliases_spelt(name))
            self._spellings[package] = tuple(dict.fromkeys(spellings))
        return self._spellings[package]

    async def _record(self, target: str) -> _Record | None:
        [(key, value)] = scope_parts(target)
        if key == LINK:
            stored = await self.snapshot.document(value)
            return _record_of(value, [stored.entry]) if stored is not None and not stored.retracted else None
        scope = await self.snapshot.scope(target)
        members: Sequence[Entry] = scope.entries
        count = 0
        if scope.directory:
            members = await self.snapshot.with_pages(partial(ends_of, scope, self.snapshot, EDITIONS_MAX))
            count = await self.snapshot.with_pages(partial(size_until, scope, self.snapshot))
            self.snapshot.forget_pages()
        as_of = self.snapshot.as_of
        editions = [entry for entry in members if as_of is None or entry.time <= as_of]
        if len(editions) < count:
            self.reasons["limit"] = None
        if members and not editions:
            self.later[target] = in_order(members)[0]
        return _record_of(value, editions) if editions else None

    async def _note_unknown_history(self, targets: Mapping[Package, Sequence[str]]) -> None:
        """Note packages that have a record from before the snapshot whose first edition here is later."""
        as_of = self.snapshot.as_of
        if as_of is None or not self.later:
            return
        bodies = await self.snapshot.bodies(self.index, [entry.id for entry in self.later.values()])
        statements = {name: self.cache.read(body) for name, body in bodies.items() if existed(body, as_of)}
        for package, own in targets.items():
            entries = [self.later[target] for target in own if target in self.later]
            records = [(_record_of(entry.id, [entry]), entry) for entry in entries]
            if any(self._candidate(package, record, entry, statements.get(entry.id)) for record, entry in records):
                self.without_history.add(package)

    async def _read_bodies(self, entries: Iterable[Entry]) -> None:
        """Read documents from the index. One that it has in another revision than the state counts as missing."""
        revisions = {entry.id: entry.revision for entry in entries if entry.id not in self.bodies}
        bodies = await self.snapshot.bodies(self.index, list(revisions))
        for name, revision in revisions.items():
            body = bodies.get(name)
            if body is not None and body.revision == revision:
                self.bodies[name] = body
            else:
                self.reasons["in_flight"] = None

    async def _read_statements(self, entries: Iterable[Entry]) -> dict[str, DocumentStatements]:
        """Return what documents say of versions, by id. Only those that are not in the cache are read."""
        statements: dict[str, DocumentStatements] = {}
        unknown: list[Entry] = []
        for entry in entries:
            cached = self.cache.find(entry)
            if cached is not None:
                statements[entry.id] = cached
            else:
                unknown.append(entry)
        await self._read_bodies(unknown)
        for entry in unknown:
            if entry.id in self.bodies:
                statements[entry.id] = self.cache.read(self.bodies[entry.id])
        return statements

    def _candidate(
        self, package: Package, record: _Record, entry: Entry, statements: DocumentStatements | None
    ) -> _Candidate | None:
        if statements is None:
            return None
        verdict = None
        if statements.versions.has_versions:
            verdict = statements.versions.verdict(package)
        elif self._says_more_than_exploited(entry) and not statements.aliases.isdisjoint(self._spellings_of(package)):
            verdict = NO_RANGES
        return _Candidate(package, record, entry, statements, verdict) if verdict is not None else None

    def _says_more_than_exploited(self, entry: Entry) -> bool:
        """Return whether a document says something of its record other than that it is exploited."""
        return self.ruleset.states.get(entry.type, EXPLOITED) != EXPLOITED

    # What supersession makes of them

    async def _with_walks(self, candidates: Sequence[_Candidate]) -> list[_Candidate]:
        names = list(dict.fromkeys(each.entry.id for each in candidates))
        walks = dict(zip(names, await self.snapshot.walk(names), strict=True))
        if any(walk is not None and walk.next for walk in walks.values()):
            self.reasons["limit"] = None
        return [replace(each, walk=walks[each.entry.id]) for each in candidates]

    async def _with_inherited_verdicts(
        self, active: Sequence[_Candidate], superseded: Sequence[_Candidate]
    ) -> list[_Candidate]:
        """Return documents in force that name no versions with the verdict of what they superseded."""
        silent = [each for each in active if not each.statements.versions.has_versions]
        if not silent:
            return list(active)
        by_package: dict[Package, list[_Candidate]] = {}
        for each in superseded:
            by_package.setdefault(each.package, []).append(each)
        earlier = {each.entry.id: [e for e in each.record.editions if e not in each.record.latest] for each in silent}
        statements = await self._read_statements({e.id: e for entries in earlier.values() for e in entries}.values())
        judged: list[_Candidate] = []
        for each in active:
            if each.statements.versions.has_versions:
                judged.append(each)
                continue
            sources = [
                other.statements
                for other in by_package.get(each.package, ())
                if other.walk is not None and each.entry.id in other.walk.via
            ]
            sources += [statements[e.id] for e in reversed(earlier[each.entry.id]) if e.id in statements]
            verdicts = (source.versions.verdict(each.package) for source in sources)
            inherited = next((verdict for verdict in verdicts if verdict is not None), None)
            judged.append(replace(each, verdict=inherited) if inherited is not None else each)
        return judged

    async def _disputed(self, active: Sequence[_Candidate], superseded: Sequence[_Candidate]) -> list[_Candidate]:
        """Return superseded documents that still count, because what superseded them does not fix this version.

        An advisory ends because a fix of another record comes later. If that record does not say that this version is
        fixed, but that it never was affected, the publishers disagree: it is unknown. If it is about a package of the
        same name in another ecosystem, the advisory says what it said.
        """
        speaking = {(each.package.text, each.entry.id): each.verdict for each in active}
        rivals = [(each, self._rivals(each)) for each in superseded if each.verdict.status == "affected"]
        mute = {e.id: e for each, own in rivals for e in own if (each.package.text, e.id) not in speaking}
        statements = await self._read_statements(mute.values())
        disputed: list[_Candidate] = []
        for each, own in rivals:
            verdicts = [speaking.get((each.package.text, entry.id)) for entry in own]
            known = [verdict for verdict in verdicts if verdict is not None]
            if known and all(verdict.status == "not_affected" and not verdict.is_fixed for verdict in known):
                disputed.append(replace(each, verdict=replace(each.verdict, status="unknown", basis="disputed")))
            elif own and not known and all(e.id in statements and statements[e.id].versions.has_versions for e in own):
                disputed.append(each)
        return disputed

    def _rivals(self, candidate: _Candidate) -> Sequence[Entry]:
        """Return the documents of other records that supersede one; none if its own record does, or it was ended."""
        controlling = candidate.walk.controlling if candidate.walk is not None else ()
        own, ending = {entry.id for entry in candidate.record.editions}, self.ruleset.ending_types
        return () if any(entry.id in own or entry.type in ending for entry in controlling) else controlling

    # What is told

    async def _findings(
        self, active: Sequence[_Candidate], superseded: Sequence[_Candidate]
    ) -> dict[str, list[RecordFinding]]:
        if not self.question.all:
            active = [each for each in active if each.entry.type not in self.ruleset.ending_types]
            listed = list(active)
        else:
            listed = [*active, *superseded]
        reasons = {each.entry.id: reasons_of(each.walk) for each in superseded if each.walk is not None}
        fates = await read_fates(self.snapshot, self.index, [], reasons.values() if self.question.all else ())
        fates = Fates(self.ruleset, {**self.bodies, **fates.bodies})
        chains = await self._chains([each for each in active if each.verdict.status != "not_affected"], superseded)
        findings: dict[str, list[RecordFinding]] = {}
        for each in listed:
            body = self.bodies[each.entry.id]
            fate = fates.of(each.entry.id, each.entry.type, reasons.get(each.entry.id, ()))
            finding = RecordFinding(
                document=each.entry.id,
                record=each.record.name,
                type=each.entry.type,
                time=from_micros(each.entry.time),
                names=each.statements.names,
                status=each.verdict.status,
                basis=each.verdict.basis,
                range=each.verdict.range,
                fixed_in=each.verdict.fixed_in,
                justification=each.verdict.justification,
                title=body.title,
                source=body.source,
                url=body.url,
                state=fate.state,
                state_text=fate.state_text,
                outcome=fate.outcome,
                outcome_text=fate.outcome_text,
                chains=chains.get((each.package.text, each.entry.id), ()),
            )
            findings.setdefault(each.package.text, []).append(finding)
        return await self._with_context(findings)

    async def _with_context(self, findings: Mapping[str, Sequence[RecordFinding]]) -> dict[str, list[RecordFinding]]:
        """Add what is in force about the vulnerabilities that may concern a package, and sort the findings."""
        findings = {text: _with_disagreements(_without_shadows(own)) for text, own in findings.items()}
        if not self.question.all:
            findings = {text: [f for f in own if f.status != "not_affected"] for text, own in findings.items()}
        open_findings = (each for own in findings.values() for each in own if each.status != "not_affected")
        names = (name for each in open_findings for name in each.names)
        context = await read_context(self.snapshot, self.index, names)
        if context.is_limited:
            self.reasons["limit"] = None
        product = parse_package(self.question.product) if self.question.product else None
        trust = VexTrust(product=product, authors=self.question.vex_authors)
        packages = {package.text: package for package in self.question.packages}
        return {
            text: _sorted(
                with_context(each, (fold(self.snapshot, name) for name in each.names), packages[text], context, trust)
                for each in own
            )
            for text, own in findings.items()
        }

    async def _chains(
        self, active: Sequence[_Candidate], superseded: Sequence[_Candidate]
    ) -> dict[tuple[str, str], tuple[Succession, ...]]:
        """Return how earlier documents led to those in force: from the first edition, and from other records."""
        firsts = {each.entry.id: each.record.editions[0].id for each in active}
        names = [name for name in dict.fromkeys(firsts.values()) if name not in firsts]
        walks = dict(zip(names, await self.snapshot.walk(names), strict=True))
        steps: dict[tuple[str, str], dict[str, tuple[Step, ...]]] = {}
        for each in active:
            others = [other.walk for other in superseded if other.package == each.package]
            steps[each.package.text, each.entry.id] = {
                walk.anchor: steps_of(walk, each.entry.id)
                for walk in (walks.get(firsts[each.entry.id]), *others)
                if walk is not None and any(entry.id == each.entry.id for entry in walk.controlling)
            }
        paths = [path for own in steps.values() for path in own.values()]
        fates = await read_fates(self.snapshot, self.index, [start for own in steps.values() for start in own], paths)
        return {
            key: tuple(Succession(start=start, steps=fates.path(start, path)) for start, path in own.items())
            for key, own in steps.items()
        }

    def _summary(self, package: Package, findings: Sequence[RecordFinding], *, is_named: bool) -> PackageFindings:
        statuses: list[PackageStatus] = [finding.status for finding in findings if not finding.outcome]
        reasons = dict(self.reasons)
        if not package.name:
            statuses.append("unknown")
        if package in self.without_history:
            statuses.append("unknown")
            reasons["history_unknown"] = None
        return PackageFindings(
            package=package.text,
            name=package.name,
            version=package.version,
            ecosystem=package.ecosystem,
            status=min(statuses, key=RANKS.__getitem__, default="not_affected" if is_named else "no_record"),
            findings=tuple(findings),
            reasons=tuple(reasons),
        )


def _without_shadows(findings: Sequence[RecordFinding]) -> list[RecordFinding]:
    """Leave out records that name no ecosystem if one in force that does is about the same vulnerability."""
    clear = {name.upper() for each in findings if each.basis != "ecosystem" and not each.outcome for name in each.names}
    return [each for each in findings if each.basis != "ecosystem" or clear.isdisjoint(map(str.upper, each.names))]


def _with_disagreements(findings: Sequence[RecordFinding]) -> list[RecordFinding]:
    """Return findings with those in force about the same vulnerability that say the opposite."""
    sides: dict[str, dict[str, list[RecordFinding]]] = {}
    for each in findings:
        if not each.outcome and (each.basis == "disputed" or each.status != "unknown"):
            side = sides.setdefault("not_affected" if each.status == "not_affected" else "affected", {})
            for name in each.names:
                side.setdefault(name.upper(), []).append(each)
    if len(sides) < len(OPPOSITES):
        return list(findings)
    return [_with_opposite(each, sides) for each in findings]


def _with_opposite(finding: RecordFinding, sides: Mapping[str, Mapping[str, Sequence[RecordFinding]]]) -> RecordFinding:
    stated = "affected" if finding.basis == "disputed" else finding.status
    if finding.outcome or stated not in OPPOSITES:
        return finding
    opposite = {
        each.document: Disagreement(record=each.record, document=each.document, status=each.status, range=each.range)
        for name in finding.names
        for each in sides[OPPOSITES[stated]].get(name.upper(), ())
        if each.record != finding.record
    }
    return replace(finding, disputed_by=tuple(opposite.values()))


def _record_of(name: str, editions: Sequence[Entry]) -> _Record:
    return _Record(name, tuple(in_order(editions)), tuple(latest_edition(editions)))


def _sorted(findings: Iterable[RecordFinding]) -> list[RecordFinding]:
    return sorted(
        findings,
        key=lambda each: (
            bool(each.outcome),
            each.status == "not_affected",
            not each.exploited,
            RANKS[each.status],
            each.record,
            each.document,
        ),
    )
