"""The tantivy index: memory against disk, commits, damage, crashes and strangers' files."""

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from stream_car.adapters.search import disk, index as indexes
from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.search.index_faults import find_index_fault
from stream_car.adapters.search.memory import Tail, name_term
from stream_car.adapters.search.scope_names import ScopeNames
from stream_car.errors import StreamCarError
from stream_car.ports import IndexedDocument
from stream_car.ranking.bm25 import DocumentTerms, join_terms
from stream_car.ranking.settings import Settings
from tests.support.damage import flip
from tests.support.indexed_documents import indexed
from tests.support.repository import ROOT

WORDS = ["bando", "derix", "folut", "gumak", "kivel", "lyrop", "mando", "nerix", "polut", "rumak"]


def written(count: int, prefix: str = "d") -> list[IndexedDocument]:
    dice = random.Random(2)
    return [
        indexed(f"{prefix}{n:04d}", " ".join(dice.choices(WORDS, range(1, 11), k=dice.randint(1, 200))))
        for n in range(count)
    ]


async def filled(folder: Path, count: int = 30) -> None:
    index = TantivyIndex(folder)
    await index.apply(written(count), (), count)
    index.close()


def analyse(text: str, names: str = "") -> DocumentTerms:
    return DocumentTerms(join_terms(text.split()), join_terms(names.split()), len(text.split()))


def test_a_tail_forgets_what_is_removed() -> None:
    tail = Tail()
    tail.add("a", analyse("x x y", "n"))
    tail.add("b", analyse("y"))
    tail.remove("a")
    tail.remove("never")

    assert len(tail) == 1
    assert [tail.document_frequency(term) for term in ("x", "y", name_term("n"))] == [0, 1, 0]
    assert tail.best({"x": 1.0, "y": 1.0, name_term("n"): 1.0}, 1.0, 9, {"a", "b"}.__contains__) == ["b"]


def test_what_was_sealed_is_found_until_it_is_forgotten_together() -> None:
    tail = Tail()
    for name in ("a", "b"):
        tail.add(name, analyse("x"))
    tail.seal()
    tail.add("c", analyse("x"))
    tail.remove("a")
    assert (len(tail), tail.document_frequency("x")) == (2, 2)
    assert sorted(tail.best({"x": 1.0}, 1.0, 9, set("abc").__contains__)) == ["b", "c"]

    tail.forget_sealed()
    assert (len(tail), tail.document_frequency("x")) == (1, 1)
    assert tail.best({"x": 1.0}, 1.0, 9, set("abc").__contains__) == ["c"]


def test_a_tail_proposes_the_best_and_all_that_tie_with_the_last() -> None:
    tail = Tail()
    for name in ("a", "b", "c"):
        tail.add(name, analyse("x y"))
    tail.add("d", analyse("x x"))
    tail.add("e", analyse("z", "x"))

    assert sorted(tail.best({"x": 1.0}, 2.0, 2, set("abcde").__contains__)) == ["a", "b", "c", "d"]
    assert tail.best({"x": 1.0}, 2.0, 1, set("abcde").__contains__) == ["d"]
    assert tail.best({name_term("x"): 1.0}, 2.0, 1, set("abcde").__contains__) == ["e"]
    assert tail.best({"x": 1.0}, 2.0, 1, {"a"}.__contains__) == ["a"]


