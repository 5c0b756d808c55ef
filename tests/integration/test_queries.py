"""Two-stage answers as a caller sees them: groups, cuts, names, what a certificate guarantees, and rejections."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from stream_car import InvalidRequest, Retraction
from stream_car.codec import encode
from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.queries.answers import Answer, Group, Resolution
from stream_car.queries.limits import DEPTH, DEPTH_MAX, K_MAX, NAMES_MAX, TEXT_MAX
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.engines import RULESET, document, on_day
from tests.support.question_sets import crowd, engine

pytestmark = on_both


def answer_to(documents: list[Document], text: str, k: int = 5, depth: int = DEPTH) -> Answer:
    with engine() as car:
        car.publish(documents)
        return car.query(text, k=k, depth=depth)


def resolved(documents: list[Document], *names: str) -> tuple[Resolution, ...]:
    with engine() as car:
        car.publish(documents)
        return car.resolve(names)


def names(group: Group) -> list[str]:
    return [controlling.document.id for controlling in group.controlling]


def ids(answer: Answer) -> list[str]:
    return [result.id for result in answer.results]


def statuses(resolutions: Sequence[Resolution]) -> list[str]:
    return [resolution.status for resolution in resolutions]


RANKED = [  # by relevance to "comet": a, b, c
    document("a", at=1, topic="one", text="comet comet comet"),
    document("b", at=2, topic="two", text="comet comet and more"),
    document("c", at=3, topic="three", text="a comet and so very much more"),
    document("x", "denial", at=9, topic="two", text="words"),
    document("y", "denial", at=8, topic="two", text="words"),
    document("z", "denial", at=9, topic="two", text="words"),
]


@in_the_gate
def test_groups_come_in_the_order_of_relevance_and_their_members_latest_first_then_by_id() -> None:
    answer = answer_to(RANKED, "comet")

    assert [(group.anchor.id, names(group)) for group in answer.groups] == [
        ("a", ["a"]), ("b", ["x", "z", "y"]), ("c", ["c"]),
    ]  # fmt: skip
    assert ids(answer) == ["a", "x", "z", "y", "c"]
    assert [group.score for group in answer.groups] == sorted((g.score for g in answer.groups), reverse=True)
    assert answer.groups[0].score > answer.groups[2].score > 0
    assert (answer.certificate.covered, answer.certificate.not_covered) == (("a", "b", "c"), ())
    assert answer.certificate.complete


@in_the_gate
def test_superseded_documents_are_evidence_and_never_results() -> None:
    documents = [*RANKED[:2], RANKED[4], document("q", "doubt", at=20, topic="two", text="words")]
    answer = answer_to(documents, "comet")
    group = answer.groups[1]

    assert ids(answer) == ["a", "q"]
    assert {result.status for result in answer.results} == {"in_force"}
    assert group.anchor.status == "superseded"
    assert [(step.id, step.rule, step.scope) for step in group.controlling[0].path] == [
        ("y", "denial-voids-claim", "topic=two"), ("q", "doubt-voids-denial", "topic=two"),
    ]  # fmt: skip
    assert [(document.id, document.status) for document in group.superseded] == [("y", "superseded")]


@pytest.mark.parametrize(
    ("k", "results", "covered", "not_covered"),
    [
        (1, ["a"], ("a",), ("b", "c")),
        (2, ["a", "x"], ("a",), ("b", "c")),
        (3, ["a", "x", "z"], ("a",), ("b", "c")),
        (4, ["a", "x", "z", "y"], ("a", "b"), ("c",)),
        (5, ["a", "x", "z", "y", "c"], ("a", "b", "c"), ()),
    ],
)
def test_only_anchors_whose_groups_are_returned_whole_are_covered(
    k: int, results: list[str], covered: tuple[str, ...], not_covered: tuple[str, ...]
) -> None:
    answer = answer_to(RANKED, "comet", k=k)

    assert ids(answer) == results
    assert (answer.certificate.covered, answer.certificate.not_covered) == (covered, not_covered)


def test_an_anchor_that_adds_nothing_is_still_covered_when_the_answer_is_full() -> None:
    twins = [document(f"t{n}", at=n, topic="one", text="comet " * (9 - n)) for n in range(3)]
    answer = answer_to([*twins, document("d", "denial", at=9, topic="one", text="words")], "comet", k=1)

    assert ids(answer) == ["d"]
    assert answer.certificate.covered == ("t0", "t1", "t2")


def test_depth_limits_the_anchors() -> None:
    answer = answer_to(RANKED, "comet", depth=2)

    assert [group.anchor.id for group in answer.groups] == ["a", "b"]
    assert answer.certificate.covered == ("a", "b")


@in_the_gate
def test_documents_that_void_one_another_are_listed_and_the_answer_is_not_complete() -> None:
    ring = [
        document("a", text="comet", supersedes=("b",)),
        document("b", text="words", supersedes=("a",)),
    ]
    answer = answer_to(ring, "comet")
    [group] = answer.groups

    assert ids(answer) == []
    assert (set(group.cycle), group.complete, group.reasons) == ({"a", "b"}, False, ("cycle",))
    assert (answer.certificate.complete, answer.certificate.reasons) == (False, ("cycle",))


@in_the_gate
def test_a_missing_successor_is_named() -> None:
    documents = [document("a", text="comet", superseded_by=("elsewhere",))]
    answer = answer_to(documents, "comet")
    [group] = answer.groups

    assert ids(answer) == []
    assert (group.missing, group.reasons) == (("elsewhere",), ("successor_missing",))
    assert (answer.certificate.complete, answer.certificate.reasons) == (False, ("successor_missing",))
    [resolution] = resolved([*documents, document("elsewhere")], "a")
    assert (resolution.status, resolution.groups[0].reasons, names(resolution.groups[0])) == (
        "superseded",
        (),
        ["elsewhere"],
    )


@in_the_gate
def test_why_a_document_does_not_hold_is_told_alike_whatever_else_is_asked() -> None:
    denial = replace(document("x", "denial", at=2, topic="tea", superseded_by=("elsewhere",)), title="The denial")
    documents = [document("a", at=1, topic="tea"), denial]

    [alone] = resolved(documents, "a")
    together, _ = resolved(documents, "a", "x")

    assert alone == together
    assert alone.outcome_text.endswith("The denial")


def test_no_anchor_is_a_reason() -> None:
    answer = answer_to(RANKED, "no document has these")

    assert (answer.groups, answer.results) == ((), ())
    assert (answer.certificate.complete, answer.certificate.reasons) == (False, ("no_anchor",))


def test_a_certificate_names_the_rules_and_the_input_that_it_covers() -> None:
    with engine() as car:
        car.publish(RANKED)
        certificate = car.query("comet").certificate

        assert (certificate.generation, sum(certificate.cut)) == (car.status().generation, len(RANKED))
        assert certificate.as_of is None
        assert (certificate.rounds > 0, certificate.lookups > 0) == (True, True)


@in_the_gate
def test_kappa_tells_how_many_documents_around_an_anchor_are_not_about_it() -> None:
    """Definition 5: of the four in its scope, the claim and its denial are in the anchor's closure."""
    others = [document("n1", "note", topic="one", text="w"), document("n2", "note", topic="one", text="w")]
    documents = [RANKED[0], document("d", "denial", at=9, topic="one", text="w"), *others]
    certificate = answer_to(documents, "comet").certificate
    corpus = definitions.current_documents(documents)
    closed = definitions.closure(["a"], definitions.superseders(corpus, RULESET))

    assert certificate.kappa == len(documents) / len(closed) == 2.0
    assert certificate.phi == 0.5
    assert answer_to([RANKED[0]], "comet").certificate.phi == 1.0


