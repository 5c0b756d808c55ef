"""What fails half-way heals: no document is lost or applied twice, and whoever comes late is told what to do."""

from pathlib import Path

import pytest

from stream_car import Engine, Retraction, StreamCarError
from stream_car.local import engine as engines
from stream_car.processing.receipts import Receipt
from tests.support.damage import change
from tests.support.engines import document, engine
from tests.unit.local.test_engine import SAID, answers

STEPS = [
    ("log", "append"), ("store", "read"), ("store", "commit"), ("journal", "publish"), ("store", "trim"),
    ("index", "apply"),
]  # fmt: skip


def owner(here: Engine, port: str) -> object:
    """A port of an engine by its name."""
    return getattr(here._built, port)


class Breaking:
    """A port's method that fails at its n-th call, before or after it has done its work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, at: int, *, late: bool) -> None:
        self.work = getattr(owner, name)
        self.left = at
        self.late = late
        monkeypatch.setattr(owner, name, self)

    async def __call__(self, *arguments: object) -> object:
        self.left -= 1
        if not self.left and not self.late:
            raise StreamCarError("no room")
        done: object = await self.work(*arguments)
        if not self.left:
            raise StreamCarError("no room, but it was done")
        return done


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "PUBLISH_MAX", 40)


def published_twice(here: Engine) -> tuple[Receipt, ...]:
    """A publisher that tries again after a failure; the receipts of the second time."""
    with pytest.raises(StreamCarError, match="no room"):
        here.publish(SAID)
    return here.publish(SAID).receipts


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("late", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(("port", "name"), STEPS)
def test_whichever_step_fails_publishing_again_heals(
    port: str, name: str, at: int, late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine(tmp_path / "well") as well:
        well.publish(SAID)
        expected = answers(well)
    with engine(tmp_path / "ill") as ill:
        ill._built.shard._state.is_whole = False  # as after a restart: what is not at hand is read
        with monkeypatch.context() as patched:
            Breaking(patched, owner(ill, port), name, at, late=late)
            receipts = published_twice(ill)
        assert [(one.id, one.offset - receipts[0].offset) for one in receipts] == [
            (said.id, n) for n, said in enumerate(SAID)
        ]
        assert told(answers(ill)) == told(expected)
    with engine(tmp_path / "ill") as ill:
        assert told(answers(ill)) == told(expected)


def told(every: tuple[object, ...]) -> tuple[object, ...]:
    """Of all answers those that do not show where in the log a document stands."""
    _, _, _, _, _, _, explained, rejected = every
    return explained, rejected


@pytest.mark.parametrize(("port", "name"), STEPS[1:])
def test_what_a_failed_publish_kept_is_found_without_publishing_again(
    port: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine(tmp_path) as here:
        with monkeypatch.context() as patched:
            Breaking(patched, owner(here, port), name, 1, late=False)
            with pytest.raises(StreamCarError, match="no room"):
                here.publish([document("c", topic="moon")])
        receipts = here.publish([document("d", "denial", at=9, topic="moon")]).receipts

        assert [(receipt.id, receipt.offset) for receipt in receipts] == [("d", 1)]
        assert [hit.id for hit in here.relevance("c")] == ["c"]
        assert [told.change.cause.id for told in here.changes()] == ["c", "d"]


@pytest.mark.parametrize(("port", "name"), STEPS[1:])
def test_it_is_found_after_opening_again_too(
    port: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine(tmp_path) as here, monkeypatch.context() as patched:
        Breaking(patched, owner(here, port), name, 1, late=False)
        with pytest.raises(StreamCarError, match="no room"):
            here.publish([document("c", topic="moon")])
    with engine(tmp_path) as here:
        assert [hit.id for hit in here.relevance("c")] == ["c"]
        assert [one.status for one in here.resolve(["c"])] == ["active"]


def test_what_could_not_be_appended_was_not_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine(tmp_path) as here:
        with monkeypatch.context() as patched:
            Breaking(patched, here._log, "append", 1, late=False)
            with pytest.raises(StreamCarError, match="no room"):
                here.publish([document("c", topic="moon")])
        assert here.resolve(["c"])[0].status == "unknown"
        assert here.publish([document("c", topic="moon")]).receipts[0].outcome == "accepted"


def test_a_publisher_that_fails_itself_leaves_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "PUBLISH_MAX", 40)

    with engine(tmp_path) as here:
        with pytest.raises(StreamCarError, match="Cannot publish a int"):
            here.publish([*(document(f"d{n}", topic="moon") for n in range(60)), 5])  # type: ignore[list-item]
        assert here.next_offset == 40
        assert [one.status for one in here.resolve(["d39", "d40"])] == ["active", "unknown"]


def test_a_closed_engine_says_that_it_is_closed(tmp_path: Path) -> None:
    here = engine(tmp_path)
    here.publish([document("c", topic="moon")])
    here.close()
    here.close()
    for use in (
        lambda: here.publish([document("d")]),
        lambda: here.retract("c"),
        lambda: here.query("c"),
        lambda: here.resolve(["c"]),
        lambda: here.check(["c"]),
        lambda: here.frontier("topic=moon"),
        lambda: here.history("topic=moon"),
        here.changes,
        lambda: here.explain("c"),
        here.rejected,
        here.pending,
        lambda: here.relevance("c"),
    ):
        with pytest.raises(StreamCarError, match="this engine is closed; open its folder again"):
            use()
    assert here.next_offset == 1


def test_nothing_is_published_by_publishing_nothing(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        assert here.publish([]).receipts == ()
        assert here.next_offset == 0
        assert here.retract("nobody").outcome == "nothing"
        assert here.publish([Retraction(id="nobody")]).receipts[0].offset == 1


def test_a_state_that_contradicts_itself_is_built_anew_from_the_log(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([document("c1", topic="moon"), document("c2", at=1, topic="moon")])
    [state] = tmp_path.rglob("state.sqlite")
    change(state, "DELETE FROM entries WHERE key = ?", b"s:topic=moon")
    with engine(tmp_path) as here:
        [receipt] = here.publish([Retraction(id="c1")]).receipts
        [scope] = here.frontier("topic=moon")

    assert receipt.outcome == "retracted"
    assert [one.id for one in scope.active] == ["c2"]
