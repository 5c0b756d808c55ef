"""A data directory with a little of everything in it, all answers about it, and ways to damage it."""

import shutil
from pathlib import Path

from stream_car import Engine, Retraction
from stream_car.core.documents import Document
from tests.support.damage import flip
from tests.support.engines import built_folder, document, engine

STATEMENTS: list[Document | Retraction] = [
    document("c1", at=1, topic="moon"),
    document("c2", at=2, topic="moon", place="here"),
    document("d1", "denial", at=3, topic="moon"),
    document("q1", "doubt", at=4, topic="moon"),
    document("c3", at=5, topic="sun"),
    document("c4", at=6, topic="sun", supersedes=("c3",)),
    document("n1", "note", at=7, topic="sun"),
    document("f1", "fact", at=1, subject="tea", attributes={"value": "hot"}),
    document("f2", "fact", at=2, subject="tea", attributes={"value": "cold"}),
    document("gone", at=1, topic="sun"),
    Retraction(id="gone"),
    *(document(f"m{n}", at=n, topic="crowd") for n in range(100)),
    document("end", "denial", at=200, topic="crowd"),
]
NAMES = [statement.id for statement in STATEMENTS]


def fill(path: Path) -> None:
    """Publish the statements, and input that cannot be read."""
    with engine(path) as car:
        car.publish([*STATEMENTS, b"{"])


def answers(car: Engine) -> tuple[object, ...]:
    """Return the answers to all questions about the statements."""
    questions = ("moon", "sun", "tea", "crowd", "gone", "nothing of it")
    parts = ("topic=moon", "topic=sun", "subject=tea", "topic=crowd", "document=c3")
    return (
        car.directory.next_offset,
        [car.query(text, k=10) for text in questions],
        car.resolve(NAMES),
        car.check(NAMES),
        [(car.frontier(part), car.history(part), car.changes(part)) for part in parts],
        car.changes(),
        [car.explain(name) for name in NAMES],
        car.rejected(),
    )


def wipe_state(path: Path) -> None:
    for file in built_folder(path).glob("state.sqlite*"):
        file.unlink()


def scramble_state(path: Path) -> None:
    (built_folder(path) / "state.sqlite").write_bytes(b"This was a database once. " * 200)


def cut_state(path: Path) -> None:
    whole = (built_folder(path) / "state.sqlite").read_bytes()
    (built_folder(path) / "state.sqlite").write_bytes(whole[: len(whole) // 2])


def wipe_index(path: Path) -> None:
    shutil.rmtree(built_folder(path) / "index")


def scramble_index(path: Path) -> None:
    for file in (built_folder(path) / "index").rglob("*"):
        if file.is_file():
            file.write_bytes(b"no index")


def flip_index_segment(path: Path) -> None:
    store = max((built_folder(path) / "index" / "tantivy").glob("*.store"), key=lambda file: file.stat().st_size)
    flip(store, store.stat().st_size // 3)


def damage_scope_list(path: Path) -> None:
    (built_folder(path) / "index" / "scopes.sqlite").write_bytes(b"no list " * 600)


def wipe_projection(path: Path) -> None:
    wipe_state(path)
    wipe_index(path)


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        for file in path.parent.glob(path.name + "*"):
            file.unlink()
