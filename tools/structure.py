"""Measures how much of the code a reader must know: lines, class names used twice, and the path of a call.

`python -m tools.structure` prints all figures. A *room* is a folder of `stream_car`, or a file directly below it. In
the sequence of calls, a *move* is a call into another file than the call before it, a *crossing* one into another room.
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
    """Count the lines of a file without blank lines, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and ast.get_docstring(node, clean=False) is not None:
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return sum(
        1
        for number, line in enumerate(text.splitlines(), 1)
        if number not in docstrings and line.strip() and not line.strip().startswith("#")
    )


def room_of(path: Path) -> str:
    """Return the room of a file of the package."""
    parts = path.relative_to(CODE).parts
    return parts[0] if len(parts) > 1 else path.stem


class CallTrace:
    """The files and functions that an operation passes through, in the order of its calls."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.functions: set[tuple[str, str]] = set()
        self.moves = self.crossings = 0
        self.crossings_by_rooms: Counter[tuple[str, str]] = Counter()
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
            self.crossings_by_rooms[rooms] += rooms[0] != rooms[1]


def trace_calls(operation: Callable[[], object]) -> CallTrace:
    """Trace an operation on this thread."""
    trace = CallTrace()
    sys.setprofile(trace)
    try:
        operation()
    finally:
        sys.setprofile(None)
    return trace


def traces() -> dict[str, CallTrace]:
    """Trace a publication and a query in the library, and a query over HTTP, each after a first call of its kind."""
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
            "publish": trace_calls(lambda: car.publish([release(1)])),
            "query": trace_calls(lambda: car.query("prototype pollution case 1")),
            "query over HTTP": asyncio.run(_trace_http_query(car)),
        }


async def _trace_http_query(car: "Engine") -> CallTrace:
    import httpx

    from stream_car.http.app import application
    from stream_car.local.concurrent_service import ConcurrentService

    async with ConcurrentService(car.directory) as service:
        transport = httpx.ASGITransport(app=application(service, version="0", hosts={"localhost"}))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.post("/v1/query", json={"text": "pollution"})
            trace = CallTrace()
            sys.setprofile(trace)
            try:
                response = await client.post("/v1/query", json={"text": "prototype pollution"})
            finally:
                sys.setprofile(None)
            assert response.status_code == 200
            return trace


def main() -> None:
    """Print all figures."""
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
    twice = {name: files for name, files in sorted(classes.items()) if len(files) > 1}
    print(f"class names used twice: {len(twice)}")
    for name, places in twice.items():
        print(f"  {name:24} {' '.join(places)}")
    for name, trace in traces().items():
        print(
            f"one {name}: {len(trace.files)} files, {len(trace.functions)} functions, "
            f"{trace.moves} moves between files, {trace.crossings} crossings between rooms"
        )
        for (caller, callee), times in trace.crossings_by_rooms.most_common(12):
            print(f"  {caller:14} -> {callee:14} {times}")


if __name__ == "__main__":
    main()
