"""Hostile readers beside honest clients: `python -m tests.attack.readers`.

Promise: every hostile request gets its answer in pages, each bounded, while publishers and honest readers go on. Their
delays are compared with those of turns without the hostile reader in between, so that both kinds of turns see the same
machine. The longest piece of work that nothing can interrupt is measured in processor time. Cost: about five minutes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
from msgspec import Struct

import stream_car
from tests.attack.pieces import PROGRAM, VARIABLE, NotedPieces
from tests.support.server_process import Server

PUBLISH_MAX, QUERY_MAX = 5.0, 3.0  # times the delay without a hostile reader, at the 99th percentile
PIECE_MAX_MS, PIECE_MAX = 10.0, 2.0  # a longer piece is at most so many times the longest without a hostile reader
PAUSE_S = 0.03  # between two requests of an honest client
SECONDS = 10.0  # of attack, and of rest, per shape
TURNS = 4

Document = dict[str, object]
Attack = Callable[[httpx.Client], str]  # sends one hostile request after the other; returns what continues it, or ""


class Delays(Struct):
    """The delays of an honest client in seconds, and the pieces of the server's work in milliseconds."""

    publish: list[float] = []
    query: list[float] = []
    pieces: list[float] = []

    @property
    def p99(self) -> tuple[float, float]:
        """The 99th percentiles of publishing and asking."""
        return _p99(self.publish), _p99(self.query)

    @property
    def longest_ms(self) -> float:
        """The longest piece."""
        return max(self.pieces, default=0.0)

    def add(self, other: "Delays", pieces: Iterable[float]) -> None:
        """Add those of another turn."""
        self.publish += other.publish
        self.query += other.query
        self.pieces += pieces


def corpus(size: float = 1.0) -> Iterator[Document]:
    """Yield what the hostile requests are about, between documents that honest clients ask for."""
    links, hot, wide, fan = int(20_000 * size), int(20_000 * size), int(1000 * size), int(100 * size)
    for n in range(200):
        yield _document(f"honest-{n}", package=[f"honest-{n}"], vulnerability=["CVE-1"])
    for n in range(fan):
        yield _document(f"fan-{n}", n, package=[f"fan-{m}" for m in range(wide)], vulnerability=["CVE-2"])
    for n in range(hot):
        yield _document(f"hot-{n}", n, package=["hot"], vulnerability=["CVE-3"])
    for n in range(links):
        yield {**_document(f"chain-{n}"), "supersedes": [f"chain-{n - 1}"] if n else []}
    for n in range(wide):
        yield {**_document(f"cycle-{n}", word="cycle"), "supersedes": [f"cycle-{(n + 1) % wide}"]}
        yield {**_document(f"pair-{n}", word="pair"), "supersedes": [f"pair-{n ^ 1}"]}


def _document(name: str, at: int = 0, word: str = "words", **scope: list[str]) -> Document:
    title, moment = f"{name.partition('-')[0]} {word}", f"2024-01-01T00:{at // 60 % 60:02d}:{at % 60:02d}Z"
    return {"id": name, "type": "advisory", "time": moment, "title": title, "scope": scope}


def build(folder: Path, documents: Iterable[Document]) -> None:
    """Publish these documents into a data directory."""
    with stream_car.open(folder) as car:
        car.publish(msgspec.json.encode(document) for document in documents)


def listing(path: str, **parameters: str) -> Attack:
    """Return an attack that reads a listing page by page, again and again."""
    after = ""

    def read(client: httpx.Client) -> str:
        nonlocal after
        page = _json(client.get(path, params={**parameters, "after": after, "limit": "1000"}))
        assert isinstance(page, list)
        after = str(page[-1].get("next", page[-1].get("position", ""))) if page else ""
        lists = (item.get(key, ()) for item in page for key in ("in_force", "blocked", "members"))
        assert sum(len(members) for members in lists if not isinstance(members, int)) <= 1000
        return after

    return read


def walk(path: str, name: str) -> Attack:
    """Return an attack that follows what controls a document page by page."""
    names = [name]

    def read(client: httpx.Client) -> str:
        if path == "explain":
            groups = [_json(client.get(f"/v1/explain/{names[0]}"))["group"]]
        else:
            [resolution] = _json(client.post("/v1/resolve", json={"names": names[:1]}))
            groups = resolution["groups"]
        names[:] = [*(following for group in groups for following in group["next"]), *names[1:]] or [name]
        return names[0]

    return read


def question(text: str) -> Attack:
    """Return an attack that asks the same words for other numbers of documents, so that no answer is remembered."""
    count = 0

    def read(client: httpx.Client) -> str:
        nonlocal count
        count += 1
        _json(client.post("/v1/query", json={"text": text, "k": 30 + count % 70, "depth": 200}))
        return ""

    return read


def lockfile(packages: int) -> Attack:
    """Return an attack that asks which packages of a large lockfile are affected."""
    wheel = f'  {{ url = "https://x.example/{"a" * 60}.whl", hash = "sha256:{"0" * 64}", size = 1 }},\n'
    text = "".join(
        f'[[package]]\nname = "p{n}"\nversion = "1.{n}"\nsource = {{ registry = "https://x.example" }}\n'
        f"wheels = [\n{wheel * 2}]\n\n"
        for n in range(packages)
    )

    def read(client: httpx.Client) -> str:
        _json(client.post("/v1/affected", json={"files": [{"name": "uv.lock", "text": text}]}))
        return ""

    return read


