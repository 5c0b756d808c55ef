"""What every anchor index promises."""

import random
from itertools import pairwise
from math import log

import msgspec
import pytest

from stream_car.core.documents import Document
from stream_car.core.scope_names import ALIAS, scope_name, scope_parts
from stream_car.ports import AnchorIndex, IndexedDocument
from stream_car.ranking.bm25 import TERMS_MAX
from stream_car.ranking.settings import SETTINGS
from tests.support.local_ports import Backend

WORDS = [first + second for first in "bdfgklmnprst" for second in ("ando", "erix", "olut", "umak", "ivel", "yrop")]
BATCHES = [1, 7, 3000]  # one by one; in parts; all at once


def posting(
    name: str, text: str, *, scopes: tuple[str, ...] = (), anchor: bool = True, title: str = ""
) -> IndexedDocument:
    return IndexedDocument(
        document=Document(id=name, type="advisory", time=1, title=title, text=text), scopes=scopes, anchor=anchor
    )


def written(count: int, seed: int = 0) -> list[IndexedDocument]:
    """Texts of unlike lengths, in words of unlike frequency."""
    dice = random.Random(seed)
    weights = [1 / (n + 1) for n in range(len(WORDS))]
    return [posting(f"d{n:04d}", " ".join(dice.choices(WORDS, weights, k=dice.randint(3, 90)))) for n in range(count)]


async def feed(index: AnchorIndex, postings: list[IndexedDocument], batch: int) -> None:
    for start in range(0, len(postings), batch):
        await index.apply(postings[start : start + batch], (), start + batch)


async def names(index: AnchorIndex, text: str, depth: int = 10) -> list[str]:
    return [hit.id for hit in await index.search(text, depth)]


async def test_a_new_index_is_empty_and_wants_all_input(index: AnchorIndex) -> None:
    assert await index.position() == 0
    assert list(await index.search("anything", 10)) == []
    assert await index.documents(["a"]) == {}
    assert list(await index.scopes([("package", "axios")], 10)) == []


async def test_what_was_applied_is_found_by_the_next_call(index: AnchorIndex) -> None:
    await index.apply([posting("a", "the server leaks memory", scopes=("package=axios",))], (), 1)

    assert await names(index, "memory leak") == ["a"]
    assert set(await index.documents(["a"])) == {"a"}
    assert list(await index.scopes([("package", "axios")], 10)) == ["package=axios"]
    assert await index.position() == 1


async def test_an_alias_finds_the_scopes_that_came_with_it(index: AnchorIndex) -> None:
    edition, single = Document(id="R-1@2", type="advisory", time=1), Document(id="S, 1", type="advisory", time=1)
    aliases = (("CVE-1", "record=R-1"), ("a=b, c", "record=R-1"))
    documents = [
        IndexedDocument(document=edition, aliases=aliases),
        IndexedDocument(document=single, aliases=(("CVE-1", 'document="S, 1"'),)),
    ]
    await index.apply(documents, (), 2)

    assert list(await index.scopes([(ALIAS, "CVE-1")], 10)) == ['document="S, 1"', "record=R-1"]
    assert list(await index.scopes([(ALIAS, "a=b, c")], 10)) == ["record=R-1"]


async def test_a_large_batch_is_found_by_the_next_call(index: AnchorIndex) -> None:
    await feed(index, [posting(f"d{n}", f"report number{n} of many") for n in range(5000)], 5000)

    assert await names(index, "number4999") == ["d4999"]
    assert await names(index, "number0") == ["d0"]


@pytest.mark.parametrize("batch", BATCHES)
async def test_a_document_is_given_back_whole(index: AnchorIndex, batch: int) -> None:
    document = Document(
        id="GHSA-1@2 é/#",
        type="patch",
        time=-5,
        order=3,
        revision=2,
        scope=({"package": ("axios", "axios-x"), "cve": ("CVE-1",)}, {}),
        supersedes=("x",),
        superseded_by=("y", "z"),
        amends=("w",),
        attributes={"severity": "high", "score": 9.5, "deep": {"list": [1, None, True]}},
        title="Title",
        text="Text\x00 ünd 文字",
        source="someone",
        url="https://example.org/1",
    )
    await feed(index, [IndexedDocument(document=document), *written(700)], batch if batch > 1 else 100)
    await index.search("words", 1)

    assert await index.documents([document.id, "unknown", document.id]) == {document.id: document}


