"""Samples of public feeds, published and resolved, give the counts that were worked out from them independently.

The samples are beside the repository, not in it; these tests are skipped without them.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest

import stream_car
from stream_car import Resolution
from stream_car.core.documents import Document
from stream_car.ingest.ingest import FeedStep
from stream_car.local.engine import Engine
from tests.support.feeds import DATA, Reading, documents, in_force, published

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the samples are not at {DATA}")


class Osv(msgspec.Struct):
    """The counts of the history of the Go database."""

    lines: int
    records: int
    superseded_revisions: int
    withdrawn_now: int
    withdrawn_ever: int
    fixed_now: int
    unfixed_now: int
    withdrawn_ids: list[str]
    reinstated_ids: list[str]
    fix_retracted_ids: list[str]
    packages: int
    packages_with_2_or_more_records: int
    records_with_2_or_more_revisions: int
    max_revisions: int
    final_fix_differs_from_first: int
    transitions: dict[str, int]
    records_with_transition: dict[str, int]


class Csaf(msgspec.Struct):
    """The counts of the advisories."""

    documents: int
    files: int
    files_that_do_not_parse: list[str]
    superseded_files: int
    consecutive_parsable_pairs: int
    pairs_version_increased: int
    pairs_version_equal: int
    pairs_version_equal_but_remediations_or_cves_differ: int
    pairs_release_date_earlier: int
    pairs_remediations_changed: int
    pairs_cve_set_changed: int
    cves_in_newest: int
    cves_in_2_or_more_newest: int
    documents_sharing_a_cve: int
    newest_documents_with_vendor_fix: int
    cves_withdrawn_from_a_document: int


class Vector(msgspec.Struct):
    """One of the standard's own test documents."""

    file: str
    category: str
    valid: bool
    external_references: int


class Vectors(msgspec.Struct):
    """All test documents of the standard."""

    files: int
    by_category: dict[str, int]
    superseded_valid_with_external_reference: int
    vectors: list[Vector]


class Cve5(msgspec.Struct):
    """The counts of the CVE records."""

    records: int
    files: int
    superseded_files: int
    newest_state: dict[str, int]
    transitions: dict[str, int]
    records_ever_rejected_now_published: list[str]
    records_reinstated_then_rejected_again: list[str]
    replaced_by: dict[str, list[str]]
    replaced_by_targets_in_set: list[str]
    rejected_naming_another_cve_only_in_text: dict[str, list[str]]
    disputed_tag: list[str]


class Catalogue(msgspec.Struct):
    """One version of the catalogue, against the one before."""

    file: str
    parses: bool = True
    entries: int = 0
    added: int = 0
    removed: list[str] = []
    changed: int = 0


class Kev(msgspec.Struct):
    """The counts of the catalogues."""

    steps: list[Catalogue]
    ever_listed: int
    listed_in_last: int
    in_last_ransomware_known: int
    entry_versions_distinct: int


class Keyed(msgspec.Struct):
    """Statements by their subject."""

    keys: int
    keys_with_more_than_one_statement: int
    keys_with_different_timestamps: int
    keys_with_different_justification: int
    keys_with_different_status: int
    statements_older_than_newest_of_key: int
    keys_whose_newest_timestamp_is_shared: int


class Vex(msgspec.Struct):
    """The counts of the VEX documents."""

    documents: int
    statements: int
    status: dict[str, int]
    by_vulnerability_product: Keyed
    by_vulnerability_product_subcomponents: Keyed


class Peps(msgspec.Struct):
    """The counts of the headers of the PEPs."""

    peps: int
    pairs_from_superseded_by: int
    pairs_from_replaces: int
    pairs_in_both: int
    pairs_union: int
    superseded_peps_by_explicit_reference: int
    frontier_peps: int
    status: dict[str, int]
    status_superseded: int
    status_superseded_without_reference: list[int]
    superseded_by_more_than_one: list[int]


