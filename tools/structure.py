"""How much a reader must hold of the code: lines, names used twice, and how a call wanders through the rooms.

`python -m tools.structure` prints all of it. A *room* is a folder of `stream_car` (or a file right below it). Of the
calls in their order, a *move* is one into another file than the call before it, a *crossing* one into another room.
"""

import ast
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream_car.local.engine import Engine

ROOT = Path(__file__).resolve().parents[1]
CODE = ROOT / "stream_car"


def code_lines(path: Path) -> int:
    """Lines of a file without blank ones, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    hidden: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                hidden.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return sum(
        1
        for number, line in enumerate(text.splitlines(), 1)
        if number not in hidden and line.strip() and not line.strip().startswith("#")
    )


def room_of(path: Path) -> str:
    """The folder of a file within the package."""
    parts = path.relative_to(CODE).parts
    return parts[0] if len(parts) > 1 else path.stem


class Way:
    """The files and functions that some work passes through, in the order of its calls."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.functions: set[tuple[str, str]] = set()
        self.moves = self.crossings = 0
        self.pairs: Counter[tuple[str, str]] = Counter()
        self._last = ""
        self._prefix = str(CODE)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(self._prefix) or frame.f_code.co_name.startswith("<"):
            return
        self.files.add(name)
        self.functions.add((name, frame.f_code.co_qualname))
        last, self._last = self._last or name, name
        if last != name:
            self.moves += 1
            rooms = room_of(Path(last)), room_of(Path(name))
            self.crossings += rooms[0] != rooms[1]
            self.pairs[rooms] += rooms[0] != rooms[1]


def followed(work: Callable[[], object]) -> Way:
    """The way of some work, done on this thread."""
    way = Way()
    sys.setprofile(way)
    try:
        work()
    finally:
        sys.setprofile(None)
    return way


def ways() -> dict[str, Way]:
    """One publication and one question in the library, and one over HTTP; none is the first of its kind."""
    from stream_car.local.engine import Engine

    def advisory(number: int) -> dict[str, object]:
        scope = {"cve": [f"CVE-2024-{number}"], "package": ["lodash"]}
        text = {"title": f"Prototype pollution, case {number}", "text": "An attacker may add properties."}
        return {"id": f"a-{number}", "type": "advisory", "time": "2024-01-01T00:00:00Z", "scope": scope, **text}

    def release(number: int) -> dict[str, object]:
        return {**advisory(number), "id": f"r-{number}", "type": "release_note", "time": "2024-02-01T00:00:00Z"}

    with tempfile.TemporaryDirectory() as folder, Engine(Path(folder) / "data") as car:
        car.publish([advisory(1)])
        car.query("pollution")
        return {
            "publish": followed(lambda: car.publish([release(1)])),
            "query": followed(lambda: car.query("prototype pollution case 1")),
            "query over HTTP": asyncio.run(_over_http(car)),
        }


async def _over_http(car: "Engine") -> Way:
    import httpx

    from stream_car.http.app import application
    from stream_car.local.service import EmbeddedService

    async with EmbeddedService(car) as service:
        transport = httpx.ASGITransport(app=application(service, version="0"))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.post("/v1/query", json={"text": "pollution"})
            way = Way()
            sys.setprofile(way)
            try:
                response = await client.post("/v1/query", json={"text": "prototype pollution"})
            finally:
                sys.setprofile(None)
            assert response.status_code == 200
            return way


def main() -> None:
    """Print it."""
    files = sorted(CODE.rglob("*.py"))
    rooms: Counter[str] = Counter()
    for path in files:
        rooms[room_of(path)] += code_lines(path)
    print(f"code lines: {sum(rooms.values())} in {len(files)} files")
    for room, lines in rooms.most_common():
        print(f"  {room:14} {lines:6}")
    classes: dict[str, list[str]] = {}
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(str(path.relative_to(CODE)))
    twice = {name: where for name, where in sorted(classes.items()) if len(where) > 1}
    print(f"class names used twice: {len(twice)}")
    for name, where in twice.items():
        print(f"  {name:24} {' '.join(where)}")
    for name, way in ways().items():
        print(
            f"one {name}: {len(way.files)} files, {len(way.functions)} functions, "
            f"{way.moves} moves between files, {way.crossings} crossings between rooms"
        )
        for (one, other), times in way.pairs.most_common(12):
            print(f"  {one:14} -> {other:14} {times}")


if __name__ == "__main__":
    main()