@pytest.mark.parametrize("batch", BATCHES)
async def test_a_later_document_of_the_same_id_replaces_the_former(index: AnchorIndex, batch: int) -> None:
    postings = [posting(f"d{n}", f"former{n}") for n in range(40)] + [posting(f"d{n}", f"latter{n}") for n in range(20)]
    await feed(index, postings, batch)

    assert await names(index, "former3") == []
    assert await names(index, "latter3") == ["d3"]
    assert await names(index, "former30") == ["d30"]
    assert (await index.documents(["d3"]))["d3"].text == "latter3"


async def test_a_dropped_document_is_not_found_and_can_come_back(index: AnchorIndex) -> None:
    await index.apply([posting("a", "memory"), posting("b", "memory")], (), 2)
    await index.apply([], ["a", "never"], 3)
    assert await names(index, "memory") == ["b"]
    assert set(await index.documents(["a", "b"])) == {"b"}

    await index.apply([posting("a", "memory again")], (), 4)
    assert sorted(await names(index, "memory")) == ["a", "b"]


async def test_what_is_no_anchor_is_kept_but_not_found_by_its_words(index: AnchorIndex) -> None:
    await index.apply([posting("a", "memory leak"), posting("b", "memory leak", anchor=False)], (), 2)

    assert await names(index, "memory") == ["a"]
    assert set(await index.documents(["a", "b"])) == {"a", "b"}


async def test_the_best_anchors_are_found_behind_many_that_are_none(index: AnchorIndex) -> None:
    await feed(index, [posting(f"n{n:04d}", "leak leak leak", anchor=False) for n in range(1500)], 1500)
    await feed(index, [posting(f"a{n}", "leak of memory in a server") for n in range(3)], 3)

    assert await names(index, "leak", 5) == ["a0", "a1", "a2"]


async def test_results_are_ordered_by_score_and_ties_by_id(index: AnchorIndex) -> None:
    await index.apply([posting(name, "kernel panic") for name in ("c", "a", "d", "b")], (), 4)
    await index.apply([posting("z", "kernel panic kernel panic")], (), 5)

    hits = list(await index.search("panic", 10))

    assert [hit.id for hit in hits] == ["z", "a", "b", "c", "d"]
    assert hits[0].score > hits[1].score == hits[4].score > 0


@pytest.mark.parametrize("batch", [90, 3000])
async def test_ties_at_the_depth_are_cut_by_id(index: AnchorIndex, batch: int) -> None:
    ids = [f"t{n:03d}" for n in range(400)]
    random.Random(1).shuffle(ids)
    await feed(index, [posting(name, "kernel panic") for name in ids], batch)

    assert await names(index, "panic", 7) == [f"t{n:03d}" for n in range(7)]


async def test_depth_limits_the_results(index: AnchorIndex) -> None:
    await feed(index, written(50), 50)

    assert len(await names(index, " ".join(WORDS), 3)) == 3
    assert await names(index, " ".join(WORDS), 0) == []


async def test_words_match_whatever_their_case_accents_and_endings(index: AnchorIndex) -> None:
    await index.apply([posting("a", "Café servers were LEAKING secrets")], (), 1)

    for question in ("cafe", "CAFÉ", "server", "leaks", "secret"):
        assert await names(index, question) == ["a"], question