class Truth(msgspec.Struct, rename={"osv": "osv-go"}):
    """The counts of every sample."""

    osv: Osv
    csaf: Csaf
    csaf_oasis: Vectors
    cve5: Cve5
    kev: Kev
    openvex: Vex
    peps: Peps


@pytest.fixture(scope="module")
def truth() -> Truth:
    return msgspec.json.decode((DATA / "truth.json").read_bytes(), type=Truth)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with stream_car.open(tmp_path / "data") as car:
        yield car


NUMBER = re.compile(r"(\d+)")
HISTORY = DATA / "osv-go.history.jsonl"


def converted_documents(steps: Iterable[FeedStep]) -> list[Document]:
    return [one for step in steps if step.conversion is not None for one in documents(step.conversion.documents)]


def statuses(resolutions: Iterable[Resolution]) -> dict[str, str]:
    return {resolution.name: resolution.status for resolution in resolutions}


def edition_of(name: str) -> str:
    return name.removesuffix("/fixed")


def record_of(name: str) -> str:
    return name.partition("@")[0]


def test_the_editions_in_force_of_the_go_database_are_the_true_ones(truth: Truth, engine: Engine) -> None:
    steps = published(engine, "osv", [HISTORY])
    converted = converted_documents(steps)
    editions = {edition_of(one.id) for one in converted}
    records = sorted({record_of(one.id) for one in converted})
    active = in_force(engine, records)
    current = {edition_of(name) for types in active.values() for name in types}
    withdrawn = {record for record, types in active.items() if "advisory_withdrawn" in types.values()}
    ever = {record_of(one.id) for one in converted if one.type == "advisory_withdrawn"}

    assert len(editions) == truth.osv.lines
    assert len(records) == truth.osv.records
    assert len(current) == truth.osv.records
    assert len(editions - current) == truth.osv.superseded_revisions
    assert sorted(withdrawn) == truth.osv.withdrawn_ids
    assert len(withdrawn) == truth.osv.withdrawn_now
    assert len(ever) == truth.osv.withdrawn_ever
    assert sorted(ever - withdrawn) == truth.osv.reinstated_ids


def fixes(parts: list[Document]) -> set[tuple[str, str]]:
    return {
        (name, version)
        for fixed in (part.attributes["fixed"] for part in parts)
        if isinstance(fixed, dict)
        for name, versions in fixed.items()
        for version in versions
    }


def values(parts: list[Document], key: str) -> set[str]:
    return {value for one in parts for part in one.scope for value in part.get(key, ())}


def test_fixes_and_aliases_change_as_in_the_go_database(truth: Truth) -> None:
    reading = Reading("osv")
    now: dict[str, list[Document]] = {}
    first: dict[str, set[tuple[str, str]]] = {}
    revisions: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    with_change: dict[str, set[str]] = {}
    retracted = []
    for text in HISTORY.read_bytes().splitlines():
        parts = documents(reading.read(text))
        before = now.get(name := record_of(parts[0].id))
        now[name] = parts
        revisions[name] += 1
        first.setdefault(name, fixes(parts))
        if before is None:
            continue
        old, new = fixes(before), fixes(parts)
        changes = []
        if old != new:
            kind = "added" if not old else "replaced" if new else "retracted"
            changes += [f"fix_{kind}", "fix_set_changed"]
            retracted += [name] if kind == "retracted" else []
        names = values(before, "vulnerability"), values(parts, "vulnerability")
        changes += ["alias_added"] * bool(names[1] - names[0]) + ["alias_removed"] * bool(names[0] - names[1])
        counts.update(changes)
        for change in changes:
            with_change.setdefault(change, set()).add(name)
    records_of = Counter(package for parts in now.values() for package in values(parts, "package"))

    assert sum(bool(fixes(parts)) for parts in now.values()) == truth.osv.fixed_now
    assert sum(not fixes(parts) for parts in now.values()) == truth.osv.unfixed_now
    assert sorted(retracted) == truth.osv.fix_retracted_ids
    assert counts.items() <= truth.osv.transitions.items()
    assert {
        kind: len(names) for kind, names in with_change.items()
    }.items() <= truth.osv.records_with_transition.items()
    assert sum(fixes(parts) != first[name] for name, parts in now.items()) == truth.osv.final_fix_differs_from_first
    assert sum(n > 1 for n in revisions.values()) == truth.osv.records_with_2_or_more_revisions
    assert max(revisions.values()) == truth.osv.max_revisions
    assert len(records_of) == truth.osv.packages
    assert sum(n > 1 for n in records_of.values()) == truth.osv.packages_with_2_or_more_records


