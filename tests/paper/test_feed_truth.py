"""Samples of public feeds give, published and asked for, the counts that were worked out from them by hand.

The samples lie beside the repository, not in it; where they are missing these tests say so.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest

import stream_car
from stream_car.core.documents import Document
from stream_car.local.engine import Engine
from tests.support.feeds import DATA, Reading, documents, in_force, published

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the samples are not at {DATA}")


class Osv(msgspec.Struct):
    """What the history of the Go database must give."""

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
    """What the advisories must give."""

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
    """All of them."""

    files: int
    by_category: dict[str, int]
    superseded_valid_with_external_reference: int
    vectors: list[Vector]


class Cve5(msgspec.Struct):
    """What the CVE records must give."""

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
    """What the catalogues must give."""

    steps: list[Catalogue]
    ever_listed: int
    listed_in_last: int
    in_last_ransomware_known: int
    entry_versions_distinct: int


class Keyed(msgspec.Struct):
    """Statements by what they are about."""

    keys: int
    keys_with_more_than_one_statement: int
    keys_with_different_timestamps: int
    keys_with_different_justification: int
    keys_with_different_status: int
    statements_older_than_newest_of_key: int
    keys_whose_newest_timestamp_is_shared: int


class Vex(msgspec.Struct):
    """What the VEX documents must give."""

    documents: int
    statements: int
    status: dict[str, int]
    by_vulnerability_product: Keyed
    by_vulnerability_product_subcomponents: Keyed


class Peps(msgspec.Struct):
    """What the headers of the PEPs must give."""

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
    with stream_car.open(tmp_path / "data") as opened:
        yield opened


NUMBER = re.compile(r"(\d+)")
HISTORY = DATA / "osv-go.history.jsonl"


def edition_of(name: str) -> str:
    return name.removesuffix("/fixed")


def record_of(name: str) -> str:
    return name.partition("@")[0]


def test_the_go_database_has_the_editions_in_force_that_it_should(truth: Truth, engine: Engine) -> None:
    steps = published(engine, "osv", [HISTORY])
    said = [one for step in steps if step.conversion is not None for one in documents(step.conversion.documents)]
    editions = {edition_of(one.id) for one in said}
    records = sorted({record_of(one.id) for one in said})
    active = in_force(engine, records)
    holding = {edition_of(name) for found in active.values() for name in found}
    withdrawn = {record for record, found in active.items() if "advisory_withdrawn" in found.values()}
    ever = {record_of(one.id) for one in said if one.type == "advisory_withdrawn"}

    assert len(editions) == truth.osv.lines
    assert len(records) == truth.osv.records
    assert len(holding) == truth.osv.records
    assert len(editions - holding) == truth.osv.superseded_revisions
    assert sorted(withdrawn) == truth.osv.withdrawn_ids
    assert len(withdrawn) == truth.osv.withdrawn_now
    assert len(ever) == truth.osv.withdrawn_ever
    assert sorted(ever - withdrawn) == truth.osv.reinstated_ids


def fixes(parts: list[Document]) -> set[tuple[str, str]]:
    found = [one.attributes["fixed"] for one in parts]
    return {
        (name, version)
        for fixed in found
        if isinstance(fixed, dict)
        for name, versions in fixed.items()
        for version in versions
    }


def values(parts: list[Document], key: str) -> set[str]:
    return {value for one in parts for part in one.scope for value in part.get(key, ())}


def test_fixes_and_aliases_come_and_go_as_the_go_database_says(truth: Truth) -> None:
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
            what = "added" if not old else "replaced" if new else "retracted"
            changes += [f"fix_{what}", "fix_set_changed"]
            retracted += [name] if what == "retracted" else []
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
    assert {what: len(some) for what, some in with_change.items()}.items() <= truth.osv.records_with_transition.items()
    assert sum(fixes(parts) != first[name] for name, parts in now.items()) == truth.osv.final_fix_differs_from_first
    assert sum(n > 1 for n in revisions.values()) == truth.osv.records_with_2_or_more_revisions
    assert max(revisions.values()) == truth.osv.max_revisions
    assert len(records_of) == truth.osv.packages
    assert sum(n > 1 for n in records_of.values()) == truth.osv.packages_with_2_or_more_records


def test_the_same_history_again_changes_nothing(engine: Engine) -> None:
    published(engine, "osv", [HISTORY])
    before = engine.next_offset
    [step] = published(engine, "osv", [HISTORY])

    assert step.unchanged is not None
    assert engine.next_offset == before


# CSAF


def advisories(folder: Path = DATA / "csaf") -> list[Path]:
    return sorted(
        folder.glob("*.json"), key=lambda path: [int(n) if n.isdigit() else n for n in NUMBER.split(path.name)]
    )


def test_the_newest_version_of_every_advisory_is_in_force(truth: Truth, engine: Engine) -> None:
    steps = published(engine, "csaf", advisories())
    said = [one for step in steps if step.conversion is not None for one in documents(step.conversion.documents)]
    refused = [step for step in steps if step.rejected is not None]
    active = in_force(engine, sorted({record_of(one.id) for one in said}))

    assert [f"csaf/{Path(step.file.name).name}" for step in refused] == truth.csaf.files_that_do_not_parse
    assert len(said) + len(refused) == truth.csaf.files
    assert len(active) == truth.csaf.documents
    assert all(len(found) == 1 for found in active.values())
    assert truth.csaf.files - len(active) == truth.csaf.superseded_files
    newest = {record_of(one.id): one.id for one in said}
    assert {name for found in active.values() for name in found} == set(newest.values())


def remedies(one: Document) -> list[object]:
    found = one.attributes["remediations"]
    assert isinstance(found, list)
    return sorted(found, key=str)


def test_advisories_change_as_their_files_do(truth: Truth) -> None:
    reading = Reading("csaf")
    now: dict[str, Document] = {}
    counts: Counter[str] = Counter()
    cves: dict[str, set[str]] = {}
    for path in advisories():
        for one in documents(reading.read(path.read_bytes(), path.name)):
            before = now.get(record_of(one.id))
            now[record_of(one.id)] = one
            cves.setdefault(record_of(one.id), set()).update(values([one], "vulnerability"))
            if before is None:
                continue
            is_same_version = before.attributes["version"] == one.attributes["version"]
            has_other_remedies = remedies(before) != remedies(one)
            has_other_cves = values([before], "vulnerability") != values([one], "vulnerability")
            counts.update(
                pairs=True,
                equal=is_same_version,
                remedies=has_other_remedies,
                cves=has_other_cves,
                back=str(one.attributes["released"]) < str(before.attributes["released"]),
                silent=is_same_version and (has_other_remedies or has_other_cves),
            )
            assert before.precedence < one.precedence
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
    gone = sum(bool(cves[name] - values([one], "vulnerability")) for name, one in now.items())
    assert gone == truth.csaf.cves_withdrawn_from_a_document
    fixed = [one for one in now.values() if "'vendor_fix'" in str(remedies(one))]
    assert len(fixed) == truth.csaf.newest_documents_with_vendor_fix


def test_the_standards_own_vectors_name_their_successors(truth: Truth) -> None:
    reading = Reading("csaf")
    kinds: Counter[str] = Counter()
    named = 0
    for vector in truth.csaf_oasis.vectors:
        path = DATA.parent / vector.file if not (DATA / vector.file).exists() else DATA / vector.file
        [one] = documents(reading.read(path.read_bytes(), path.name))
        kinds[str(one.attributes["category"])] += 1
        assert len(one.superseded_by) == (vector.external_references if vector.category == "csaf_superseded" else 0)
        named += vector.valid and bool(one.superseded_by)

    assert reading.refused == []
    assert kinds == truth.csaf_oasis.by_category
    assert named == truth.csaf_oasis.superseded_valid_with_external_reference


# CVE records


def test_cve_records_are_published_rejected_and_published_again(truth: Truth, engine: Engine) -> None:
    steps = published(engine, "cve5", [DATA / "cve5"])
    said = [one for step in steps if step.conversion is not None for one in documents(step.conversion.documents)]
    newest = {record_of(one.id): one for one in said}
    active = in_force(engine, sorted(newest))
    states: dict[str, list[str]] = {}
    for one in said:
        states.setdefault(record_of(one.id), []).append(str(one.attributes["state"]))
    moves = Counter(f"{a}>{b}" for found in states.values() for a, b in pairwise(found))
    back = {name for name, found in states.items() if "REJECTED" in found and found[-1] == "PUBLISHED"}
    twice = {name for name, found in states.items() if "R>P>R" in ">".join(state[0] for state in found)}
    replaced = {name: list(one.superseded_by) for name, one in newest.items() if one.superseded_by}

    assert len(said) == truth.cve5.files
    assert len(newest) == truth.cve5.records
    assert len(said) - len(newest) == truth.cve5.superseded_files
    assert Counter(found[-1] for found in states.values()) == truth.cve5.newest_state
    assert moves == truth.cve5.transitions
    assert sorted(back) == truth.cve5.records_ever_rejected_now_published
    assert sorted(twice) == truth.cve5.records_reinstated_then_rejected_again
    assert replaced == truth.cve5.replaced_by
    assert not set(replaced) & set(truth.cve5.rejected_naming_another_cve_only_in_text)
    holding = {name: next(iter(found)) for name, found in active.items() if found}
    assert holding == {name: one.id for name, one in newest.items() if name not in replaced}
    assert sorted(name for name, one in newest.items() if "disputed" in str(one.attributes.get("tags"))) == sorted(
        truth.cve5.disputed_tag
    )


def test_a_replaced_cve_leads_to_the_one_that_takes_its_place(truth: Truth, engine: Engine) -> None:
    published(engine, "cve5", [DATA / "cve5"])
    for old, [new] in truth.cve5.replaced_by.items():
        [found] = engine.resolve([old])
        controlling = {record_of(one.document.id) for group in found.groups for one in group.controlling}
        missing = {name for group in found.groups for name in group.missing}
        is_here = new in truth.cve5.replaced_by_targets_in_set

        assert found.status == "void"
        assert (controlling, missing) == (({new}, set()) if is_here else (set(), {new}))


# The catalogue of exploited vulnerabilities


def test_the_catalogue_is_replayed_without_the_file_that_breaks_off(truth: Truth, engine: Engine) -> None:
    ever: dict[str, list[str]] = {}
    ransom: dict[str, bool] = {}
    for expected in truth.kev.steps:
        [step, *_] = published(engine, "kev", [DATA / expected.file])
        assert (step.rejected is None) == expected.parses
        if step.conversion is None:
            continue
        said = documents(step.conversion.documents)
        names = [one.id.removeprefix("KEV:").partition("@")[0] for one in said]
        retracted = {one.id.removeprefix("KEV:").partition("@")[0] for one in step.conversion.documents} - set(names)
        assert step.conversion.records == expected.entries
        if ever:
            assert sorted(retracted) == expected.removed
            assert sum(name not in ever for name in names) == expected.added
            assert sum(name in ever for name in names) == expected.changed
        for name, one in zip(names, said, strict=True):
            ever.setdefault(name, []).append(one.id)
            ransom[name] = one.attributes["knownRansomwareCampaignUse"] == "Known"
    found = in_force(engine, [f"KEV:{name}" for name in ever])
    active = [name for some in found.values() for name in some]

    assert len(ever) == truth.kev.ever_listed
    assert sum(map(len, ever.values())) == truth.kev.entry_versions_distinct
    assert len(active) == truth.kev.listed_in_last
    assert all(len(some) <= 1 for some in found.values())
    assert found["KEV:CVE-2025-4664"] == {}
    assert sum(ransom[name] for name in ever if found[f"KEV:{name}"]) == truth.kev.in_last_ransomware_known


# VEX


def test_statements_void_older_ones_about_the_same_part_only(truth: Truth, engine: Engine) -> None:
    steps = published(engine, "openvex", [DATA / "openvex"])
    said = [one for step in steps if step.conversion is not None for one in documents(step.conversion.documents)]
    by_key: dict[tuple[str, str, str], list[Document]] = {}
    for one in said:
        [part] = one.scope
        by_key.setdefault((part["vulnerability"][0], part["package"][0], part["component"][0]), []).append(one)
    found = engine.resolve([one.id for one in said])
    active = {one.asked for one in found if one.status == "active"}
    holding = [[one for one in some if one.id in active] for some in by_key.values()]
    expected = truth.openvex.by_vulnerability_product_subcomponents

    assert len(said) == truth.openvex.statements
    assert len(by_key) == expected.keys
    assert sum(len(some) > 1 for some in by_key.values()) == expected.keys_with_more_than_one_statement
    assert (
        sum(len({one.time for one in some}) > 1 for some in by_key.values()) == expected.keys_with_different_timestamps
    )
    assert len(said) - len(active) == expected.statements_older_than_newest_of_key
    assert sum(len(some) > 1 for some in holding) == expected.keys_whose_newest_timestamp_is_shared
    assert Counter(str(one.attributes["status"]) for one in said) == truth.openvex.status


@pytest.mark.parametrize("keys", [("vulnerability", "package"), ("vulnerability", "package", "component")])
def test_statements_about_a_product_and_its_parts_differ_as_their_publisher_has_them(
    keys: tuple[str, ...], truth: Truth
) -> None:
    reading = Reading("openvex")
    by_key: dict[tuple[str, ...], list[Document]] = {}
    for path in sorted((DATA / "openvex").iterdir()):
        for one in documents(reading.read(path.read_bytes(), path.name)):
            [part] = one.scope
            by_key.setdefault(tuple(part[key][0] for key in keys), []).append(one)
    newest = {key: max(one.time for one in some) for key, some in by_key.items()}

    def differing(name: str) -> int:
        return sum(len({str(one.attributes.get(name)) for one in some}) > 1 for some in by_key.values())

    assert Keyed(
        keys=len(by_key),
        keys_with_more_than_one_statement=sum(len(some) > 1 for some in by_key.values()),
        keys_with_different_timestamps=sum(len({one.time for one in some}) > 1 for some in by_key.values()),
        keys_with_different_justification=differing("justification"),
        keys_with_different_status=differing("status"),
        statements_older_than_newest_of_key=sum(one.time < newest[key] for key, some in by_key.items() for one in some),
        keys_whose_newest_timestamp_is_shared=sum(
            sum(one.time == newest[key] for one in some) > 1 for key, some in by_key.items()
        ),
    ) == (
        truth.openvex.by_vulnerability_product
        if len(keys) == 2
        else truth.openvex.by_vulnerability_product_subcomponents
    )


# PEPs


def test_peps_are_superseded_by_either_sides_word(truth: Truth, engine: Engine) -> None:
    [step, *_] = steps = published(engine, "standards", [DATA / "peps.jsonl"])
    said = [one for step in steps if step.conversion is not None for one in documents(step.conversion.documents)]
    new_side = {(old, one.id) for one in said for old in one.supersedes}
    old_side = {(one.id, new) for one in said for new in one.superseded_by}
    found = engine.resolve([one.id for one in said])
    void = {one.asked for one in found if one.status == "void"}
    by_status = {one.id for one in said if one.attributes["status"] == "Superseded"}
    several = Counter(old for old, _ in new_side | old_side)

    assert step.conversion is not None
    assert len(said) == truth.peps.peps
    assert (len(old_side), len(new_side)) == (truth.peps.pairs_from_superseded_by, truth.peps.pairs_from_replaces)
    assert (len(old_side & new_side), len(old_side | new_side)) == (truth.peps.pairs_in_both, truth.peps.pairs_union)
    assert len(void) == truth.peps.superseded_peps_by_explicit_reference
    assert len(said) - len(void) == truth.peps.frontier_peps
    assert Counter(str(one.attributes["status"]) for one in said) == truth.peps.status
    assert len(by_status) == truth.peps.status_superseded
    assert {f"PEP-{n}" for n in truth.peps.status_superseded_without_reference} == by_status - void
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
        for one in documents(Reading("csaf").read(path.read_bytes(), path.name)):
            by_version[record_of(one.id), str(one.attributes["version"])] = path.read_bytes()
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
        said = [
            one for step in published(other, "openvex", paths) if step.conversion for one in step.conversion.documents
        ]
        names = sorted(one.id for one in said)

        assert {one.asked: one.status for one in other.resolve(names)} == {
            one.asked: one.status for one in engine.resolve(names)
        }
