"""Two-stage answers as a caller sees them: groups, cuts, names, what a certificate warrants, and refusals."""

from functools import partial

import pytest

from stream_car import InvalidRequest, Retraction
from stream_car.codec import encode
from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.queries.answers import Answer, Group, Resolution
from stream_car.queries.limits import DEPTH, DEPTH_MAX, K_MAX, NAMES_MAX, TEXT_MAX
from stream_car.ranking.settings import Settings
from tests.support import either_service
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.engines import RULESET, day, document

pytestmark = on_both

engine = partial(
    either_service.engine, ranking=Settings(superseded_bonus=0.0)
)  # relevance alone decides the order of groups


def asked(documents: list[Document], text: str, k: int = 5, depth: int = DEPTH) -> Answer:
    with engine() as here:
        here.publish(documents)
        return here.query(text, k=k, depth=depth)


def resolved(documents: list[Document], *names: str) -> tuple[Resolution, ...]:
    with engine() as here:
        here.publish(documents)
        return here.resolve(names)


def names(group: Group) -> list[str]:
    return [one.document.id for one in group.controlling]


def ids(answer: Answer) -> list[str]:
    return [one.id for one in answer.results]


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
    answer = asked(RANKED, "comet")

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
    chain = [*RANKED[:2], RANKED[4], document("q", "doubt", at=20, topic="two", text="words")]
    answer = asked(chain, "comet")
    group = answer.groups[1]

    assert ids(answer) == ["a", "q"]
    assert all(one.active for one in answer.results)
    assert not group.anchor.active
    assert [(step.id, step.rule, step.scope) for step in group.controlling[0].path] == [
        ("y", "denial-voids-claim", "topic=two"), ("q", "doubt-voids-denial", "topic=two"),
    ]  # fmt: skip
    assert [(one.id, one.active) for one in group.passed] == [("y", False)]


@pytest.mark.parametrize(
    ("k", "results", "covered", "left"),
    [
        (1, ["a"], ("a",), ("b", "c")),
        (2, ["a", "x"], ("a",), ("b", "c")),
        (3, ["a", "x", "z"], ("a",), ("b", "c")),
        (4, ["a", "x", "z", "y"], ("a", "b"), ("c",)),
        (5, ["a", "x", "z", "y", "c"], ("a", "b", "c"), ()),
    ],
)
def test_only_anchors_whose_groups_are_returned_whole_are_covered(
    k: int, results: list[str], covered: tuple[str, ...], left: tuple[str, ...]
) -> None:
    answer = asked(RANKED, "comet", k=k)

    assert ids(answer) == results
    assert (answer.certificate.covered, answer.certificate.not_covered) == (covered, left)


def test_an_anchor_that_adds_nothing_is_still_covered_when_the_answer_is_full() -> None:
    twins = [document(f"t{n}", at=n, topic="one", text="comet " * (9 - n)) for n in range(3)]
    answer = asked([*twins, document("d", "denial", at=9, topic="one", text="words")], "comet", k=1)

    assert ids(answer) == ["d"]
    assert answer.certificate.covered == ("t0", "t1", "t2")


def test_depth_limits_the_anchors() -> None:
    answer = asked(RANKED, "comet", depth=2)

    assert [group.anchor.id for group in answer.groups] == ["a", "b"]
    assert answer.certificate.covered == ("a", "b")


@in_the_gate
def test_documents_that_void_one_another_are_shown_and_the_answer_is_not_called_complete() -> None:
    ring = [
        document("a", text="comet", supersedes=("b",)),
        document("b", text="words", supersedes=("a",)),
    ]
    answer = asked(ring, "comet")
    [group] = answer.groups

    assert ids(answer) == []
    assert (set(group.cycle), group.complete, group.reasons) == ({"a", "b"}, False, ("cycle",))
    assert (answer.certificate.complete, answer.certificate.reasons) == (False, ("cycle",))


@in_the_gate
def test_a_successor_that_is_not_here_is_named() -> None:
    said = [document("a", text="comet", superseded_by=("elsewhere",))]
    answer = asked(said, "comet")
    [group] = answer.groups

    assert ids(answer) == []
    assert (group.missing, group.reasons) == (("elsewhere",), ("successor_missing",))
    assert (answer.certificate.complete, answer.certificate.reasons) == (False, ("successor_missing",))
    [found] = resolved([*said, document("elsewhere")], "a")
    assert (found.status, found.groups[0].reasons, names(found.groups[0])) == ("void", (), ["elsewhere"])


