"""Which documents of a walk void one another in a cycle.

Promise: they are the members of the strongly connected components with more than one document. Nothing
here is recursive. All later members of a type in a scope are one edge, to a chain that leads through
them in order. So the cost is linear in documents, links and spans, times the logarithm of a scope's members.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from stream_car.core.documents import Precedence
from stream_car.core.stored import Compared, Entry

ChainKey = tuple[str, str, Compared, Compared]  # scope, type, compared names, the value to differ from


class Span(Struct, frozen=True, gc=False):
    """All members of a type in a scope that are later than `low` and whose value for `names` is not `value`."""

    scope: str
    type: str
    low: Precedence
    names: Compared = ()
    value: Compared = ()

    @property
    def chain_key(self) -> ChainKey:
        """What spans have in common that differ only in `low`."""
        return self.scope, self.type, self.names, self.value


class _ChainPosition(Struct, frozen=True, gc=False):
    """A position in a chain: it leads to the document there and to the next position."""

    chain_key: ChainKey
    index: int


Vertex = str | _ChainPosition
Chain = list[tuple[Precedence, str]]


class _Graph:
    """Documents, and the chains through the scopes that they share."""

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
        self._chains: dict[ChainKey, Chain] = {}
        self._members: dict[tuple[str, str], list[Entry]] = {}
        for scope, entry in members:
            self._members.setdefault((scope, entry.type), []).append(entry)

    def _chain(self, span: Span) -> Chain:
        chain = self._chains.get(span.chain_key)
        if chain is None:
            chain = self._chains[span.chain_key] = sorted(
                (entry.precedence, entry.id)
                for entry in self._members.get((span.scope, span.type), ())
                if not span.names or self._compared(span.scope, entry, span.names) != span.value
            )
        return chain

    def successors(self, vertex: Vertex) -> Iterator[Vertex]:
        """The vertices that an edge leads to from this one."""
        if isinstance(vertex, _ChainPosition):
            chain = self._chains[vertex.chain_key]
            yield chain[vertex.index][1]
            if vertex.index + 1 < len(chain):
                yield _ChainPosition(vertex.chain_key, vertex.index + 1)
            return
        yield from self._links.get(vertex, ())
        for span in self._spans.get(vertex, ()):
            chain = self._chain(span)
            index = bisect_right(chain, span.low, key=_precedence)
            if index < len(chain):
                yield _ChainPosition(span.chain_key, index)


def documents_in_cycles(
    links: Mapping[str, list[str]],
    spans: Mapping[str, list[Span]],
    members: Iterable[tuple[str, Entry]],
    compared: Callable[[str, Entry, Compared], Compared],
) -> list[str]:
    """Return the documents that are part of a cycle, sorted.

    `links` lead from a document to those that void it by name, `spans` to those that void it by rule. `members` are
    the reached documents, each with a scope that it is in. `compared` returns a member's value for some names.
    """
    graph = _Graph(links, spans, members, compared)
    return sorted(name for component in _components(graph, links) for name in component)


def _components(graph: _Graph, starts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the documents of each strongly connected component that has several: Tarjan's algorithm, iterative.

    Every cycle contains a link, since rules only lead to later documents. So it is enough to start at the links.
    """
    index: dict[Vertex, int] = {}
    lowlink: dict[Vertex, int] = {}
    on_stack: dict[Vertex, None] = {}  # Tarjan's stack: a dictionary keeps the order and finds members at once
    calls: list[tuple[Vertex, Iterator[Vertex]]] = []  # takes the place of the recursion

    def enter(vertex: Vertex) -> None:
        index[vertex] = lowlink[vertex] = len(index)
        on_stack[vertex] = None
        calls.append((vertex, graph.successors(vertex)))

    for start in starts:
        if start not in index:
            enter(start)
        while calls:
            vertex, successors = calls[-1]
            for successor in successors:
                if successor not in index:
                    enter(successor)
                    break
                if successor in on_stack:
                    lowlink[vertex] = min(lowlink[vertex], index[successor])
            else:  # every successor has been visited
                calls.pop()
                if calls:
                    caller = calls[-1][0]
                    lowlink[caller] = min(lowlink[caller], lowlink[vertex])
                if lowlink[vertex] == index[vertex]:
                    component = [member for member in _pop_component(on_stack, vertex) if isinstance(member, str)]
                    if len(component) > 1:
                        yield component


def _pop_component(on_stack: dict[Vertex, None], root: Vertex) -> Iterator[Vertex]:
    while True:
        vertex, _ = on_stack.popitem()
        yield vertex
        if vertex == root:
            return


def _precedence(position: tuple[Precedence, str]) -> Precedence:
    return position[0]