@in_the_gate
def test_as_of_a_valid_time_later_documents_do_not_exist() -> None:
    with engine() as car:
        car.publish([*RANKED, document("late", at=30, topic="four", text="comet comet comet comet")])
        answer = car.query("comet", as_of=on_day(8))

        assert [(group.anchor.id, names(group)) for group in answer.groups] == [
            ("a", ["a"]), ("b", ["y"]), ("c", ["c"]),
        ]  # fmt: skip
        assert answer.certificate.as_of == on_day(8)
        assert statuses(car.resolve(["b", "y", "x", "late"], as_of=on_day(7))) == [
            "in_force", "pending", "pending", "pending",
        ]  # fmt: skip
        assert names(car.resolve(["b"], as_of=on_day(8))[0].groups[0]) == ["y"]


def test_a_successor_that_is_later_than_the_time_of_a_question_does_not_count() -> None:
    with engine() as car:
        car.publish([document("a", at=1, superseded_by=("b",)), document("b", at=5)])

        assert statuses(car.resolve(["a"], as_of=on_day(4))) == ["in_force"]
        assert statuses(car.resolve(["a"], as_of=on_day(5))) == ["superseded"]


def test_the_depth_is_filled_with_documents_that_exist() -> None:
    future = [document(f"f{n}", at=9100, text="comet " * 9) for n in range(40)]
    answer = answer_to([*future, *RANKED[:3]], "comet", depth=3)

    assert answer.certificate.covered == ("a", "b", "c")
    assert answer.pending == 40