async def test_of_a_question_with_too_many_words_the_rarest_count_and_the_others_are_told(index: AnchorIndex) -> None:
    """Each word stands in one text fewer than the word before it."""
    words = [f"w{n:03d}" for n in range(TERMS_MAX + 36)]
    await feed(index, [posting(f"d{n:03d}", " ".join(words[: n + 1])) for n in range(len(words))], 3000)
    long = " ".join(words)

    assert set(await names(index, long, 200)) == {f"d{n:03d}" for n in range(36, len(words))}
    assert await index.ignored_terms(long) == 36
    assert await index.ignored_terms(" ".join(words[:TERMS_MAX])) == 0
    assert await index.ignored_terms(" ".join(words[:TERMS_MAX]) + " nobody has ever said this") == 0


async def test_a_search_that_others_interrupt_is_of_one_moment(index: AnchorIndex) -> None:
    """Whatever is applied while it gives way, it answers as if it had begun behind that."""
    await feed(index, written(400), 3000)
    gave_way = 0

    async def give_way() -> None:
        nonlocal gave_way
        gave_way += 1
        if gave_way in (1, 3, 6, 11):
            await index.apply([posting(f"new{gave_way}", "bando derix")], [f"d{gave_way:04d}"], 400 + gave_way)

    hits = await index.search("bando derix gumak", 300, give_way)

    assert gave_way > 15
    assert hits == await index.search("bando derix gumak", 300)
    assert {hit.id for hit in hits} >= {"new1", "new3", "new6", "new11"}


async def test_stop_words_find_nothing(index: AnchorIndex) -> None:
    await index.apply([posting("a", "the cat is on the mat")], (), 1)

    assert await names(index, "the is on") == []


async def test_a_title_counts_where_the_text_does_not_repeat_it(index: AnchorIndex) -> None:
    await index.apply(
        [posting("a", "some words", title="Kernel panic"), posting("b", "Kernel panic some words")], (), 2
    )
    await index.apply([posting("c", "Kernel panic some words", title="Kernel panic")], (), 3)

    hits = list(await index.search("kernel", 10))

    assert [hit.id for hit in hits] == ["a", "b", "c"]
    assert len({hit.score for hit in hits}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", '"', "((", "AND OR NOT", "id:a", "leak AND NOT memory", 'words:"leak"~3', "-leak", "leak^100", "*",
        "/le.*/", "[a TO z]", "\x00leak\x00", "\ud800 leak \udfff", "leak " * 50_000, "文字 leak ﬁ 🙂", "\\",
        "position", " ".join(f"word{n}" for n in range(5000)),
    ],
)  # fmt: skip
async def test_any_text_may_be_asked(index: AnchorIndex, text: str) -> None:
    await index.apply([posting("a", "memory leak"), posting("b", "other things")], (), 2)

    assert await names(index, text) == (["a"] if "leak" in text else [])


async def test_question_syntax_is_only_words(index: AnchorIndex) -> None:
    await index.apply([posting("a", "memory leak"), posting("b", "memory only")], (), 2)

    assert sorted(await names(index, "memory AND NOT leak")) == ["a", "b"]


@pytest.mark.parametrize("batch", BATCHES)
async def test_how_documents_arrived_does_not_change_what_is_found(index: AnchorIndex, batch: int) -> None:
    """Small and large batches take different ways through an index; all must score by BM25.

    An index may keep means as they were a while ago: 3 % covers it.
    """
    postings = written(600)
    await feed(index, postings[:500], batch)
    await index.search("anything", 1)
    await feed(index, postings[500:], batch)
    dice = random.Random(7)
    for _ in range(20):
        question = " ".join(dice.sample(WORDS, dice.randint(1, 6)))
        hits = list(await index.search(question, 20))
        best = bm25(postings, question)
        assert len(hits) == min(20, len(best))
        for rank, hit in enumerate(hits):
            assert hit.score == pytest.approx(best[hit.id], rel=0.03)
            assert hit.score >= sorted(best.values(), reverse=True)[rank] * 0.97


