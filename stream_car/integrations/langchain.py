"""LangChain: a retriever of documents in force, and a compressor that repairs what another retriever found.

    from stream_car.integrations.langchain import CarGuard, CarRetriever

    retriever = CarRetriever(calls=stream_car.open("data"), k=5)
    guarded = ContextualCompressionRetriever(base_retriever=yours, base_compressor=CarGuard(calls=...))

Needs `stream-car[langchain]`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from stream_car.api.calls import Calls
from stream_car.errors import InvalidRequest
from stream_car.integrations.evidence import Passage, Unknown, ask, repair

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
        Callbacks,
    )
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict
except ImportError as error:
    raise ImportError(f"{error}. Run: pip install 'stream-car[langchain]'.") from error


class CarRetriever(BaseRetriever):
    """Retrieve the documents in force for a question, best first.

    `calls` is an engine or a client, which the caller closes. The metadata of a document has its status, outcome, path
    and scope, and the certificate of the answer. Amendments of a document follow in its text.
    """

    calls: Calls
    k: int = 5
    scope: Mapping[str, str] | None = None
    as_of: datetime | str | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun | None = None, k: int | None = None
    ) -> list[Document]:
        documents = ask(self.calls, query, k=self.k if k is None else k, as_of=self.as_of, scope=self.scope)
        return [_document(passage) for passage in documents]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return await asyncio.to_thread(self._get_relevant_documents, query, k=k)


class CarGuard(BaseDocumentCompressor):
    """Repair what another retriever found: keep what is in force, and replace what is superseded by what controls it.

    Publish each source document once, under the id that its chunks have: `policy-7` for the chunk `policy-7#3`. The
    name of a hit is what its metadata has as `id_key`, or else its `id`. A hit that was never published here is dropped
    with a warning, or kept with the status `unknown`, as `unknown` says. Kept hits keep their text and metadata.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    calls: Calls
    id_key: str = "id"
    as_of: datetime | str | None = None
    unknown: Unknown = "drop"

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks = None
    ) -> list[Document]:
        """Return what may be used in place of the documents, in their order.

        Raises:
            InvalidRequest: a document has no id (`id`).
        """
        names = [self._name(document) for document in documents]
        return [
            _document(passage, documents[passage.hit] if passage.stays else None)
            for passage in repair(self.calls, names, as_of=self.as_of, unknown=self.unknown)
        ]

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks = None
    ) -> list[Document]:
        """Return what `compress_documents` returns."""
        return await asyncio.to_thread(self.compress_documents, documents, query, callbacks)

    def _name(self, document: Document) -> str:
        name = document.metadata.get(self.id_key) or document.id
        if not isinstance(name, str):
            cure = f"Put the id under which its source was published into metadata[{self.id_key!r}], or set `id_key`."
            raise InvalidRequest("id", f"A retrieved document has no id: {document.page_content!r:.60}. {cure}")
        return name


def _document(passage: Passage, hit: Document | None = None) -> Document:
    if hit is None:
        return Document(id=passage.id, page_content=passage.text, metadata=passage.metadata({}))
    text = "\n\n".join(filter(None, (hit.page_content, passage.text)))
    return Document(id=hit.id, page_content=text, metadata=passage.metadata(hit.metadata))