async def test_however_many_documents_tie_only_some_are_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, as far as a limit, if nearly everything ties; the oldest if only the last candidates do."""
    monkeypatch.setattr(disk, "TIED_MAX", 30)
    index = TantivyIndex(tmp_path)
    await index.apply([indexed(f"t{n:03d}", "kernel panic") for n in range(400)], (), 400)
    index._commit()
    assert len(index._disk.candidates({"kernel": 1}, {}, 8, set())) == 8 + 30

    await index.apply([indexed(f"best{n}", "kernel panic kernel") for n in range(3)], (), 403)
    index._commit()
    assert set(index._disk.candidates({"kernel": 1}, {}, 8, set())) == {1, 2, 3, 4, 5, 401, 402, 403}
    assert [hit.id for hit in await index.search("kernel", 1)] == ["best0"]
    index.close()


async def test_names_propose_no_more_than_the_wanted(tmp_path: Path) -> None:
    """However many names a question has; what has several of them comes first."""
    index = TantivyIndex(tmp_path)
    hosts = [f"host{n:02d}" for n in range(20)]
    texts = [indexed(f"d{n:03d}", f"text{n}", scopes=(f"host={hosts[n % 20]}",)) for n in range(200)]
    await index.apply([*texts, indexed("all", "other", scopes=tuple(f"host={one}" for one in hosts))], (), 201)
    index._commit()

    hits = await index.search(" ".join(hosts), 15)

    assert len(hits) == 15 and hits[0].id == "all"
    index.close()


async def test_memory_scores_as_tantivy_does(tmp_path: Path) -> None:
    """The same text once on disk and once in memory gets the same score."""
    index = TantivyIndex(tmp_path)
    texts = written(200)
    await index.apply(texts, (), 200)
    index._commit()
    copies = [indexed("copy-" + one.document.id, one.document.text) for one in texts[:100]]
    await index.apply(copies, (), 300)

    for question in ("bando", "derix gumak", "rumak polut nerix", "bando bando derix"):
        scores = {hit.id: hit.score for hit in await index.search(question, 300)}
        compared = [name for name in scores if name.startswith("copy-")]
        assert len(compared) > 30
        for name in compared:
            assert scores[name] == scores[name.removeprefix("copy-")]
    assert len(index._uncommitted.tail) == 100
    index.close()


async def test_a_single_document_does_not_wait_for_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = TantivyIndex(tmp_path)
    await index.apply(written(600), (), 600)
    await index.search("bando", 1)
    commits = []
    monkeypatch.setattr(index, "_commit", lambda: commits.append(1))
    monkeypatch.setattr(index, "_begin_commit", lambda: commits.append(1))

    for n, entry in enumerate(written(400, prefix="e")):
        await index.apply([entry], (), 601 + n)
        assert (await index.documents([entry.document.id])) != {}
        await index.search(entry.document.text, 5)

    assert commits == []
    monkeypatch.undo()
    index.close()


async def test_memory_is_bounded_without_a_single_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "UNCOMMITTED_MAX", 50)
    index = TantivyIndex(tmp_path)

    for n, entry in enumerate(written(200)):
        await index.apply([entry], (), n + 1)
        assert len(index._uncommitted) <= 100

    assert index.committed >= 50
    index.close()


async def test_few_long_documents_are_committed_as_soon_as_many_short_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "UNCOMMITTED_CHARACTERS_MAX", 20_000)
    index = TantivyIndex(tmp_path)

    for n in range(40):
        await index.apply([indexed(f"d{n}", "word " * 1000)], (), n + 1)
        assert len(index._uncommitted) <= 8

    assert index.committed >= 30
    index.close()


async def test_what_comes_replaces_or_goes_during_a_commit_is_found_at_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path, 40)
    index = TantivyIndex(tmp_path)
    let_go = threading.Event()
    monkeypatch.setattr(index, "_sync", let_go.wait)
    await index.apply([indexed("d0001", "qibor"), indexed("d0002", "qibor"), indexed("n", "qibor")], ["d0003"], 41)
    index._begin_commit()

    await index.apply([indexed("d0001", "zanel"), indexed("m", "qibor"), indexed("m", "zanel")], ["d0002"], 42)

    async def hits_and_documents() -> tuple[list[str], ...]:
        texts = [sorted(hit.id for hit in await index.search(word, 9)) for word in ("qibor", "zanel")]
        return (*texts, sorted(await index.documents(["d0001", "d0002", "d0003", "m", "n"])))

    wanted = (["n"], ["d0001", "m"], ["d0001", "m", "n"])
    assert index._writer.is_committing
    assert await hits_and_documents() == wanted
    let_go.set()
    index._end_commit()
    assert (index.committed, len(index._uncommitted)) == (41, 3)
    assert await hits_and_documents() == wanted
    index.close()

    index = TantivyIndex(tmp_path)
    assert (await hits_and_documents(), await index.position()) == (wanted, 42)
    index.close()


async def test_a_commit_that_failed_is_told_and_nothing_of_it_is_taken_for_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()

    def full() -> None:
        let_go.wait()
        raise OSError("no space left")

    await filled(tmp_path, 40)
    index = TantivyIndex(tmp_path)
    monkeypatch.setattr(index, "_sync", full)
    await index.apply([indexed("n", "qibor")], (), 41)
    index._begin_commit()
    await index.apply([indexed("m", "qibor")], (), 42)
    let_go.set()

    with pytest.raises(StreamCarError, match="no space left"):
        index._end_commit()
    monkeypatch.undo()
    index.close()

    index = TantivyIndex(tmp_path)
    assert await index.position() == 42
    assert [hit.id for hit in await index.search("qibor", 9)] == ["m", "n"]
    index.close()


async def test_closing_keeps_everything(tmp_path: Path) -> None:
    await filled(tmp_path)
    index = TantivyIndex(tmp_path)

    assert await index.position() == 30
    assert len(await index.search("rumak", 100)) > 20
    assert len(await index.documents([f"d{n:04d}" for n in range(30)])) == 30
    assert len(await index.scopes([("team", "a")], 100)) == 30
    index.close()
    index.close()


async def test_a_position_alone_is_kept_on_closing(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path)
    await index.apply([], [], 12)
    index.close()

    index = TantivyIndex(tmp_path)
    assert await index.position() == 12
    index.close()


async def test_another_releases_index_is_begun_anew(tmp_path: Path) -> None:
    await filled(tmp_path)
    (tmp_path / "format").write_text("stream-car index 0, tantivy 0.1\n")

    index = TantivyIndex(tmp_path)

    assert await index.position() == 0
    assert list(await index.search("rumak", 5)) == []
    assert list(await index.scopes([("team", "a")], 5)) == []
    index.close()


async def test_any_damaged_file_lets_the_index_begin_anew(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    await filled(whole)
    files = [file for file in (whole / "tantivy").iterdir() if file.stat().st_size and file.suffix != ".json"]
    dice = random.Random(4)
    for kind in ("flip", "cut", "gone"):
        for file in files:
            if file.name.startswith("."):
                continue
            copy = tmp_path / "copy"
            shutil.copytree(whole, copy)
            target = copy / "tantivy" / file.name
            if kind == "flip":
                flip(target, dice.randrange(target.stat().st_size), dice.randrange(8))
            elif kind == "cut":
                target.write_bytes(target.read_bytes()[: target.stat().st_size // 2])
            else:
                target.unlink()
            index = TantivyIndex(copy)
            at = await index.position()
            assert at in (0, 30), (kind, file.name)
            await index.apply(written(30)[at:], (), 30)
            assert len(await index.documents([f"d{n:04d}" for n in range(30)])) == 30, (kind, file.name)
            assert len(await index.search("rumak", 100)) > 20, (kind, file.name)
            index.close()
            shutil.rmtree(copy)


@pytest.mark.parametrize("name", ["tantivy/meta.json", "tantivy/.managed.json", "scopes.sqlite", "analysed.sqlite"])
async def test_unreadable_side_files_let_the_index_begin_anew(tmp_path: Path, name: str) -> None:
    await filled(tmp_path)
    (tmp_path / name).write_bytes(b"{ nothing of use")

    index = TantivyIndex(tmp_path)

    assert await index.position() == 0
    index.close()


async def crashed(folder: Path, target: Path, count: int = 30) -> None:
    """Leave a copy of an index as a process leaves it that ends after a commit."""
    index = TantivyIndex(folder)
    documents = [
        replace(indexed(f"d{n}", "word", scopes=(f"team=t{n}",)), aliases=((f"other {n}", f"document=d{n}"),))
        for n in range(count)
    ]
    await index.apply(documents, (), count)
    index._commit()
    shutil.copytree(folder, target)
    index.close()


async def test_after_a_crash_an_altered_name_of_a_scope_lets_the_index_begin_anew(tmp_path: Path) -> None:
    await crashed(tmp_path / "index", tmp_path / "crashed")
    with closing(sqlite3.connect(tmp_path / "crashed" / "scopes.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file = tmp_path / "crashed" / "scopes.sqlite"
    whole = file.read_bytes()
    for name in (b"team=t7", b"other 7"):
        places = [match.start() for match in re.finditer(name, whole)]
        assert places, name
        for place in places:
            file.write_bytes(whole)
            flip(file, place + len(name) - 1, 0)
            assert find_index_fault(tmp_path / "crashed"), (name, place)

    index = TantivyIndex(tmp_path / "crashed")
    assert await index.position() == 0
    index.close()


async def test_after_a_crash_a_lost_write_ahead_log_of_scopes_lets_the_index_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScopeNames, "checkpoint", lambda _names: None)  # as if the crash came before it
    await crashed(tmp_path / "index", tmp_path / "crashed")
    for file in (tmp_path / "crashed").glob("scopes.sqlite-*"):
        file.unlink()

    index = TantivyIndex(tmp_path / "crashed")

    assert await index.position() == 0
    index.close()


async def test_after_a_crash_an_unchanged_index_is_kept(tmp_path: Path) -> None:
    await crashed(tmp_path / "index", tmp_path / "crashed")

    index = TantivyIndex(tmp_path / "crashed")

    assert await index.position() == 30
    assert list(await index.scopes([("team", "t7")], 5)) == ["team=t7"]
    index.close()


async def test_a_flipped_bit_in_a_kept_document_is_noticed_while_open(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path)
    await index.apply([indexed("a", "word " * 5000)], (), 1)
    index._commit()
    store = max((tmp_path / "tantivy").glob("*.store"), key=lambda file: file.stat().st_size)
    with store.open("r+b") as handle:
        content = bytearray(handle.read())
        for at in range(10, 60):
            content[at] ^= 0x55
        handle.seek(0)
        handle.write(content)

    with pytest.raises(StreamCarError, match="Delete the folder"):
        await index.documents(["a"])
    index.reset()
    assert await index.position() == 0
    index.close()


async def test_an_index_of_words_without_stems_is_not_read_as_one_with_stems(tmp_path: Path) -> None:
    await filled(tmp_path)

    index = TantivyIndex(tmp_path, settings=Settings(stems=False))

    assert await index.position() == 0
    await index.apply([indexed("a", "leaking")], (), 1)
    assert list(await index.search("leaks", 5)) == []
    assert [hit.id for hit in await index.search("leaking", 5)] == ["a"]
    index.close()


async def test_what_was_replaced_leaves_its_words_behind_nowhere(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path)
    for text in ("first words", "second words", "third words"):
        await index.apply([indexed("a", text), indexed("b", text)], (), 1)
        index._commit()
        await index.apply([indexed("a", text + " again")], (), 1)
    await index.apply([], ["b"], 1)
    index._commit()

    assert [one.terms.text for one in index._texts.get([9])] == [" third  word  again "]
    rows: list[tuple[int]] = index._texts._connection.execute("SELECT COUNT(*) FROM analysed").fetchall()
    assert rows == [(1,)]
    index.close()


async def test_reset_forgets_everything(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path)
    await index.apply(written(10), (), 10)
    index._commit()
    await index.apply(written(20), (), 20)

    index.reset()

    assert await index.position() == 0
    assert list(await index.search("rumak", 5)) == []
    assert await index.documents(["d0001"]) == {}
    assert list(await index.scopes([("team", "a")], 5)) == []
    await index.apply(written(20), (), 20)
    assert len(await index.documents(["d0001"])) == 1
    index.close()


async def test_beginning_anew_leaves_other_peoples_files_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "format").write_text("something else")

    index = TantivyIndex(tmp_path)
    index.reset()
    index.close()

    assert (tmp_path / "notes.txt").read_text() == "mine"


async def test_a_second_opener_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path)
    await index.apply(written(5), (), 5)

    with pytest.raises(StreamCarError, match=f"process {os.getpid()}"):
        TantivyIndex(tmp_path)

    assert len(await index.search("rumak", 5)) > 0
    index.close()


FEEDING = """
import asyncio, sys
from pathlib import Path
from stream_car.adapters.search import disk
from stream_car.adapters.search import index as indexes
from tests.support.indexed_documents import indexed

indexes.UNCOMMITTED_MAX = 20

async def main() -> None:
    index = indexes.TantivyIndex(Path(sys.argv[1]))
    at = await index.position()
    while True:
        await index.apply([indexed(f"d{n}", f"number{n} word") for n in range(at, at + 7)], (), at + 7)
        at += 7
        print(at, flush=True)

asyncio.run(main())
"""


async def test_after_kill_9_everything_before_the_position_is_there(tmp_path: Path) -> None:
    dice = random.Random(8)
    root = ROOT
    reached = 0
    for _ in range(3):
        command = [sys.executable, "-c", FEEDING, str(tmp_path / "index")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) as process:
            assert process.stdout is not None
            for _ in range(dice.randint(4, 30)):
                process.stdout.readline()
            process.kill()
        index = TantivyIndex(tmp_path / "index")
        at = await index.position()
        assert at > reached
        assert len(await index.documents([f"d{n}" for n in range(at)])) == at
        assert len(await index.scopes([("team", "a")], 100_000)) >= at
        for n in dice.sample(range(at), 10):
            assert [hit.id for hit in await index.search(f"number{n}", 5)] == [f"d{n}"]
        index.close()
        reached = at