ATTACKS: dict[str, Callable[[], Attack]] = {
    "frontiers of 1,000 scopes": lambda: listing("/v1/frontier", scope="vulnerability=CVE-2"),
    "histories of 1,000 scopes": lambda: listing("/v1/history", scope="vulnerability=CVE-2"),
    "frontier of 20,000 members": lambda: listing("/v1/frontier", scope="package=hot"),
    "history of 20,000 members": lambda: listing("/v1/history", scope="package=hot"),
    "changes of 1,000 scopes": lambda: listing("/v1/changes", scope="vulnerability=CVE-2"),
    "resolve a chain of 20,000": lambda: walk("resolve", "chain-0"),
    "explain a chain of 20,000": lambda: walk("explain", "chain-0"),
    "anchors in a cycle of 1,000": lambda: question("cycle"),
    "anchors in 1,000 cycles": lambda: question("pair"),
    "anchors in 1,000 scopes": lambda: question("fan"),
    "a lockfile of 3 MiB": lambda: lockfile(7_500),
    "a long text": lambda: question("fan hot chain cycle pair words " * 300),
}


def measure(url: str, seconds: float) -> Delays:
    """Publish and ask as an honest client for some time."""
    delays = Delays()
    end = time.monotonic() + seconds

    def publish() -> None:
        with httpx.Client(base_url=url, timeout=120) as client:
            while not delays.publish or time.monotonic() < end:
                document = _document(f"new-{time.monotonic_ns()}", package=["new"], vulnerability=["CVE-4"])
                delays.publish.append(_timed(lambda: client.post("/v1/documents", json=document)))  # noqa: B023
                time.sleep(PAUSE_S)

    publisher = threading.Thread(target=publish)
    publisher.start()
    with httpx.Client(base_url=url, timeout=120) as client:
        while not delays.query or time.monotonic() < end:
            delays.query.append(_timed(lambda: client.post("/v1/query", json={"text": "honest words", "k": 3})))
            time.sleep(PAUSE_S)
    publisher.join()
    return delays


@contextmanager
def attacking(url: str, attack: Attack) -> Iterator[list[float]]:
    """Send one hostile request after the other in a thread; yield their durations."""
    durations: list[float] = []
    is_over = threading.Event()

    def run() -> None:
        with httpx.Client(base_url=url, timeout=120) as client:
            while not durations or not is_over.is_set():
                durations.append(_timed(lambda: attack(client)))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield durations
    finally:
        is_over.set()
        thread.join()


def _timed(action: Callable[[], object]) -> float:
    begin = time.monotonic()
    result = action()
    if isinstance(result, httpx.Response):
        _json(result)
    return time.monotonic() - begin


def _json(response: httpx.Response):  # type: ignore[no-untyped-def]
    assert response.status_code == 200, response.text
    return response.json()


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


class Result(Struct):
    """What a hostile shape did to an honest client."""

    name: str
    idle: Delays
    attacked: Delays
    durations: list[float]

    @property
    def is_fair(self) -> bool:
        """Whether the honest client was served within the bounds."""
        publish, query = self._ratios()
        longest_ms = max(PIECE_MAX_MS, PIECE_MAX * self.idle.longest_ms)
        return publish <= PUBLISH_MAX and query <= QUERY_MAX and self.attacked.longest_ms <= longest_ms

    def _ratios(self) -> list[float]:
        return [now / before for now, before in zip(self.attacked.p99, self.idle.p99, strict=True)]

    def __str__(self) -> str:
        publish, query = self._ratios()
        return (
            f"{self.name:28} publish {publish:4.1f} x  query {query:4.1f} x of {self.idle.p99[1] * 1000:4.0f} ms  "
            f"longest piece {self.attacked.longest_ms:5.1f} ms of {self.idle.longest_ms:5.1f}  "
            f"{len(self.durations):4} pages, at most {max(self.durations, default=0):4.1f} s  "
            f"load {os.getloadavg()[0]:.0f}{'' if self.is_fair else '   UNFAIR'}"
        )


def attempt(url: str, name: str, pieces: NotedPieces, seconds: float) -> Result:
    """Take turns with and without a hostile reader."""
    result = Result(name, Delays(), Delays(), [])
    attack = ATTACKS[name]()
    for _ in range(TURNS):
        pieces.new()
        result.idle.add(measure(url, seconds / TURNS), pieces.new())
        with attacking(url, attack) as durations:
            delays = measure(url, seconds / TURNS)
        result.attacked.add(delays, pieces.new())
        result.durations += durations
    return result


def main() -> int:
    """Attack a server with each shape in turn; return 1 if honest clients were kept waiting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", default="")
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory(prefix="stream-car-readers-") as temporary:
        folder = arguments.data or Path(temporary) / "data"
        if not folder.exists():
            build(folder, corpus())
        noted = Path(temporary) / "pieces"
        noted.touch()
        os.environ[VARIABLE] = str(noted)
        with Server(folder, program=PROGRAM, stderr=subprocess.DEVNULL) as server:
            pieces = NotedPieces(noted)
            measure(server.url, 2.0)  # warms up
            for name in ATTACKS:
                if arguments.only in name:
                    results.append(attempt(server.url, name, pieces, arguments.seconds))
                    print(results[-1], flush=True)
    return not all(result.is_fair for result in results)


if __name__ == "__main__":
    sys.exit(main())
