"""LlamaIndex: a retriever of documents in force, and a postprocessor that repairs what another retriever found.

    from stream_car.integrations.llama_index import CarNodePostprocessor, CarNodeRetriever

    engine = RetrieverQueryEngine.from_args(yours, node_postprocessors=[CarNodePostprocessor(calls=...)])

Needs `stream-car[llama-index]`.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime

from stream_car.api.calls import Calls
from stream_car.errors import InvalidRequest
from stream_car.integrations.evidence import Passage, Unknown, ask, repair

try:
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from pydantic import ConfigDict
except ImportError as error:
    raise ImportError(f"{error}. Run: pip install 'stream-car[llama-index]'.") from error


class CarNodeRetriever(BaseRetriever):
    """Retrieve the documents in force for a question, best first.

    `calls` is an engine or a client, which the caller closes. The metadata of a node has its status, outcome, path and
    scope, and the certificate of the answer; a model sees only the text, in which amendments of a document follow.
    """

    def __init__(
        self,
        calls: Calls,
        *,
        k: int = 5,
        scope: Mapping[str, str] | None = None,
        as_of: datetime | str | None = None,
    ) -> None:
        super().__init__()
        self._calls, self._k, self._scope, self._as_of = calls, k, scope, as_of

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        passages = ask(self._calls, query_bundle.query_str, k=self._k, as_of=self._as_of, scope=self._scope)
        return [_node(passage, passage.score) for passage in passages]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class CarNodePostprocessor(BaseNodePostprocessor):
    """Repair what another retriever found: keep what is in force, and replace what is superseded by what controls it.

    Publish each source document once, under the id that its nodes have: `policy-7` for the node `policy-7#3`. The name
    of a node is what its metadata has as `id_key`, or else the id of its source document, or its own. A node that was
    never published here is dropped with a warning, or kept with the status `unknown`, as `unknown` says. Kept nodes
    keep their text and metadata, and replaced ones hand on their score.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    calls: Calls
    id_key: str = "id"
    as_of: datetime | str | None = None
    unknown: Unknown = "drop"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        passages = repair(self.calls, list(map(self._name, nodes)), as_of=self.as_of, unknown=self.unknown)
        return [
            _node(passage, nodes[passage.hit].score, nodes[passage.hit] if passage.stays else None)
            for passage in passages
        ]

    def _name(self, node: NodeWithScore) -> str:
        name = node.node.metadata.get(self.id_key) or node.node.ref_doc_id or node.node.node_id
        if not isinstance(name, str):
            reason = f"The id of a node must be text, not {name!r:.60}. Set `id_key` to the key that holds it."
            raise InvalidRequest("id", reason)
        return name


def _node(passage: Passage, score: float | None, hit: NodeWithScore | None = None) -> NodeWithScore:
    own = hit.node.metadata if hit is not None else {}
    id = hit.node.node_id if hit is not None else passage.id
    text = "\n\n".join(filter(None, (hit.node.get_content() if hit is not None else "", passage.text)))
    metadata = passage.metadata(own)
    hidden = sorted(metadata.keys() - own.keys())
    node = TextNode(
        id_=id,
        text=text,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
    return NodeWithScore(node=node, score=score)
