"""What the text index holds in memory while commits begin, go on, end and fail, against a plain dictionary."""

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from stream_car.adapters.search.index import TantivyIndex
from stream_car.errors import StreamCarError
from tests.support.indexed_documents import indexed

NAMES = [f"d{n}" for n in range(12)]
WORDS = ["bando", "derix", "folut", "gumak"]
STEPS = 40


class Trial:
    """An index, and the text that each id has."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.folder = folder
        self.index = TantivyIndex(folder)
        self.texts: dict[str, str] = {}
        self.position = 0
        self.ended = threading.Event()

    async def apply(self) -> None:
        """Some documents come, replace others, or go."""
        dice = self.dice
        some = dice.sample(NAMES, dice.randint(1, 4))
        dropped = some[: dice.randint(0, 2)]
        given = {name: " ".join(dice.sample(WORDS, dice.randint(1, 3))) for name in some[len(dropped) :]}
        self.position += 1
        await self.index.apply([indexed(name, text) for name, text in given.items()], dropped, self.position)
        self.texts |= given
        for name in dropped:
            self.texts.pop(name, None)

    def commit(self) -> None:
        """A commit begins and stays on its way until it is let end; or the one that goes on ends."""
        if self.index._writer.is_committing:
            self.ended.set()
            self.index._end_commit()
        else:
            self.ended.clear()
            self.index._begin_commit()

    def opened_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ended.set()
        self.index.close()
        self.index = TantivyIndex(self.folder)
        self.hold(monkeypatch)

    def hold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Commits wait for `ended`."""
        monkeypatch.setattr(self.index, "_sync", self.ended.wait)

    async def check(self, *, words: bool) -> None:
        """Everything is found by id; where it is asked for, by every word too."""
        documents = await self.index.documents(NAMES)
        assert {name: document.text for name, document in documents.items()} == self.texts
        for word in WORDS if words else ():
            having = {name for name, text in self.texts.items() if word in text.split()}
            assert {hit.id for hit in await self.index.search(word, 50)} == having
        assert await self.index.position() == self.position


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    begun = Trial(tmp_path, 1)
    yield begun
    begun.ended.set()  # whatever has failed: no commit is left waiting
    with suppress(StreamCarError):
        begun.index.close()


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_commits_do_the_last_word_on_every_id_is_found(
    seed: int, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.dice.seed(seed)
    trial.hold(monkeypatch)
    for _ in range(STEPS):
        await trial.apply()
        if trial.dice.random() < 0.4:
            trial.commit()
        if trial.dice.random() < 0.03:
            trial.opened_again(monkeypatch)
        await trial.check(words=trial.dice.random() < 0.5)
    trial.opened_again(monkeypatch)
    await trial.check(words=True)


async def test_after_a_commit_that_failed_everything_is_still_found_by_its_id(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        trial.ended.wait()
        raise OSError("no space left")

    monkeypatch.setattr(trial.index, "_sync", full)
    await trial.apply()
    trial.index._begin_commit()
    await trial.apply()
    trial.ended.set()
    with pytest.raises(StreamCarError, match="no space left"):
        trial.index._end_commit()
    await trial.check(words=False)

    trial.ended.clear()
    trial.hold(monkeypatch)
    await trial.apply()
    trial.index._begin_commit()
    await trial.check(words=True)
    trial.ended.set()
    trial.index._end_commit()
    await trial.check(words=True)
    assert len(trial.index._uncommitted) == 0


async def test_what_was_sealed_is_let_go_of_at_once(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path)
    await index.apply([indexed(f"d{n}", "bando") for n in range(50)], (), 50)
    index._begin_commit()
    await index.apply([indexed("d1", "derix"), indexed("d50", "bando")], ["d2"], 51)
    assert len(await index.search("bando", 99)) == 49
    index._end_commit()

    assert len(index._uncommitted) == 3
    assert [name in index._uncommitted for name in ("d0", "d1", "d2", "d50")] == [False, True, True, True]
    assert len(index._uncommitted.tail) == 2
    assert len(await index.search("bando", 99)) == 49
    index.close()


async def test_an_error_when_words_are_forgotten_changes_nothing_that_is_found(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise OSError("input/output error")

    await trial.apply()
    trial.index._commit()
    await trial.apply()
    trial.index._begin_commit()
    with monkeypatch.context() as failing:
        failing.setattr(trial.index._texts, "remove", broken)
        with pytest.raises(OSError, match="input/output"):
            trial.index._end_commit()
    await trial.check(words=True)
    for _ in range(5):
        await trial.apply()
        trial.index._commit()
        await trial.check(words=True)


async def test_memory_of_what_was_committed_is_given_back_by_searches(trial: Trial) -> None:
    await trial.index.apply([indexed(f"d{n}", "bando") for n in range(120)], (), 120)
    trial.index._commit()
    for _ in range(3):
        await trial.index.search("bando", 1)

    assert not trial.index._uncommitted._freed