def test_no_anchor_is_a_reason() -> None:
    answer = asked(RANKED, "nobody says this")

    assert (answer.groups, answer.results) == ((), ())
    assert (answer.certificate.complete, answer.certificate.reasons) == (False, ("no_anchor",))


def test_a_certificate_names_the_rules_and_the_input_that_it_speaks_for() -> None:
    with engine() as here:
        here.publish(RANKED)
        certificate = here.query("comet").certificate

        assert (certificate.generation, sum(certificate.cut)) == (here.generation, len(RANKED))
        assert certificate.as_of is None
        assert (certificate.rounds > 0, certificate.lookups > 0) == (True, True)


@in_the_gate
def test_kappa_says_how_many_documents_around_an_anchor_are_not_about_it() -> None:
    """Definition 5: of the four in its scope, the claim and its denial are in the anchor's closure."""
    others = [document("n1", "note", topic="one", text="w"), document("n2", "note", topic="one", text="w")]
    said = [RANKED[0], document("d", "denial", at=9, topic="one", text="w"), *others]
    certificate = asked(said, "comet").certificate
    corpus = definitions.current_documents(said)
    closed = definitions.closure(["a"], definitions.superseders(corpus, RULESET))

    assert certificate.kappa == len(said) / len(closed) == 2.0
    assert certificate.phi == 0.5
    assert asked([RANKED[0]], "comet").certificate.phi == 1.0


@in_the_gate
def test_as_of_a_valid_time_later_documents_do_not_exist() -> None:
    said = [*RANKED, document("late", at=30, topic="four", text="comet comet comet comet")]
    with engine() as here:
        here.publish(said)
        then = here.query("comet", as_of=day(8))

        assert [(group.anchor.id, names(group)) for group in then.groups] == [("a", ["a"]), ("b", ["y"]), ("c", ["c"])]
        assert then.certificate.as_of == day(8)
        assert [one.status for one in here.resolve(["b", "y", "x", "late"], as_of=day(7))] == [
            "active", "pending", "pending", "pending",
        ]  # fmt: skip
        assert [one.document.id for one in here.resolve(["b"], as_of=day(8))[0].groups[0].controlling] == ["y"]


def test_a_successor_that_is_later_than_the_time_asked_for_does_not_count() -> None:
    with engine() as here:
        here.publish([document("a", at=1, superseded_by=("b",)), document("b", at=5)])

        assert [one.status for one in here.resolve(["a"], as_of=day(4))] == ["active"]
        assert [one.status for one in here.resolve(["a"], as_of=day(5))] == ["void"]


def test_the_depth_is_filled_with_documents_that_exist() -> None:
    said = [document(f"f{n}", at=9100, text="comet " * 9) for n in range(40)]
    answer = asked([*said, *RANKED[:3]], "comet", depth=3)

    assert answer.certificate.covered == ("a", "b", "c")
    assert answer.pending == 40


def test_relevance_alone_returns_void_documents_too() -> None:
    with engine() as here:
        here.publish(RANKED)

        assert [(hit.id, hit.active) for hit in here.relevance("comet", 2)] == [("a", True), ("b", False)]


@in_the_gate
def test_a_name_is_an_id_then_a_chunk_of_one_then_a_record() -> None:
    said = [
        document("doc", topic="one"), document("doc#2", topic="two"), document("r#7", record="rec#1"),
        document("e1", at=1, record="rec"), document("e2", at=2, record="rec"),
    ]  # fmt: skip
    found = resolved(said, "doc", "doc#2", "doc#3", "doc#3#4", "doc#2#4", "rec", "rec#9", "rec#1", "#", "nobody")

    assert [(one.via, one.status, [group.anchor.id for group in one.groups]) for one in found] == [
        ("id", "active", ["doc"]),
        ("id", "active", ["doc#2"]),
        ("chunk", "active", ["doc"]),
        ("", "unknown", []),
        ("chunk", "active", ["doc#2"]),
        ("record", "active", ["e1", "e2"]),
        ("record", "active", ["e1", "e2"]),
        ("record", "active", ["r#7"]),
        ("", "unknown", []),
        ("", "unknown", []),
    ]
    assert [one.asked for one in found][-2:] == ["#", "nobody"]
    assert [names(group) for group in found[5].groups] == [["e2"], ["e2"]]