def bm25(postings: list[IndexedDocument], question: str) -> dict[str, float]:
    """The formula, written out; the words are their own stems, and a pair weighs as its rarer word."""
    texts = {p.document.id: p.document.text.split() for p in postings}
    mean = sum(map(len, texts.values())) / len(texts)
    question_words = question.split()
    having = {word: sum(word in text for text in texts.values()) for word in question_words}

    def weight(word: str) -> float:
        return log(1 + (len(texts) - having[word] + 0.5) / (having[word] + 0.5)) * (SETTINGS.k1 + 1)

    scores: dict[str, float] = {}
    for name, text in texts.items():
        damping = SETTINGS.k1 * (1 - SETTINGS.b + SETTINGS.b * len(text) / mean)
        parts = [(weight(word), text.count(word)) for word in question_words]
        parts += [
            (SETTINGS.pairs * max(map(weight, pair)), list(pairwise(text)).count(pair))
            for pair in pairwise(question_words)
        ]
        if any(count for _, count in parts):
            scores[name] = sum(full * count / (count + damping) for full, count in parts)
    return scores


async def test_a_document_is_found_by_the_names_of_its_scopes(index: AnchorIndex) -> None:
    await index.apply(
        [posting("fix", "release notes", scopes=("cve=CVE-2024-00252, package=@budibase/server",))]
        + [posting(f"d{n}", "something else", scopes=(f"cve=CVE-2024-1{n:04d}, package=p{n}",)) for n in range(30)],
        (),
        31,
    )

    for question in ("Is CVE-2024-00252 fixed?", "cve 2024 00252", "what of budibase server", "BUDIBASE/SERVER", "fix"):
        assert (await names(index, question))[:1] == ["fix"], question
    assert "fix" not in await names(index, "Is CVE-2024-00253 fixed?")


async def test_a_new_scope_is_named_at_once_and_a_dropped_one_no_more(index: AnchorIndex) -> None:
    await index.apply([posting(f"d{n}", "plain words", scopes=(f"host=h{n}x",)) for n in range(3000)], (), 3000)
    await index.apply([posting("late", "other text", scopes=("employee=EMP060-Evans",))], (), 3001)
    assert (await names(index, "May EMP060-Evans trade?"))[:1] == ["late"]
    assert (await names(index, "what of h77x"))[:1] == ["d77"]

    await index.apply([posting("d77", "plain words", scopes=("host=elsewhere",))], ["late"], 3002)

    assert await names(index, "May EMP060-Evans trade?") == []
    assert await names(index, "what of h77x") == []


async def test_a_wrong_link_hides_no_anchor(index: AnchorIndex) -> None:
    """A package that is called like a word of the question is evidence among other evidence."""
    await index.apply(
        [posting("right", "memory leak of the server under load")]
        + [posting(f"d{n}", "unlike", scopes=("package=server",)) for n in range(5)],
        (),
        6,
    )

    assert (await names(index, "memory leak of the server under load"))[0] == "right"
    assert "right" in await names(index, "server", 10)


async def test_scopes_are_found_by_any_of_their_pairs(index: AnchorIndex) -> None:
    scopes = ("cve=CVE-1, package=axios", "cve=CVE-2, package=axios", 'package="a, b=c"', "package=lodash")
    await index.apply([posting("a", "x", scopes=scopes)], (), 1)

    assert list(await index.scopes([("package", "axios")], 10)) == list(scopes[:2])
    assert list(await index.scopes([("cve", "CVE-2")], 10)) == [scopes[1]]
    assert list(await index.scopes([("cve", "CVE-1"), ("package", "axios")], 10)) == [scopes[0]]
    assert list(await index.scopes([("package", "axios"), ("cve", "CVE-1"), ("package", "axios")], 10)) == [scopes[0]]
    assert list(await index.scopes([("package", "a, b=c")], 10)) == [scopes[2]]
    assert list(await index.scopes([("cve", "CVE-1"), ("package", "lodash")], 10)) == []
    assert list(await index.scopes([("package", "axio")], 10)) == []


