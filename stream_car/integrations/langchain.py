"""LangChain: a retriever of documents in force, an index of them, and a compressor that repairs what others found.

    from stream_car.integrations.langchain import CarGuard, CarRetriever

    retriever = CarRetriever(calls=stream_car.open("data"), k=5)
    guarded = ContextualCompressionRetriever(base_retriever=yours, base_compressor=CarGuard(calls=...))

Needs `stream-car[langchain]`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import uuid4

from stream_car.api.calls import Calls
from stream_car.codec.publishable import NewDocument
from stream_car.core.documents import Retraction
from stream_car.errors import InvalidRequest
from stream_car.integrations.evidence import Passage, Unknown, ask, repair, taking_turns
from stream_car.memory.documents import MemoryClock
from stream_car.queries.answers import PublishedDocument

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
        Callbacks,
    )
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.indexing.base import DeleteResponse, DocumentIndex, UpsertResponse
    from langchain_core.retrievers import BaseRetriever
    from pydantic import ConfigDict, PrivateAttr
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
        passages = ask(self.calls, query, k=self.k if k is None else k, as_of=self.as_of, scope=self.scope)
        return [self._shown(passage) for passage in passages]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return await asyncio.to_thread(self._get_relevant_documents, query, k=k)

    def _shown(self, passage: Passage) -> Document:
        return _document(passage)


class CarIndex(CarRetriever, DocumentIndex):
    """Publish documents of LangChain, get them by id, retract them, and retrieve those that are in force.

    Metadata becomes the attributes of a document. Those that `scope_keys` names are its scope, by which the rules of
    its `type` compare it with others; `title`, `source` and `url` are those of the document. Its time is what
    `time_key` names, or else now. A document under an id that exists already is its next revision.
    """

    type: str = "fact"
    scope_keys: Sequence[str] = ()
    time_key: str = "time"
    _clock: MemoryClock = PrivateAttr(default_factory=MemoryClock)

    def upsert(self, items: Sequence[Document], /, **kwargs: object) -> UpsertResponse:
        """Publish documents; those without an id get one. Those that are rejected are `failed`, and logged."""
        documents = [self._new(item) for item in items]
        with taking_turns(self.calls):
            receipts = self.calls.publish(documents).receipts if documents else ()
        failed = {receipt.id for receipt in receipts if receipt.outcome == "rejected"}
        ids = list(dict.fromkeys(document.id for document in documents))
        return {"succeeded": [id for id in ids if id not in failed], "failed": [id for id in ids if id in failed]}

    def delete(self, ids: list[str] | None = None, **kwargs: object) -> DeleteResponse:
        """Retract documents. Their bytes stay in the log until it is erased.

        Raises:
            ValueError: no ids were passed.
        """
        if ids is None:
            raise ValueError("Pass the `ids` of the documents to delete.")
        with taking_turns(self.calls):
            held = [published.document.id for published in self._published(ids)]
            if held:
                self.calls.publish([Retraction(id=id) for id in held], on_rejected="raise")
        return {"num_deleted": len(held), "succeeded": held, "num_failed": 0, "failed": []}

    def get(self, ids: Sequence[str], /, **kwargs: object) -> list[Document]:
        """Return documents as they were published, whether they are in force or not."""
        with taking_turns(self.calls):
            documents = [published.document for published in self._published(ids)]
        return [
            Document(id=document.id, page_content=document.text, metadata=dict(document.attributes))
            for document in documents
        ]

    def _published(self, ids: Sequence[str]) -> list[PublishedDocument]:
        different = list(dict.fromkeys(ids))
        lookups = self.calls.get(different) if different else ()
        return [published for lookup in lookups if lookup.via == "id" for published in lookup.documents]

    def _new(self, item: Document) -> NewDocument:
        now, metadata = self._clock.now(), item.metadata
        texts = {name: metadata[name] for name in ("title", "source", "url") if isinstance(metadata.get(name), str)}
        return NewDocument(
            id=item.id or str(uuid4()),
            type=self.type,
            time=metadata.get(self.time_key) or now,
            revision=int(now.timestamp() * 1_000_000),  # greater than that of any edition before
            scope={key: metadata[key] for key in self.scope_keys if metadata.get(key) is not None},
            attributes=metadata,
            text=item.page_content,
            **texts,
        )

    def _shown(self, passage: Passage) -> Document:
        own = passage.about["attributes"]
        return _document(passage, own=own if isinstance(own, Mapping) else {})


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


def _document(passage: Passage, hit: Document | None = None, own: Mapping[str, object] = {}) -> Document:
    if hit is None:
        return Document(id=passage.id, page_content=passage.text, metadata=passage.metadata(own))
    text = "\n\n".join(filter(None, (hit.page_content, passage.text)))
    return Document(id=hit.id, page_content=text, metadata=passage.metadata(hit.metadata))