def test_a_record_of_many_editions_is_led_to_the_latest() -> None:
    [found] = resolved([document(f"e{n}", at=n, record="rec") for n in range(300)], "rec")

    assert (found.via, found.status) == ("record", "active")
    assert len(found.groups) == 100
    assert {tuple(names(group)) for group in found.groups} == {("e299",)}


@in_the_gate
def test_what_is_retracted_or_not_yet_due_is_told_apart_from_what_nobody_said() -> None:
    with engine() as here:
        here.publish([document("gone", topic="one"), Retraction(id="gone"), document("later", at=9001)])
        found = here.resolve(["gone", "gone#1", "later", "later#1", "never"])

    assert [one.status for one in found] == ["retracted", "retracted", "pending", "pending", "unknown"]
    assert all(one.groups == () for one in found)


def crowd(number: int) -> list[Document]:
    return [document(f"d{n}", "denial", at=1, topic="moon", order=n) for n in range(number)]


@only_embedded("a service answers with a hundred at most")
def test_of_very_many_controlling_documents_the_latest_are_listed_and_the_others_counted() -> None:
    matter = [document("comet", at=0, topic="moon", text="comet"), *crowd(400)]
    answer = asked(matter, "comet", k=300)
    [resolution] = resolved(matter, "comet")

    latest = [f"d{n}" for n in range(399, -1, -1)]
    for group, many in ((answer.groups[0], 300), (resolution.groups[0], 256)):
        assert names(group) == latest[:many]
        assert (group.controlling_more, group.complete, group.reasons) == (400 - many, False, ("limit",))
    assert ids(answer) == latest[:300]
    assert answer.certificate.covered == ()


@only_embedded("over a network the description of the service refuses it")
@pytest.mark.parametrize("text", ["", "  \n", "x" * (TEXT_MAX + 1)])
def test_a_question_that_cannot_be_read_is_refused(text: str) -> None:
    with engine() as here, pytest.raises(InvalidRequest) as caught:
        here.query(text)
    assert caught.value.code == "query"


@only_embedded("over a network the description of the service refuses it")
@pytest.mark.parametrize("number", [0, -1, K_MAX + 1, 10**9])
def test_numbers_out_of_range_are_refused(number: int) -> None:
    assert K_MAX == DEPTH_MAX
    with engine() as here:
        with pytest.raises(InvalidRequest, match="k must be from 1 to") as caught:
            here.query("comet", k=number)
        assert caught.value.code == "k"
        with pytest.raises(InvalidRequest, match="depth must be from 1 to") as caught:
            here.query("comet", depth=number)
        assert caught.value.code == "depth"


@only_embedded("over a network the description of the service refuses it")
def test_too_many_names_and_one_string_are_refused() -> None:
    with engine() as here:
        for wrong in (["n"] * (NAMES_MAX + 1), "one string"):
            for ask in (here.resolve, here.check):
                with pytest.raises(InvalidRequest) as caught:
                    ask(wrong)
                assert caught.value.code == "names"


@in_the_gate
def test_a_time_that_is_no_number_and_scopes_without_a_part_are_refused() -> None:
    with engine() as here:
        with pytest.raises(InvalidRequest, match="microseconds") as caught:
            here.query("comet", as_of="2024-01-01T00:00:00Z")  # type: ignore[arg-type]
        assert caught.value.code == "as_of"
        for nothing in (lambda: here.frontier({}), lambda: here.history({})):
            with pytest.raises(InvalidRequest) as caught:
                nothing()
            assert caught.value.code == "scope"


@in_the_gate
def test_one_document_may_be_published_alone() -> None:
    with engine() as here:
        one = document("alone", topic="tea")
        said = [here.publish(one), here.publish(encode(one)), here.publish(encode(one).decode())]
        said.append(here.publish({"id": "m", "type": "claim", "time": "2024-01-01T00:00:00Z", "scope": {"topic": "t"}}))

    assert [[receipt.outcome for receipt in each.receipts] for each in said] == [
        ["accepted"], ["duplicate"], ["duplicate"], ["accepted"],
    ]  # fmt: skip


@only_embedded("over a network the description of the service refuses it")
def test_many_terms_and_query_syntax_are_only_words() -> None:
    with engine() as here:
        here.publish(RANKED)

        assert ids(here.query('comet AND ("', k=1)) == ["a"]
        assert ids(here.query("a* " * 100 + "comet", k=1)) == ["a"]
        assert ids(here.query(" ".join(f"w{n}" for n in range(10_000)))) == []