async def test_scopes_stay_listed_whatever_becomes_of_their_documents(index: AnchorIndex) -> None:
    await index.apply([posting("a", "x", scopes=("host=a",))], (), 1, ("host=b", "host=c"))
    await index.apply([posting("a", "x", scopes=("host=d",))], (), 2)
    await index.apply([], ["a"], 3)

    assert list(await index.scopes((), 10)) == ["host=a", "host=b", "host=c", "host=d"]


async def test_scopes_come_in_order_of_name_up_to_the_limit(index: AnchorIndex) -> None:
    for n in (3, 1, 2, 0):
        await index.apply([posting(f"d{n}", "x", scopes=(f"host=h{n}, team=a",))], (), 4 - n)

    assert list(await index.scopes([("team", "a")], 3)) == [f"host=h{n}, team=a" for n in range(3)]


async def test_after_a_crash_feeding_from_the_position_restores_everything(
    backend: Backend, index: AnchorIndex
) -> None:
    postings = [posting(f"d{n}", f"number{n} word", scopes=(f"host=h{n}, team=a",)) for n in range(60)]
    for at, entry in enumerate(postings[:-1]):
        await index.apply([entry], (), at + 1)
        if at % 7 == 0:
            await index.search("word", 5)
    await index.apply([postings[-1]], ["d3"], 60)

    index = await backend.index()

    at = await index.position()
    assert 0 <= at <= 60
    for offset in range(at, 60):
        await index.apply([postings[offset]], ["d3"] if offset == 59 else (), offset + 1)
    assert await index.position() == 60
    assert await names(index, "number3") == []
    assert set(await index.documents([f"d{n}" for n in range(60)])) == {f"d{n}" for n in range(60)} - {"d3"}
    assert len(await index.scopes([("team", "a")], 100)) >= 59


async def test_feeding_input_again_changes_nothing(index: AnchorIndex) -> None:
    postings = written(30)
    await feed(index, postings, 30)
    before = list(await index.search(" ".join(WORDS[:5]), 30))

    await feed(index, postings, 7)

    assert list(await index.search(" ".join(WORDS[:5]), 30)) == before


async def test_the_version_tells_whether_a_search_may_answer_otherwise(index: AnchorIndex) -> None:
    dice = random.Random(5)
    seen: dict[int, list[list[tuple[str, float]]]] = {}
    for step, entry in enumerate(written(160)):
        what = dice.random()
        if what < 0.5:
            await index.apply([entry], [f"d{dice.randrange(160):04d}"] if what < 0.1 else (), step + 1)
        elif what < 0.7:
            await index.apply((), (), step + 1)
        hits = [[(hit.id, hit.score) for hit in await index.search(text, 9)] for text in WORDS[:4]]
        version = await index.version()

        assert seen.setdefault(version, hits) == hits
        assert version >= max(seen)


async def test_the_version_stays_where_nothing_was_applied(index: AnchorIndex) -> None:
    await feed(index, written(100), 7)
    await index.search(WORDS[0], 5)
    version = await index.version()
    await index.search(WORDS[1], 5)

    assert await index.version() == version


@pytest.mark.parametrize("batch", BATCHES)
async def test_a_search_within_pairs_finds_the_same_as_among_their_documents_alone(
    index: AnchorIndex, batch: int
) -> None:
    owners = ["ada", "bob", "a user = with, signs"]
    postings = [
        msgspec.structs.replace(entry, scopes=(scope_name([("key", str(n)), ("user", owners[n % len(owners)])]),))
        for n, entry in enumerate(written(600))
    ]
    await feed(index, postings, batch)
    everything = await index.search("bando derix", 1000)

    for owner in owners:
        hits = await index.search("bando derix", 20, within=(("user", owner),))

        own = {entry.document.id for entry in postings if ("user", owner) in scope_parts(entry.scopes[0])}
        assert list(hits) == [hit for hit in everything if hit.id in own][:20]
        assert hits
    assert list(await index.search("bando derix", 20, within=(("user", "nobody"),))) == []
    assert [hit.id for hit in await index.search("bando", 20, within=(("key", "0"), ("user", "bob")))] == []
