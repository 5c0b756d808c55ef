"""Haystack: a retriever of documents in force, and a guard that repairs what another retriever found.

    from stream_car.integrations.haystack import CarDocumentGuard, CarDocumentRetriever

    pipeline.add_component("guard", CarDocumentGuard(calls=stream_car.open("data")))
    pipeline.connect("retriever.documents", "guard.documents")

Needs `stream-car[haystack]`.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from stream_car.api.calls import Calls
from stream_car.errors import InvalidRequest
from stream_car.integrations.evidence import Passage, Unknown, ask, repair

try:
    from haystack import Document, component
except ImportError as error:
    raise ImportError(f"{error}. Run: pip install 'stream-car[haystack]'.") from error


@component
class CarDocumentRetriever:
    """Retrieve the documents in force for a question, best first.

    `calls` is an engine or a client, which the caller closes. The `meta` of a document has its status, outcome, path
    and scope, and the certificate of the answer. Amendments of a document follow in its content.
    """

    def __init__(
        self,
        calls: Calls,
        *,
        top_k: int = 5,
        scope: Mapping[str, str] | None = None,
        as_of: datetime | str | None = None,
    ) -> None:
        self._calls, self._top_k, self._scope, self._as_of = calls, top_k, scope, as_of

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return the `documents` in force for a question."""
        k = self._top_k if top_k is None else top_k
        passages = ask(self._calls, query, k=k, as_of=self._as_of, scope=self._scope)
        return {"documents": [_document(passage, passage.score) for passage in passages]}

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return what `run` returns."""
        return await asyncio.to_thread(self.run, query, top_k)


@component
class CarDocumentGuard:
    """Repair what another retriever found: keep what is in force, and replace what is superseded by what controls it.

    Publish each source document once, under the id that its parts have: `policy-7` for the part `policy-7#3`. The name
    of a document is what its `meta` has as `id_key`, or else as `source_id`, where the splitters of Haystack keep the
    id of the whole, or its own id. One that was never published here is dropped with a warning, or kept with the status
    `unknown`, as `unknown` says. Kept documents keep content and meta, and replaced ones hand on their score.
    """

    def __init__(
        self,
        calls: Calls,
        *,
        id_key: str = "id",
        as_of: datetime | str | None = None,
        unknown: Unknown = "drop",
    ) -> None:
        self._calls, self._id_key, self._as_of, self._unknown = calls, id_key, as_of, unknown

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Return the `documents` that may be used in place of these, in their order.

        Raises:
            InvalidRequest: the name of a document is not text (`id`).
        """
        passages = repair(self._calls, list(map(self._name, documents)), as_of=self._as_of, unknown=self._unknown)
        return {
            "documents": [
                _document(passage, documents[passage.hit].score, documents[passage.hit] if passage.stays else None)
                for passage in passages
            ]
        }

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Return what `run` returns."""
        return await asyncio.to_thread(self.run, documents)

    def _name(self, document: Document) -> str:
        name = document.meta.get(self._id_key) or document.meta.get("source_id") or document.id
        if not isinstance(name, str):
            reason = f"The id of a document must be text, not {name!r:.60}. Set `id_key` to the key that holds it."
            raise InvalidRequest("id", reason)
        return name


def _document(passage: Passage, score: float | None, hit: Document | None = None) -> Document:
    if hit is None:
        return Document(id=passage.id, content=passage.text, meta=passage.metadata({}), score=score)
    content = "\n\n".join(filter(None, (hit.content, passage.text)))
    return replace(hit, content=content, meta=passage.metadata(hit.meta))
