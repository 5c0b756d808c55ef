"""How far a question looks, what it believes, and what a budget leaves out."""

import pytest

from stream_car import InvalidRequest
from stream_car.core.documents import Document
from stream_car.queries.answers import Answer
from tests.support.engines import document, engine


def claims(count: int, *moved: int) -> list[Document]:
    """Equally relevant claims, some of them denied; a topic each."""
    documents = [document(f"c{n:03d}", at=1, topic=f"t{n}", text="comet seen") for n in range(count)]
    return documents + [document(f"d{n:03d}", "denial", at=2, topic=f"t{n}", text="words") for n in moved]


def answer_to(
    documents: list[Document], text: str = "comet", *, k: int = 5, depth: int = 50, budget: int | None = None
) -> Answer:
    with engine() as here:
        here.publish(documents)
        return here.query(text, k=k, depth=depth, budget=budget)


def ids(answer: Answer) -> list[str]:
    return [one.id for one in answer.results]


def test_where_relevance_cannot_tell_what_something_supersedes_comes_first() -> None:
    assert ids(answer_to(claims(40, 30, 35), k=4)) == ["d030", "d035", "c000", "c001"]


def test_an_anchor_in_force_with_a_clear_lead_stays_first() -> None:
    lead = document("lead", at=1, topic="own", text="a comet by the name of Halley over Utrecht")

    assert ids(answer_to([lead, *claims(40, 30)], "comet Halley over Utrecht", k=2)) == ["lead", "d030"]


def test_looking_ends_once_nothing_further_could_enter() -> None:
    clear = [document(f"h{n}", at=1, topic=f"h{n}", text="comet Halley Utrecht") for n in range(10)]
    answer = answer_to([*claims(40), *clear], "comet Halley Utrecht", k=2)

    assert len(answer.certificate.covered) + len(answer.certificate.not_covered) == 50
    assert answer.certificate.lookups < answer_to(claims(50), k=50).certificate.lookups / 3


def test_an_answer_carries_the_scopes_that_may_be_meant() -> None:
    answer = answer_to(claims(4, 3), k=2)
    [first, *others] = answer.scopes

    assert (first.scope, first.coverage) == ("topic=t3", first.probability)
    assert first.probability == pytest.approx(0.87, abs=0.01)
    assert [(one.scope, one.coverage) for one in others] == [
        ("topic=t0", others[0].probability),
        ("topic=t1", 0.0),
        ("topic=t2", 0.0),
    ]
    assert answer.groups[0].probability == first.probability
    assert answer.certificate.coverage == pytest.approx(first.probability + others[0].probability, abs=1e-3)
    assert sum(one.probability for one in answer.scopes) == pytest.approx(1, abs=1e-3)


def test_a_scope_may_be_covered_in_part() -> None:
    documents = [document(f"c{n}", at=1, topic="tea", text="comet seen") for n in range(4)]
    [scope] = answer_to(documents, k=1).scopes

    assert scope.probability == pytest.approx(1.0)
    assert scope.coverage == pytest.approx(0.25)


def test_a_question_that_names_its_scope_is_believed_to_mean_it() -> None:
    documents = [document(f"c{n}", at=1, topic=f"Topic-{n:03d}", text="comet seen") for n in range(100)]
    answer = answer_to(documents, "comet of topic 042")

    assert answer.scopes[0].scope == "topic=Topic-042"
    assert answer.scopes[0].probability > 5 * answer.scopes[1].probability


def test_a_budget_is_spent_on_the_likeliest_first_and_what_is_left_out_is_said() -> None:
    documents = [document("lead", at=1, topic="own", text="comet comet comet"), *claims(40, 30)]
    full, small = answer_to(documents), answer_to(documents, budget=5)

    assert small.results[0].id == "lead" or small.groups[0].anchor.id == "lead"
    assert "d030" in ids(full) and "d030" not in ids(small)
    assert (small.certificate.complete, small.certificate.reasons) == (False, ("budget",))
    assert len(small.certificate.covered) + len(small.certificate.not_covered) == 41
    assert small.certificate.lookups < full.certificate.lookups
    assert small.certificate.coverage < 1


def test_coverage_grows_with_the_budget() -> None:
    documents = claims(40, *range(40))
    certificates = [answer_to(documents, k=40, budget=budget).certificate for budget in (1, 60, 120, 1000)]

    coverages = [certificate.coverage for certificate in certificates]

    assert coverages == sorted(coverages)
    assert coverages[0] < 0.3 < coverages[-1] == 1.0


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="`budget` must be an integer from 1 to"):
        answer_to(claims(1), budget=0)