def test_the_same_history_again_changes_nothing(engine: Engine) -> None:
    published(engine, "osv", [HISTORY])
    before = engine.directory.next_offset
    [step] = published(engine, "osv", [HISTORY])

    assert step.unchanged is not None
    assert engine.directory.next_offset == before


# CSAF


def advisories(folder: Path = DATA / "csaf") -> list[Path]:
    return sorted(
        folder.glob("*.json"), key=lambda path: [int(n) if n.isdigit() else n for n in NUMBER.split(path.name)]
    )


def test_the_newest_version_of_every_advisory_is_in_force(truth: Truth, engine: Engine) -> None:
    steps = published(engine, "csaf", advisories())
    converted = converted_documents(steps)
    rejected = [step for step in steps if step.rejected is not None]
    active = in_force(engine, sorted({record_of(one.id) for one in converted}))

    assert [f"csaf/{Path(step.file.name).name}" for step in rejected] == truth.csaf.files_that_do_not_parse
    assert len(converted) + len(rejected) == truth.csaf.files
    assert len(active) == truth.csaf.documents
    assert all(len(types) == 1 for types in active.values())
    assert truth.csaf.files - len(active) == truth.csaf.superseded_files
    newest = {record_of(one.id): one.id for one in converted}
    assert {name for types in active.values() for name in types} == set(newest.values())


def remedies(document: Document) -> list[object]:
    remediations = document.attributes["remediations"]
    assert isinstance(remediations, list)
    return sorted(remediations, key=str)


def test_advisories_change_as_their_files_do(truth: Truth) -> None:
    reading = Reading("csaf")
    now: dict[str, Document] = {}
    counts: Counter[str] = Counter()
    cves: dict[str, set[str]] = {}
    for path in advisories():
        for document in documents(reading.read(path.read_bytes(), path.name)):
            before = now.get(record_of(document.id))
            now[record_of(document.id)] = document
            cves.setdefault(record_of(document.id), set()).update(values([document], "vulnerability"))
            if before is None:
                continue
            is_same_version = before.attributes["version"] == document.attributes["version"]
            has_other_remedies = remedies(before) != remedies(document)
            has_other_cves = values([before], "vulnerability") != values([document], "vulnerability")
            counts.update(
                pairs=True,
                equal=is_same_version,
                remedies=has_other_remedies,
                cves=has_other_cves,
                back=str(document.attributes["released"]) < str(before.attributes["released"]),
                silent=is_same_version and (has_other_remedies or has_other_cves),
            )
            assert before.precedence < document.precedence
    shared = Counter(cve for one in now.values() for cve in values([one], "vulnerability"))

    assert counts["pairs"] == truth.csaf.consecutive_parsable_pairs
    assert counts["equal"] == truth.csaf.pairs_version_equal
    assert counts["pairs"] - counts["equal"] == truth.csaf.pairs_version_increased
    assert counts["back"] == truth.csaf.pairs_release_date_earlier
    assert counts["remedies"] == truth.csaf.pairs_remediations_changed
    assert counts["cves"] == truth.csaf.pairs_cve_set_changed
    assert counts["silent"] == truth.csaf.pairs_version_equal_but_remediations_or_cves_differ
    assert len(shared) == truth.csaf.cves_in_newest
    assert sum(n > 1 for n in shared.values()) == truth.csaf.cves_in_2_or_more_newest
    sharing = [one for one in now.values() if any(shared[cve] > 1 for cve in values([one], "vulnerability"))]
    assert len(sharing) == truth.csaf.documents_sharing_a_cve
    with_fewer = sum(bool(cves[name] - values([one], "vulnerability")) for name, one in now.items())
    assert with_fewer == truth.csaf.cves_withdrawn_from_a_document
    fixed = [one for one in now.values() if "'vendor_fix'" in str(remedies(one))]
    assert len(fixed) == truth.csaf.newest_documents_with_vendor_fix


