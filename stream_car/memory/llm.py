"""An extractor and a judge that ask a language model at any OpenAI-compatible endpoint. Opt-in.

They send the texts of memories to the endpoint. Nothing else in Stream-CAR sends text out.

Promise: answers follow a JSON schema and are checked again here; a value that is not in the text is dropped. What
fails raises `ModelFailed`, which a memory counts and gives way to. Cost: a request per text, and up to `retries` more.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TypeVar

import httpx
import msgspec
from msgspec import Struct, field

from stream_car.errors import StreamCarError
from stream_car.memory.extraction import Fact
from stream_car.memory.judging import Judgement, Relation
from stream_car.memory.keys import MemoryKey, comparable

RETRIED = (408, 429, 500, 502, 503, 504)
PAUSE_MAX = 8.0  # seconds between two tries
TEXT_MAX = 20_000  # characters that are sent

EXTRACT = """You turn a text into facts that may change later. One fact is one value of one thing.

For each value that the text states for certain, return:
- subject: the lasting thing that has the value, with everything that tells it from similar things (environment, file,
  person, project). It never contains the value. If a name is what may change, describe what the named thing does.
- relation: one to three words in lower case for what the value is, such as "port", "owner", "is named".
- object: the value, copied from the text.
Two texts that differ only in the value must give the same subject and relation. Leave out "new", "now" and the
like.
Return no fact for questions, plans, guesses, opinions, negations and for what was so only in the past."""

JUDGE = """You compare a candidate sentence with sentences that are held to be true about the same thing.

- duplicate: the candidate says the same.
- merge: both are true and the candidate adds detail. Return merged_text, one sentence with everything that both say.
- contradict: both cannot be true now; the candidate is the later one.
- novel: it is about something else.
Choose novel if you are not sure that a merge loses nothing. Otherwise return an empty merged_text."""

T = TypeVar("T")


class ModelFailed(StreamCarError):
    """The model could not be reached, or did not answer in the form that was asked for."""


class Usage(Struct):
    """What the calls have cost so far: requests that were sent, failures, and tokens as the endpoint counts them."""

    requests: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Tokens(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Message(Struct):
    content: str | None = None


class _Choice(Struct):
    message: _Message


class _Completion(Struct):
    choices: list[_Choice]
    usage: _Tokens | None = field(default_factory=_Tokens)


class _Triple(Struct, forbid_unknown_fields=True):
    subject: str
    relation: str
    object: str


class _Triples(Struct, forbid_unknown_fields=True):
    facts: list[_Triple]


class _Answer(Struct, forbid_unknown_fields=True):
    relation: Relation
    merged_text: str


class ChatModel:
    """A model behind an OpenAI-compatible endpoint, asked at temperature 0. `usage` counts what it has cost."""

    def __init__(self, url: str, model: str, *, token: str = "", timeout: float = 20.0, retries: int = 2) -> None:
        """Name an endpoint.

        Args:
            url: the base, such as `http://127.0.0.1:8080/v1`; requests go to `/chat/completions` below it.
            model: the name that the endpoint gives the model.
            token: sent as a bearer token.
            timeout: seconds for one request.
            retries: how often a request is sent again that failed, timed out, or was turned away as too many.
        """
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(headers=headers, timeout=timeout)
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._model = model
        self._retries = retries
        self.usage = Usage()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def answer(self, system: str, text: str, shape: type[T]) -> T:
        """Return an answer of a shape. Raises `ModelFailed`."""
        schema = {"name": "answer", "strict": True, "schema": _schema(shape)}
        body = {
            "model": self._model,
            "temperature": 0,
            "seed": 0,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": text[:TEXT_MAX]}],
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
        try:
            reply = msgspec.json.decode(self._post(body), type=_Completion)
            if reply.usage is not None:
                self.usage.prompt_tokens += reply.usage.prompt_tokens
                self.usage.completion_tokens += reply.usage.completion_tokens
            return msgspec.json.decode((reply.choices[0].message.content or "").encode(), type=shape)
        except (httpx.HTTPError, msgspec.MsgspecError, IndexError, UnicodeError) as error:
            self.usage.failures += 1
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ModelFailed(f"The model at {self._url} gave no usable answer: {reason}") from error

    def _post(self, body: Mapping[str, object]) -> bytes:
        for attempt in range(self._retries + 1):
            is_last = attempt == self._retries
            pause = min(0.5 * 2**attempt, PAUSE_MAX)
            self.usage.requests += 1
            try:
                reply = self._client.post(self._url, json=body)
            except httpx.TransportError:
                if is_last:
                    raise
            else:
                if reply.status_code not in RETRIED or is_last:
                    return reply.raise_for_status().content
                after = reply.headers.get("Retry-After", "")
                pause = min(float(after), PAUSE_MAX) if after.isdecimal() else pause
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")


class LlmExtractor:
    """Finds facts by asking a model. It sends every text that is added without a key to the model's endpoint."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model

    def extract(self, text: str) -> Sequence[Fact]:
        """Return the facts that the model finds and that can be checked: each value stands in the text."""
        triples = self.model.answer(EXTRACT, text, _Triples).facts
        facts = [_fact(triple, text) for triple in triples]
        return [fact for fact in facts if fact is not None]


class LlmJudge:
    """Compares values of one key by asking a model. It sends both sentences to the model's endpoint."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model

    def judge(self, candidate: str, existing: Sequence[str]) -> Judgement:
        """Return how a sentence relates to those that hold."""
        held = "\n".join(f"- {sentence}" for sentence in existing)
        judgement = self.model.answer(JUDGE, f"Held:\n{held}\n\nCandidate:\n{candidate}", _Answer)
        return Judgement(judgement.relation, judgement.merged_text)


def _fact(triple: _Triple, text: str) -> Fact | None:
    subject, relation, value = (comparable(part) for part in (triple.subject, triple.relation, triple.object))
    words = subject.removeprefix("the ").replace("::", ":").strip()
    if not words or not relation or not value or value not in comparable(text) or value in subject:
        return None
    return Fact(MemoryKey(words, relation.replace("::", ":")), " ".join(triple.object.split()), text)


def _schema(shape: type[object]) -> dict[str, object]:
    """Return the JSON schema of a shape, as strict endpoints want it: all fields required, no references at the top."""
    schema = msgspec.json.schema(shape)
    definitions = schema.pop("$defs", {})
    top = definitions.pop(schema.pop("$ref").rpartition("/")[2])
    return {**top, "$defs": definitions} if definitions else top
