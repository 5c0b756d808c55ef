"""Baselines see what their names say, and find what the paper says that they find."""

from pathlib import Path

import pytest

from benchmarks.paper.baselines import Baselines, dense_rerank
from benchmarks.paper.entities import FORMS
from benchmarks.paper.judge import Judge, by_hop
from benchmarks.paper.lab import OURS, Lab
from benchmarks.paper.models import Models
from benchmarks.paper.sets import find_collections, load
from stream_car import rule_packs
from stream_car.errors import InvalidRequest
from tests.support.letters import Letters
from tests.support.small_set import written


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture
def bench(data: Path) -> Baselines:
    (collection,) = find_collections(["cvepatchqa"])
    return Baselines(load(data, collection, "dev"), rule_packs.load(["security"]))


def test_relevance_finds_the_anchor_and_two_stages_what_controls_it(bench: Baselines) -> None:
    fixed, _ = bench.material.questions

    assert bench.bm25.rank(fixed.text)[0] == "flaw-1"
    assert bench.two_stage(fixed.text, 1) == ["fix-1"]
    assert bench.with_rssg(fixed.text, 1) == ["fix-1"]


def test_a_matter_in_force_is_left_where_relevance_put_it(bench: Baselines) -> None:
    _, open_ = bench.material.questions

    assert bench.two_stage(open_.text, 1) == ["flaw-2"]


def test_the_probe_reads_names_of_known_form_only(bench: Baselines) -> None:
    assert bench.probe("Is samba still affected by cve-2024-00001?", None) == ["fix-1", "flaw-1"]
    assert bench.probe("Has the overflow been mended?", None) == []
    assert FORMS["employee"].search("Can EMP060-Evans trade?")


def test_a_system_that_sees_no_gold_is_handed_the_words_alone(bench: Baselines) -> None:
    fixed, open_ = bench.material.questions
    swapped = type(fixed)(id="x", text=fixed.text, gold=open_.gold, anchor=open_.anchor)

    for system in bench.systems():
        same = system.rank(swapped, 5) == system.rank(fixed, 5)
        assert same is not system.gold, system.name


def test_a_reranker_with_gold_edges_only_moves_what_its_pool_has() -> None:
    above = {"old": frozenset({"new"}), "other": frozenset({"elsewhere"})}

    assert dense_rerank(["old", "other", "new"], above, 2) == ["new", "old"]


def test_the_own_scorer_and_theorem_4_are_told_apart_and_hops_too(bench: Baselines) -> None:
    judge = Judge(bench.material.documents, bench.material.superseders, 5)
    fixed, open_ = bench.material.questions
    judged = [judge.judge(fixed, ["flaw-1"]), judge.judge(open_, ["flaw-2", "flaw-1"])]

    assert [(one.tca, one.own, one.accurate) for one in judged] == [(False, False, False), (False, True, True)]
    assert judged[1].ignored == ("flaw-1",)
    assert by_hop(judged)["T0"].own.value == 1.0
    assert [one.provenance for one in judged] == [0.5, 1.0]


def test_a_report_has_every_system_and_says_what_was_not_run(data: Path) -> None:
    (collection,) = find_collections(["cvepatchqa"])
    with Lab(data, k=1) as lab:
        report = lab.report(collection)

    shares = {line.system: line.scores.tca.value for line in report.lines}
    assert shares[OURS] == shares["oracle"] == 1.0
    assert shares["BM25"] == 0.5
    assert {one.system for one in report.needs} == {
        "dense",
        "dense re-rank, gold edges",
        "two-stage, dense anchors",
        "cross-encoder",
        "HyDE",
    }
    assert report.failures == ()
    assert report.factors is not None
    assert (report.factors.anchor, report.factors.identified, report.factors.frontier) == (1.0, 1.0, 1.0)


def test_delta_is_positive_exactly_where_the_most_relevant_document_is_void(data: Path) -> None:
    (collection,) = find_collections(["cvepatchqa"])
    with Lab(data) as lab:
        fixed, open_ = lab.report(collection).deltas

    assert (fixed.anchor, fixed.delta > 0) == ("flaw-1", True)
    assert (open_.anchor, open_.delta) == ("flaw-2", 0.0)


def test_models_at_hand_take_part(data: Path) -> None:
    (collection,) = find_collections(["cvepatchqa"])
    models = Models(
        encoders={"letters": Letters()},
        cross=lambda question, texts: [float("maintenance" in text) for text in texts],
        writer=lambda prompt: "Version 7 is a maintenance release.",
    )
    with Lab(data, models=models) as lab:
        report = lab.report(collection)
        stand = lab.open(collection)
        fixed = stand.material.questions[0]
        written_first = stand.systems["HyDE"].rank(fixed, 1)
        crossed_first = stand.systems["cross-encoder"].rank(fixed, 1)

    assert report.needs == ()
    assert {"dense (letters)", "dense re-rank, gold edges", "cross-encoder", "HyDE"} <= {x.system for x in report.lines}
    assert written_first == crossed_first == ["fix-1"]


def test_a_set_that_is_not_there_is_an_error_that_says_what_to_name(tmp_path: Path) -> None:
    (collection,) = find_collections(["ghsa"])

    with pytest.raises(InvalidRequest, match="--data must name the directory"):
        load(tmp_path, collection, "dev")
    with pytest.raises(InvalidRequest, match="Choose from: ghsa"):
        find_collections(["nothing"])
