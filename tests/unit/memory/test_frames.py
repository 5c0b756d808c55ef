"""The default extractor: which sentences have the same key, and which must not."""

import json

import pytest

from stream_car.memory import FrameExtractor, MemoryKey
from tests.support.repository import DATA

EXTRACTOR = FrameExtractor()
MEMORY_DATA = DATA / "memory"
needs_data = pytest.mark.skipif(not MEMORY_DATA.is_dir(), reason="the benchmark data are not at ../shared/data")


def values(text: str) -> dict[str, str]:
    return {str(fact.key): fact.object for fact in EXTRACTOR.extract(text) if not fact.is_note}


def lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (MEMORY_DATA / name).read_text().splitlines()]


def binds(earlier: str, later: str) -> bool:
    first, second = values(earlier), values(later)
    return any(first[key] != second[key] for key in first.keys() & second.keys())


@pytest.mark.parametrize(
    ("sentence", "first", "second"),
    [
        ("To strip accents from a string, call {}.", "fold_accents(text)", "remove_accents(text)"),
        ("{} is the function that strips accents from a string.", "fold_accents", "remove_accents"),
        ("In orders.py, the function {} cancels an order and restocks its items.", "void(id)", "cancel(id)"),
        ("In proxy.conf, max_clients equals {}.", "10", "20"),
        ("MAX_RETRIES={} in settings.py.", "3", "5"),
        ("We depend on numpy {}.", "1.24.0", "1.26.4"),
        ("Java {} compiles the billing module.", "17", "21"),
        ("Clients log in through {}.", "POST /login", "POST /sessions"),
        ("The token travels in the {} header.", "X-Token", "Authorization"),
        ("Errors of the importer go to the channel {}.", "#ops", "#imports"),
        ("The feature flag new_checkout is {} in production.", "on", "off"),
        ("The standup starts at {} and lasts 15 minutes.", "9:30", "10:00"),
        ("Our office is in {}.", "Oslo", "Turin"),
        ("my birthday is {}", "March 3", "April 4"),
        ("I live in {}", "Oslo", "Turin"),
        ("Pia Strand was born in the city of {}.", "Oslo", "Turin"),
        ("The capital of Norland is {}.", "Oslo", "Turin"),
    ],
)
def test_a_sentence_with_another_value_has_the_same_key(sentence: str, first: str, second: str) -> None:
    assert binds(sentence.format(first), sentence.format(second))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("the budget of the garden is 300 euros", "the garden's budget went up to 400 euros"),
        ("we use Postgres for the archive", "the archive is SQLite now"),
        ("Ana owns the parser", "the parser belongs to Bo"),
        ("my boss is Ana", "Ana left, so my boss is Bo"),
        ("The call is on Mondays and takes an hour.", "The call takes 30 minutes, Mondays as before."),
    ],
)
def test_the_same_relation_in_other_words_has_the_same_key(earlier: str, later: str) -> None:
    assert binds(earlier, later)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The timeout is 30 seconds on web-1.", "The timeout is 60 seconds on web-2."),
        ("Node 3 has 16 GB and 4 cores.", "Node 4 has 32 GB and 8 cores."),
        ("The team meets on Mondays.", "The team also meets on Thursdays."),
        ("The launch is on October 3.", "The launch should be on October 10."),
        ("The gateway runs on ARM.", "Two years ago the gateway ran on MIPS."),
        ("The code is 4711.", "Is the code 4712?"),
        ("The API supports JSON.", "The API supports XML."),
        ("my wife is Ana", "my wife is 34"),
        ("my friend is Ana", "my friend is Bo"),
        ("GET /users returns 200.", "DELETE /users returns 204."),
        ("/health needs no token.", "/metrics needs no token."),
        ("INFO is the value of LOG_LEVEL in app.yaml.", "INFO is the value of SQL_LEVEL in app.yaml."),
        ("My son is 4.", "My daughter is 6."),
        ("The build took 4 minutes.", "The build took 5 minutes."),
        ("It is 4.", "It is 5."),
        ("We use Postgres.", "We use Redis."),
        ("We have a meeting on Monday.", "We have a meeting on Friday."),
        ("The capital of Norland is Oslo.", "The capital of Sudland is Turin."),
    ],
)
def test_what_only_looks_alike_has_another_key_or_none(earlier: str, later: str) -> None:
    assert not binds(earlier, later)


def test_each_clause_gives_a_fact_with_its_own_text_and_nothing_is_lost() -> None:
    facts = EXTRACTOR.extract("Ana reviews the backend, Bo reviews the frontend and nobody merges alone.")

    assert [(fact.object, fact.text, fact.is_note) for fact in facts] == [
        ("Ana", "Ana reviews the backend", False),
        ("Bo", "Bo reviews the frontend", False),
        ("nobody merges alone", "nobody merges alone", True),
    ]


def test_a_question_names_the_key_that_its_statement_has() -> None:
    [fact] = EXTRACTOR.extract("The author of Winter Salt is Pia Strand.")

    assert EXTRACTOR.keys_in_question("Who is the author of Winter Salt?") == [fact.key]
    assert MemoryKey("staging", "database") in EXTRACTOR.keys_in_question("What is the staging database?")


@pytest.mark.parametrize(
    "text", ["", "x" * 10**6, "so " * 600, "x and " * 330, "(" * 2000, "In x, " * 300, "'" * 1999, "a\x00 is 4", "::"]
)
def test_hostile_text_has_no_facts(text: str) -> None:
    assert not values(text)


@needs_data
def test_scenarios_supersede_and_look_alikes_do_not() -> None:
    scenarios, look_alikes = lines("evolving/scenarios.jsonl"), lines("evolving/lookalikes.jsonl")
    look_alikes += lines("chain_binding/negatives.jsonl")

    assert [pair["id"] for pair in look_alikes if binds(pair["a"], pair["b"])] == []
    assert sum(binds(pair["a"], pair["b"]) for pair in scenarios) >= 0.95 * len(scenarios)


@needs_data
def test_prose_that_states_nothing_has_no_key() -> None:
    assert [line["text"] for line in lines("chain_binding/prose.jsonl") if values(line["text"])] == []