def test_the_standards_own_vectors_name_their_successors(truth: Truth) -> None:
    reading = Reading("csaf")
    kinds: Counter[str] = Counter()
    named = 0
    for vector in truth.csaf_oasis.vectors:
        path = DATA.parent / vector.file if not (DATA / vector.file).exists() else DATA / vector.file
        [document] = documents(reading.read(path.read_bytes(), path.name))
        kinds[str(document.attributes["category"])] += 1
        assert len(document.superseded_by) == (
            vector.external_references if vector.category == "csaf_superseded" else 0
        )
        named += vector.valid and bool(document.superseded_by)

    assert reading.rejected == []
    assert kinds == truth.csaf_oasis.by_category
    assert named == truth.csaf_oasis.superseded_valid_with_external_reference


# CVE records


def test_cve_records_are_published_rejected_and_published_again(truth: Truth, engine: Engine) -> None:
    steps = published(engine, "cve5", [DATA / "cve5"])
    converted = converted_documents(steps)
    newest = {record_of(one.id): one for one in converted}
    active = in_force(engine, sorted(newest))
    states: dict[str, list[str]] = {}
    for document in converted:
        states.setdefault(record_of(document.id), []).append(str(document.attributes["state"]))
    moves = Counter(f"{a}>{b}" for sequence in states.values() for a, b in pairwise(sequence))
    back = {name for name, of in states.items() if "REJECTED" in of and of[-1] == "PUBLISHED"}
    twice = {name for name, of in states.items() if "R>P>R" in ">".join(state[0] for state in of)}
    replaced = {name: list(one.superseded_by) for name, one in newest.items() if one.superseded_by}

    assert len(converted) == truth.cve5.files
    assert len(newest) == truth.cve5.records
    assert len(converted) - len(newest) == truth.cve5.superseded_files
    assert Counter(sequence[-1] for sequence in states.values()) == truth.cve5.newest_state
    assert moves == truth.cve5.transitions
    assert sorted(back) == truth.cve5.records_ever_rejected_now_published
    assert sorted(twice) == truth.cve5.records_reinstated_then_rejected_again
    assert replaced == truth.cve5.replaced_by
    assert not set(replaced) & set(truth.cve5.rejected_naming_another_cve_only_in_text)
    current = {name: next(iter(types)) for name, types in active.items() if types}
    assert current == {name: one.id for name, one in newest.items() if name not in replaced}
    assert sorted(name for name, one in newest.items() if "disputed" in str(one.attributes.get("tags"))) == sorted(
        truth.cve5.disputed_tag
    )


def test_a_replaced_cve_leads_to_the_one_that_takes_its_place(truth: Truth, engine: Engine) -> None:
    published(engine, "cve5", [DATA / "cve5"])
    for old, [new] in truth.cve5.replaced_by.items():
        [resolution] = engine.resolve([old])
        controlling = {record_of(one.document.id) for group in resolution.groups for one in group.controlling}
        missing = {name for group in resolution.groups for name in group.missing}
        is_known = new in truth.cve5.replaced_by_targets_in_set

        assert resolution.status == "superseded"
        assert (controlling, missing) == (({new}, set()) if is_known else (set(), {new}))


# The catalogue of exploited vulnerabilities


