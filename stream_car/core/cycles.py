"""Which documents of a walk void one another in a ring.

Promise: they are the members of the strongly connected parts with more than one document; nothing
here is recursive. All later members of a type in a scope are one edge, to a chain that leads through
them in order, so the cost is linear in documents, links and spans (times the log of a scope's members).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from stream_car.core.documents import Precedence
from stream_car.core.stored import Compared, Entry


class Span(Struct, frozen=True, gc=False):
    """All members of a type in a scope that are later than `low` and, on `names`, say something else."""

    scope: str
    type: str
    low: Precedence
    names: Compared = ()
    value: Compared = ()

    @property
    def chain(self) -> tuple[str, str, Compared, Compared]:
        """What spans that differ only in where they begin have in common."""
        return self.scope, self.type, self.names, self.value


class _Link(Struct, frozen=True, gc=False):
    """A place in a chain: it leads to a document and to the next place."""

    chain: tuple[str, str, Compared, Compared]
    at: int


Vertex = str | _Link
Chain = list[tuple[Precedence, str]]


class _Graph:
    """Documents, and the chains through scopes."""

    def __init__(
        self,
        links: Mapping[str, list[str]],
        spans: Mapping[str, list[Span]],
        members: Iterable[tuple[str, Entry]],
        compared: Callable[[str, Entry, Compared], Compared],
    ) -> None:
        self._links = links
        self._spans = spans
        self._compared = compared
        self._chains: dict[tuple[str, str, Compared, Compared], Chain] = {}
        self._members: dict[tuple[str, str], list[Entry]] = {}
        for scope, entry in members:
            self._members.setdefault((scope, entry.type), []).append(entry)

    def _chain(self, span: Span) -> Chain:
        found = self._chains.get(span.chain)
        if found is None:
            found = self._chains[span.chain] = sorted(
                (entry.precedence, entry.id)
                for entry in self._members.get((span.scope, span.type), ())
                if not span.names or self._compared(span.scope, entry, span.names) != span.value
            )
        return found

    def edges(self, vertex: Vertex) -> Iterator[Vertex]:
        """Where a vertex leads."""
        if isinstance(vertex, _Link):
            chain = self._chains[vertex.chain]
            yield chain[vertex.at][1]
            if vertex.at + 1 < len(chain):
                yield _Link(vertex.chain, vertex.at + 1)
            return
        yield from self._links.get(vertex, ())
        for span in self._spans.get(vertex, ()):
            chain = self._chain(span)
            at = bisect_right(chain, span.low, key=_pair)
            if at < len(chain):
                yield _Link(span.chain, at)


def cycles(
    links: Mapping[str, list[str]],
    spans: Mapping[str, list[Span]],
    members: Iterable[tuple[str, Entry]],
    compared: Callable[[str, Entry, Compared], Compared],
) -> list[str]:
    """The documents that are part of a ring, sorted.

    `links` lead from a document to those that void it by name, `spans` to those that do so by rule;
    `members` are the reached documents with the scopes that they are in; `said` reads a member's values.
    """
    graph = _Graph(links, spans, members, compared)
    return sorted(name for part in _components(graph, links) for name in part)


def _components(graph: _Graph, starts: Iterable[str]) -> Iterator[list[str]]:
    """Strongly connected parts with more than one document, by Tarjan's algorithm with a stack of its own.

    Every ring holds a link, since rules only lead to later documents: it is enough to start at links.
    """
    number: dict[Vertex, int] = {}
    low: dict[Vertex, int] = {}
    open_: dict[Vertex, None] = {}
    for start in starts:
        if start in number:
            continue
        path: list[tuple[Vertex, Iterator[Vertex]]] = []
        entering: Vertex | None = start
        while entering is not None or path:
            if entering is not None:
                number[entering] = low[entering] = len(number)
                open_[entering] = None
                path.append((entering, graph.edges(entering)))
                entering = None
            vertex, edges = path[-1]
            for other in edges:
                if other not in number:
                    entering = other
                    break
                if other in open_:
                    low[vertex] = min(low[vertex], number[other])
            if entering is not None:
                continue
            path.pop()
            if path:
                above = path[-1][0]
                low[above] = min(low[above], low[vertex])
            if low[vertex] == number[vertex]:
                documents = [one for one in _close(open_, vertex) if isinstance(one, str)]
                if len(documents) > 1:
                    yield documents


def _close(open_: dict[Vertex, None], until: Vertex) -> Iterator[Vertex]:
    while True:
        vertex, _ = open_.popitem()
        yield vertex
        if vertex == until:
            return


def _pair(item: tuple[Precedence, str]) -> Precedence:
    return item[0]