def test_plain_search_returns_superseded_documents_too() -> None:
    with engine() as car:
        car.publish(RANKED)

        assert [(hit.id, hit.status) for hit in car.search("comet", 2)] == [("a", "in_force"), ("b", "superseded")]


@in_the_gate
def test_a_name_is_an_id_then_a_chunk_of_one_then_a_record() -> None:
    documents = [
        document("doc", topic="one"), document("doc#2", topic="two"), document("r#7", record="rec#1"),
        document("e1", at=1, record="rec"), document("e2", at=2, record="rec"),
    ]  # fmt: skip
    resolutions = resolved(
        documents, "doc", "doc#2", "doc#3", "doc#3#4", "doc#2#4", "rec", "rec#9", "rec#1", "#", "nobody"
    )

    assert [(r.via, r.status, [group.anchor.id for group in r.groups]) for r in resolutions] == [
        ("id", "in_force", ["doc"]),
        ("id", "in_force", ["doc#2"]),
        ("chunk", "in_force", ["doc"]),
        ("", "unknown", []),
        ("chunk", "in_force", ["doc#2"]),
        ("record", "in_force", ["e1", "e2"]),
        ("record", "in_force", ["e1", "e2"]),
        ("record", "in_force", ["r#7"]),
        ("", "unknown", []),
        ("", "unknown", []),
    ]
    assert [resolution.name for resolution in resolutions][-2:] == ["#", "nobody"]
    assert [names(group) for group in resolutions[5].groups] == [["e2"], ["e2"]]


def test_a_record_of_many_editions_leads_to_the_latest() -> None:
    [resolution] = resolved([document(f"e{n}", at=n, record="rec") for n in range(300)], "rec")

    assert (resolution.via, resolution.status) == ("record", "in_force")
    assert len(resolution.groups) == 100
    assert {tuple(names(group)) for group in resolution.groups} == {("e299",)}


@in_the_gate
def test_retracted_pending_and_unknown_documents_are_distinguished() -> None:
    with engine() as car:
        car.publish([document("gone", topic="one"), Retraction(id="gone"), document("later", at=9001)])
        resolutions = car.resolve(["gone", "gone#1", "later", "later#1", "never"])

    assert statuses(resolutions) == ["retracted", "retracted", "pending", "pending", "unknown"]
    assert all(resolution.groups == () for resolution in resolutions)