def test_the_catalogue_is_replayed_without_the_file_that_breaks_off(truth: Truth, engine: Engine) -> None:
    ever: dict[str, list[str]] = {}
    ransom: dict[str, bool] = {}
    for expected in truth.kev.steps:
        [step, *_] = published(engine, "kev", [DATA / expected.file])
        assert (step.rejected is None) == expected.parses
        if step.conversion is None:
            continue
        listed = documents(step.conversion.documents)
        names = [one.id.removeprefix("KEV:").partition("@")[0] for one in listed]
        retracted = {one.id.removeprefix("KEV:").partition("@")[0] for one in step.conversion.documents} - set(names)
        assert step.conversion.records == expected.entries
        if ever:
            assert sorted(retracted) == expected.removed
            assert sum(name not in ever for name in names) == expected.added
            assert sum(name in ever for name in names) == expected.changed
        for name, document in zip(names, listed, strict=True):
            ever.setdefault(name, []).append(document.id)
            ransom[name] = document.attributes["knownRansomwareCampaignUse"] == "Known"
    active = in_force(engine, [f"KEV:{name}" for name in ever])

    assert len(ever) == truth.kev.ever_listed
    assert sum(map(len, ever.values())) == truth.kev.entry_versions_distinct
    assert sum(map(len, active.values())) == truth.kev.listed_in_last
    assert all(len(types) <= 1 for types in active.values())
    assert active["KEV:CVE-2025-4664"] == {}
    assert sum(ransom[name] for name in ever if active[f"KEV:{name}"]) == truth.kev.in_last_ransomware_known


# VEX


def test_statements_void_older_ones_about_the_same_part_only(truth: Truth, engine: Engine) -> None:
    steps = published(engine, "openvex", [DATA / "openvex"])
    converted = converted_documents(steps)
    by_key: dict[tuple[str, str, str], list[Document]] = {}
    for document in converted:
        [part] = document.scope
        by_key.setdefault((part["vulnerability"][0], part["package"][0], part["component"][0]), []).append(document)
    resolutions = engine.resolve([document.id for document in converted])
    active = {resolution.name for resolution in resolutions if resolution.status == "in_force"}
    current = [[one for one in same if one.id in active] for same in by_key.values()]
    expected = truth.openvex.by_vulnerability_product_subcomponents

    assert len(converted) == truth.openvex.statements
    assert len(by_key) == expected.keys
    assert sum(len(same) > 1 for same in by_key.values()) == expected.keys_with_more_than_one_statement
    assert (
        sum(len({one.time for one in same}) > 1 for same in by_key.values()) == expected.keys_with_different_timestamps
    )
    assert len(converted) - len(active) == expected.statements_older_than_newest_of_key
    assert sum(len(one) > 1 for one in current) == expected.keys_whose_newest_timestamp_is_shared
    assert Counter(str(one.attributes["status"]) for one in converted) == truth.openvex.status


@pytest.mark.parametrize("keys", [("vulnerability", "package"), ("vulnerability", "package", "component")])
def test_statements_about_a_product_and_its_parts_differ_as_their_publisher_has_them(
    keys: tuple[str, ...], truth: Truth
) -> None:
    reading = Reading("openvex")
    by_key: dict[tuple[str, ...], list[Document]] = {}
    for path in sorted((DATA / "openvex").iterdir()):
        for document in documents(reading.read(path.read_bytes(), path.name)):
            [part] = document.scope
            by_key.setdefault(tuple(part[key][0] for key in keys), []).append(document)
    newest = {key: max(one.time for one in same) for key, same in by_key.items()}

    def differing(name: str) -> int:
        return sum(len({str(one.attributes.get(name)) for one in same}) > 1 for same in by_key.values())

    assert Keyed(
        keys=len(by_key),
        keys_with_more_than_one_statement=sum(len(same) > 1 for same in by_key.values()),
        keys_with_different_timestamps=sum(len({one.time for one in same}) > 1 for same in by_key.values()),
        keys_with_different_justification=differing("justification"),
        keys_with_different_status=differing("status"),
        statements_older_than_newest_of_key=sum(one.time < newest[key] for key, same in by_key.items() for one in same),
        keys_whose_newest_timestamp_is_shared=sum(
            sum(one.time == newest[key] for one in same) > 1 for key, same in by_key.items()
        ),
    ) == (
        truth.openvex.by_vulnerability_product
        if len(keys) == 2
        else truth.openvex.by_vulnerability_product_subcomponents
    )


