"""What fails half-way is made good: no document is lost or applied twice, and a closed engine reports that it is."""

from pathlib import Path

import pytest

from stream_car import Engine, Retraction, StreamCarError
from stream_car.local import engine as engines
from stream_car.processing.receipts import Receipt
from tests.support.damage import change
from tests.support.data_directories import STATEMENTS, answers
from tests.support.engines import document, engine

STEPS = [
    ("log", "append"), ("store", "read"), ("store", "commit"), ("index", "apply"),
]  # fmt: skip


def port_of(car: Engine, name: str) -> object:
    """Return a port of an engine by its name."""
    return getattr(car.directory.projection, name)


class FailingMethod:
    """A port's method that fails at its n-th call, before or after it has done its work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, at: int, *, late: bool) -> None:
        self.work = getattr(owner, name)
        self.calls_left = at
        self.late = late
        monkeypatch.setattr(owner, name, self)

    async def __call__(self, *arguments: object) -> object:
        self.calls_left -= 1
        if not self.calls_left and not self.late:
            raise StreamCarError("no room")
        result: object = await self.work(*arguments)
        if not self.calls_left:
            raise StreamCarError("no room, but it was done")
        return result


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "PUBLISH_MAX", 40)


@pytest.fixture(scope="module")
def expected() -> tuple[object, ...]:
    """The answers of an engine in which nothing failed, as far as they do not depend on offsets."""
    with engine() as car:
        car.publish(STATEMENTS)
        return without_offsets(answers(car))


def publish_twice(car: Engine) -> tuple[Receipt, ...]:
    """Publish, fail, and publish again; return the second receipts."""
    with pytest.raises(StreamCarError, match="no room"):
        car.publish(STATEMENTS)
    return car.publish(STATEMENTS).receipts


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("late", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(("port", "name"), STEPS)
def test_whichever_step_fails_publishing_again_makes_it_good(
    port: str,
    name: str,
    at: int,
    late: bool,
    expected: tuple[object, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with engine(tmp_path) as car:
        car.directory.projection.shard._state.is_whole = False  # as after a restart: what is not in memory is read
        with monkeypatch.context() as patched:
            FailingMethod(patched, port_of(car, port), name, at, late=late)
            receipts = publish_twice(car)
        assert [(receipt.id, receipt.offset - receipts[0].offset) for receipt in receipts] == [
            (statement.id, n) for n, statement in enumerate(STATEMENTS)
        ]
        assert without_offsets(answers(car)) == expected
    with engine(tmp_path) as car:
        assert without_offsets(answers(car)) == expected


def without_offsets(all_answers: tuple[object, ...]) -> tuple[object, ...]:
    """Return those answers that do not depend on a document's offset."""
    _, _, _, _, _, _, explained, rejected = all_answers
    return explained, rejected


@pytest.mark.parametrize(("port", "name"), STEPS[1:])
def test_what_a_failed_publication_stored_is_found_without_publishing_again(
    port: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine(tmp_path) as car:
        with monkeypatch.context() as patched:
            FailingMethod(patched, port_of(car, port), name, 1, late=False)
            with pytest.raises(StreamCarError, match="no room"):
                car.publish([document("c", topic="moon")])
        receipts = car.publish([document("d", "denial", at=9, topic="moon")]).receipts

        assert [(receipt.id, receipt.offset) for receipt in receipts] == [("d", 1)]
        assert [hit.id for hit in car.search("c")] == ["c"]
        assert [change.cause.id for change in car.changes()] == ["c", "d"]


@pytest.mark.parametrize(("port", "name"), STEPS[1:])
def test_it_is_found_after_opening_again_too(
    port: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine(tmp_path) as car, monkeypatch.context() as patched:
        FailingMethod(patched, port_of(car, port), name, 1, late=False)
        with pytest.raises(StreamCarError, match="no room"):
            car.publish([document("c", topic="moon")])
    with engine(tmp_path) as car:
        assert [hit.id for hit in car.search("c")] == ["c"]
        assert [resolution.status for resolution in car.resolve(["c"])] == ["in_force"]


def test_what_could_not_be_appended_was_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine(tmp_path) as car:
        with monkeypatch.context() as patched:
            FailingMethod(patched, car.directory._log, "append", 1, late=False)
            with pytest.raises(StreamCarError, match="no room"):
                car.publish([document("c", topic="moon")])
        assert car.resolve(["c"])[0].status == "unknown"
        assert car.publish([document("c", topic="moon")]).receipts[0].outcome == "accepted"


def test_a_publisher_that_fails_itself_leaves_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "PUBLISH_MAX", 40)

    with engine(tmp_path) as car:
        with pytest.raises(StreamCarError, match="Cannot publish an int"):
            car.publish([*(document(f"d{n}", topic="moon") for n in range(60)), 5])  # type: ignore[list-item]
        assert car.directory.next_offset == 40
        assert [resolution.status for resolution in car.resolve(["d39", "d40"])] == ["in_force", "unknown"]


def test_a_closed_engine_reports_that_it_is_closed(tmp_path: Path) -> None:
    car = engine(tmp_path)
    car.publish([document("c", topic="moon")])
    car.close()
    car.close()
    for use in (
        lambda: car.publish([document("d")]),
        lambda: car.retract("c"),
        lambda: car.query("c"),
        lambda: car.resolve(["c"]),
        lambda: car.check(["c"]),
        lambda: car.frontier("topic=moon"),
        lambda: car.history("topic=moon"),
        car.changes,
        lambda: car.explain("c"),
        car.rejected,
        car.pending,
        lambda: car.search("c"),
        lambda: list(car.subscribe()),
        lambda: list(car.subscribe(snapshot=False)),
        lambda: car.replay(offsets=[0]),
        car.replay,
        car.rebuild,
        car.status,
        car.settle,
    ):
        with pytest.raises(StreamCarError, match="This engine is closed"):
            use()
    assert car.directory.next_offset == 1


def test_nothing_is_published_by_publishing_nothing(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        assert car.publish([]).receipts == ()
        assert car.directory.next_offset == 0
        assert car.retract("nobody").outcome == "nothing"
        assert car.publish([Retraction(id="nobody")]).receipts[0].offset == 1


def test_a_state_that_contradicts_itself_is_built_again_from_the_log(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish([document("c1", topic="moon"), document("c2", at=1, topic="moon")])
    [state] = tmp_path.rglob("state.sqlite")
    change(state, "DELETE FROM entries WHERE key = ?", b"s:topic=moon")
    with engine(tmp_path) as car:
        [receipt] = car.publish([Retraction(id="c1")]).receipts
        [scope] = car.frontier("topic=moon")

    assert receipt.outcome == "retracted"
    assert [document.id for document in scope.in_force] == ["c2"]
