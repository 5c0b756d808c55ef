"""The packaged demo: real cases of every domain, in which the relevant document is not the one that holds."""

from collections import Counter

import msgspec
import pytest

from stream_car.codec import decode
from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.rule_packs import load
from tests.support.repository import ROOT

DEMO = ROOT / "stream_car" / "demo"
LINES = (DEMO / "feed.jsonl").read_bytes().splitlines()
RULES = load()
LATE = "kazakhstan-capital-1991"


def _documents() -> list[Document]:
    statements = [decode(line) for line in LINES]
    return [statement for statement in statements if isinstance(statement, Document)]


DOCUMENTS = _documents()
CORPUS = {document.id: document for document in DOCUMENTS}


class Expected(msgspec.Struct):
    """A question of the demo, with the documents that control its answer."""

    question: str
    why: str
    controlling: list[str]


QUESTIONS = msgspec.json.decode((DEMO / "questions.json").read_bytes(), type=list[Expected])


def words(text: str) -> set[str]:
    cleaned = "".join(c if c.isalnum() else " " for c in text.lower())
    return {word.rstrip("s") for word in cleaned.split() if len(word) > 3}


def overlap(question: str, document: Document) -> int:
    return len(words(question) & words(f"{document.title} {document.text}"))


def test_every_line_is_a_document_with_a_name_of_its_own() -> None:
    assert len(LINES) == len(DOCUMENTS) == len(CORPUS) >= 60


def test_all_domains_take_part_and_no_type_is_unknown() -> None:
    assert {document.type for document in DOCUMENTS} <= RULES.pack_of.keys()

    by_domain = Counter(RULES.pack_of[document.type].name for document in DOCUMENTS)
    assert {*by_domain, "standards", "memory"} == {domain.name for domain in RULES.packs}  # standards go by links alone
    assert min(by_domain.values()) >= 5


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.id)
def test_a_document_names_its_source_says_something_and_joins_a_scope(document: Document) -> None:
    assert document.source
    assert document.title
    assert 1 <= document.text.count(". ") + 1 <= 4
    assert RULES.scopes(document)
    assert document.url == "" or document.url.startswith("https://")


def test_the_feed_comes_in_order_of_publication_but_for_one_old_fact() -> None:
    prompt = [document for document in DOCUMENTS if document.id != LATE]

    assert prompt == sorted(prompt, key=lambda document: document.precedence)
    assert DOCUMENTS[-1].id == LATE


def test_a_link_names_a_document_of_the_feed() -> None:
    named = {name for document in DOCUMENTS for name in (*document.supersedes, *document.superseded_by)}

    assert named
    assert named <= CORPUS.keys()


def test_a_compliance_event_says_that_it_is_made_up_and_names_roles() -> None:
    events = [document for document in DOCUMENTS if RULES.pack_of[document.type].name == "compliance"]
    employees = {name for event in events for part in event.scope for name in part.get("employee", ())}

    assert all(event.title.startswith("Made-up example") and event.text.startswith("Made-up") for event in events)
    assert employees == {"trader-1", "analyst-2"}


def test_an_old_fact_that_arrives_late_is_void_and_voids_nothing() -> None:
    above = definitions.superseders(CORPUS, RULES)

    assert above[LATE]
    assert LATE not in {name for names in above.values() for name in names}


def test_the_same_value_said_again_reinforces() -> None:
    until = CORPUS["uk-pm-2019-election"].time

    assert {"uk-pm-2019", "uk-pm-2019-election"} <= definitions.active(CORPUS, RULES, until)


def test_there_are_enough_questions_each_with_a_reason() -> None:
    assert 6 <= len(QUESTIONS) <= 8
    assert all(expected.question.endswith("?") and expected.why for expected in QUESTIONS)


@pytest.mark.parametrize("expected", QUESTIONS, ids=lambda expected: expected.question)
def test_the_words_of_a_question_lead_to_a_void_document_and_authority_to_what_holds(expected: Expected) -> None:
    best = max(DOCUMENTS, key=lambda document: (overlap(expected.question, document), document.precedence))

    assert best.id not in definitions.active(CORPUS, RULES)
    assert definitions.controlling(best.id, CORPUS, RULES) == set(expected.controlling)
    assert all(overlap(expected.question, best) > overlap(expected.question, CORPUS[id]) for id in expected.controlling)