# PEPs


def test_either_of_two_peps_may_name_the_supersession(truth: Truth, engine: Engine) -> None:
    [step, *_] = steps = published(engine, "standards", [DATA / "peps.jsonl"])
    converted = converted_documents(steps)
    new_side = {(old, one.id) for one in converted for old in one.supersedes}
    old_side = {(one.id, new) for one in converted for new in one.superseded_by}
    resolutions = engine.resolve([document.id for document in converted])
    superseded = {resolution.name for resolution in resolutions if resolution.status == "superseded"}
    by_status = {one.id for one in converted if one.attributes["status"] == "Superseded"}
    several = Counter(old for old, _ in new_side | old_side)

    assert step.conversion is not None
    assert len(converted) == truth.peps.peps
    assert (len(old_side), len(new_side)) == (truth.peps.pairs_from_superseded_by, truth.peps.pairs_from_replaces)
    assert (len(old_side & new_side), len(old_side | new_side)) == (truth.peps.pairs_in_both, truth.peps.pairs_union)
    assert len(superseded) == truth.peps.superseded_peps_by_explicit_reference
    assert len(converted) - len(superseded) == truth.peps.frontier_peps
    assert Counter(str(one.attributes["status"]) for one in converted) == truth.peps.status
    assert len(by_status) == truth.peps.status_superseded
    assert {f"PEP-{n}" for n in truth.peps.status_superseded_without_reference} == by_status - superseded
    assert {f"PEP-{n}" for n in truth.peps.superseded_by_more_than_one} == {n for n, c in several.items() if c > 1}


def test_the_history_in_any_order_of_lines_ends_alike(engine: Engine, tmp_path: Path) -> None:
    lines = HISTORY.read_bytes().splitlines(keepends=True)
    Random(5).shuffle(lines)
    shuffled = tmp_path / "shuffled.jsonl"
    shuffled.write_bytes(b"".join(lines))
    published(engine, "osv", [HISTORY])
    with stream_car.open(tmp_path / "other") as other:
        published(other, "osv", [shuffled])
        records = sorted({json.loads(line)["record"]["id"] for line in lines})

        assert in_force(other, records) == in_force(engine, records)
        assert other.resolve(records[:200]) == engine.resolve(records[:200])
        assert other.publish(Reading("osv").read(HISTORY.read_bytes())).receipts[0].outcome == "duplicate"


def test_versions_of_advisories_in_any_order_of_files_end_alike(engine: Engine, tmp_path: Path) -> None:
    """Versions alone: under one version the order of arrival counts, and that is not shuffled."""
    by_version: dict[tuple[str, str], bytes] = {}
    for path in advisories():
        for document in documents(Reading("csaf").read(path.read_bytes(), path.name)):
            by_version[record_of(document.id), str(document.attributes["version"])] = path.read_bytes()
    names = sorted(by_version)
    for order, folder in enumerate(("one", "two")):
        (tmp_path / folder).mkdir()
        if order:
            Random(6).shuffle(names)
        for number, name in enumerate(names):
            (tmp_path / folder / f"{number}.json").write_bytes(by_version[name])
    published(engine, "csaf", [tmp_path / "one"])
    with stream_car.open(tmp_path / "other") as other:
        published(other, "csaf", [tmp_path / "two"])
        records = sorted({record for record, _ in names})

        assert in_force(other, records) == in_force(engine, records)


def test_statements_in_any_order_of_files_end_alike(engine: Engine, tmp_path: Path) -> None:
    paths = sorted((DATA / "openvex").iterdir())
    published(engine, "openvex", paths)
    Random(7).shuffle(paths)
    with stream_car.open(tmp_path / "other") as other:
        names = sorted(document.id for document in converted_documents(published(other, "openvex", paths)))

        assert statuses(other.resolve(names)) == statuses(engine.resolve(names))