@only_embedded("a service answers with a hundred at most")
def test_of_very_many_controlling_documents_the_latest_are_listed_and_the_others_counted() -> None:
    documents = [document("comet", at=0, topic="moon", text="comet"), *crowd(400)]
    answer = answer_to(documents, "comet", k=300)
    [resolution] = resolved(documents, "comet")

    latest = [f"d{n}" for n in range(399, -1, -1)]
    for group, limit in ((answer.groups[0], 300), (resolution.groups[0], 256)):
        assert names(group) == latest[:limit]
        assert (group.controlling_more, group.complete, group.reasons) == (400 - limit, False, ("limit",))
    assert ids(answer) == latest[:300]
    assert answer.certificate.covered == ()


@only_embedded("over a network the description of the service rejects it")
@pytest.mark.parametrize("text", ["", "  \n", "x" * (TEXT_MAX + 1)])
def test_a_question_of_no_words_or_too_many_is_rejected(text: str) -> None:
    with engine() as car, pytest.raises(InvalidRequest) as caught:
        car.query(text)
    assert caught.value.code == "text"


@only_embedded("over a network the description of the service rejects it")
@pytest.mark.parametrize("number", [0, -1, K_MAX + 1, 10**9])
def test_numbers_out_of_range_are_rejected(number: int) -> None:
    assert K_MAX == DEPTH_MAX
    with engine() as car:
        with pytest.raises(InvalidRequest, match="`k` must be an integer from 1 to") as caught:
            car.query("comet", k=number)
        assert caught.value.code == "k"
        with pytest.raises(InvalidRequest, match="`depth` must be an integer from 1 to") as caught:
            car.query("comet", depth=number)
        assert caught.value.code == "depth"


@only_embedded("over a network the description of the service rejects it")
def test_too_many_names_and_a_single_string_are_rejected() -> None:
    with engine() as car:
        for wrong in (["n"] * (NAMES_MAX + 1), "one string"):
            for ask, field in ((car.resolve, "names"), (car.check, "ids")):
                with pytest.raises(InvalidRequest) as caught:
                    ask(wrong)
                assert caught.value.code == field


@in_the_gate
def test_times_without_a_zone_and_scopes_without_a_pair_are_rejected() -> None:
    with engine() as car:
        for time in ("yesterday", "2024-01-01T00:00:00", datetime(2024, 1, 1)):  # noqa: DTZ001  that is the point
            with pytest.raises(InvalidRequest, match="as_of") as caught:
                car.query("comet", as_of=time)
            assert caught.value.code == "as_of"
        for request in (lambda: car.frontier({}), lambda: car.history({})):
            with pytest.raises(InvalidRequest) as caught:
                request()
            assert caught.value.code == "scope"


@in_the_gate
def test_a_time_may_be_given_as_text_or_as_a_day() -> None:
    with engine() as car:
        car.publish(RANKED)
        answers = [
            car.query("comet", as_of=time)
            for time in (datetime(2023, 5, 1, tzinfo=UTC), "2023-05-01", "2023-05-01T02:00:00+02:00")
        ]

    assert {answer.certificate.as_of for answer in answers} == {datetime(2023, 5, 1, tzinfo=UTC)}
    assert answers[0].groups == answers[1].groups == answers[2].groups


@in_the_gate
def test_one_document_may_be_published_alone() -> None:
    with engine() as car:
        alone = document("alone", topic="tea")
        published = [car.publish(alone), car.publish(encode(alone)), car.publish(encode(alone).decode())]
        fields = {"id": "m", "type": "claim", "time": "2024-01-01T00:00:00Z", "scope": {"topic": "t"}}
        published.append(car.publish(fields))

    assert [[receipt.outcome for receipt in publication.receipts] for publication in published] == [
        ["accepted"], ["duplicate"], ["duplicate"], ["accepted"],
    ]  # fmt: skip


@only_embedded("over a network the description of the service rejects it")
def test_many_terms_and_query_syntax_are_only_words() -> None:
    with engine() as car:
        car.publish(RANKED)

        assert ids(car.query('comet AND ("', k=1)) == ["a"]
        assert ids(car.query("a* " * 100 + "comet", k=1)) == ["a"]
        assert ids(car.query(" ".join(f"w{n}" for n in range(10_000)))) == []
