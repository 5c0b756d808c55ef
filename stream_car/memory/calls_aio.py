"""The calls of a memory: each reads or writes documents of the `memory` pack by the calls of an engine or a client.

`calls.py` is generated from this file by `python -m tools.generate_sync`; edit this one.

Promise: which value of a key holds is decided by the rules of the pack alone. What is decided here is only the form in
which something is published: as a value, as a proposal that awaits confirmation, or as a retirement. Cost: `add` reads
the timeline of one key twice and publishes once, so it grows with the number of values that the key has had.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec.structs import replace

from stream_car.api.calls_aio import AsyncCalls
from stream_car.codec.publishable import NewDocument
from stream_car.core.documents import Retraction
from stream_car.errors import InvalidRequest
from stream_car.memory.documents import (
    EXPIRY,
    FORGOTTEN,
    FORMS,
    HELD,
    MEMORY,
    PROPOSAL,
    PROTECTED,
    RETIREMENT,
    TEXT_MAX,
    UNFIT,
    MemoryClock,
    digest_of,
    history_of,
    item_of,
    message_texts,
    new_id,
    new_memory,
    read_time,
    scope_of,
    value_in,
)
from stream_car.memory.extraction import Extractor, Fact, QuestionReader
from stream_car.memory.extraction_guard import SECONDS, AsyncExtractionGuard
from stream_car.memory.judging import Judge
from stream_car.memory.keys import SEPARATOR, Owner, comparable, key_in, note_key, owner, parse_key
from stream_car.memory.known import meant, restatement
from stream_car.memory.packing import TokenCounter, estimate_tokens, pack
from stream_car.memory.shapes import (
    AddResults,
    Forgotten,
    HistoryItem,
    Memorized,
    MemoryEvent,
    MemoryItem,
    SearchResults,
)
from stream_car.queries.answers import Evidence, OriginalDocument, PublishedDocument, TimelineMember
from stream_car.subscriptions.events import SnapshotDocument, SnapshotEnd

Validity = Literal["confirmed", "tentative"]
Messages = str | Mapping[str, object] | Sequence[Mapping[str, object]]
When = datetime | str
NAMES_AT_ONCE = 100  # documents in one request
RESTATED_MAX = 500  # characters of a text that may restate another
RESTATED_OF = 5  # texts like it are compared
LONG_AGO = timedelta(days=36525)  # since when a value holds that a text calls past
KEPT = "The published bytes stay in the log until it is erased."


class AsyncMemoryCalls:
    """Remember values, and recall those that hold. See `Memory` for the whole picture.

    Ids of users, agents and runs that a call omits are those of the memory. Memories of different owners never meet.
    """

    def __init__(
        self,
        calls: AsyncCalls,
        owner: Owner,
        extractor: Extractor | None = None,
        judge: Judge | None = None,
        time_limit: float = SECONDS,
    ) -> None:
        """Use an engine or a client. The `extractor` finds keys in texts that are added without one."""
        self.engine = calls
        self.owner = owner
        self.extractor = extractor
        self._guard = AsyncExtractionGuard(extractor, judge, time_limit)
        self._clock = MemoryClock()

    @property
    def failures(self) -> dict[str, int]:
        """How often the extractor or the judge failed, by reason: `raised`, `timed_out`, `nonsense` or `busy`."""
        return {str(failure): count for failure, count in self._guard.failures.items()}

    # Remember

    async def add(
        self,
        messages: Messages,
        *,
        key: str | None = None,
        object: str | None = None,
        valid_from: When | None = None,
        expires: When | None = None,
        review_after: When | None = None,
        source: str = "",
        confidence: float | None = None,
        validity: Validity = "confirmed",
        protected: bool = False,
        replace_protected: bool = False,
        reaffirm: bool = False,
        metadata: Mapping[str, object] | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> AddResults:
        """Remember a sentence, or the messages of a conversation.

        Args:
            messages: a text, or messages with `role` and `content`; those of the user are remembered.
            key: what it is about, as `subject::relation`. Another value of the same key supersedes the former; the
                same value reinforces it. Without a key, the extractor looks for one; if it finds none, the text is kept
                beside the others.
            object: the value, if it is not the whole text.
            valid_from: since when it holds; now by default. An older value never displaces a newer one.
            expires: when it ceases to hold.
            review_after: when results begin to say `review_due`.
            source, confidence, metadata: kept with the memory, and returned.
            validity: `tentative` for a proposal, which supersedes nothing until `confirm`.
            protected: only `replace_protected=True` can replace it.
            replace_protected: replace a protected value; otherwise the new value is tentative beside it.
            reaffirm: let a value return that was superseded before; otherwise it is tentative (an echo).

        Raises:
            InvalidRequest: an argument is not valid (its name).
        """
        whose, until = owner(user_id, agent_id, run_id, self.owner), read_time("expires", expires)
        since, review = read_time("valid_from", valid_from), read_time("review_after", review_after)
        if validity not in ("confirmed", "tentative"):
            raise InvalidRequest("validity", "`validity` must be 'confirmed' or 'tentative'.")
        form = PROTECTED if protected else PROPOSAL if validity == "tentative" else MEMORY
        results: list[Memorized] = []
        for text in message_texts(messages):
            for fact in await self._facts(text, key, object, whose):
                fact = await self._judged(fact, text, whose) if form == MEMORY else fact
                document = new_memory(
                    fact,
                    fact.text or text,
                    whose,
                    since or self._clock.now() - (LONG_AGO if fact.is_past else timedelta()),
                    source=source,
                    confidence=confidence,
                    review_after=review,
                    metadata=metadata,
                )
                results.append(
                    await self._add(
                        document, form, expires=until, reaffirm=reaffirm, replace_protected=replace_protected
                    )
                )
        return {"results": results}

    async def remember(
        self,
        text: str,
        key: str | None = None,
        object: str | None = None,
        *,
        valid_from: When | None = None,
        source: str = "",
        confidence: float | None = None,
        validity: Validity = "confirmed",
    ) -> Memorized:
        """Remember one value, as `add` does, and return what that did."""
        added = await self.add(
            text, key=key, object=object, valid_from=valid_from, source=source, confidence=confidence, validity=validity
        )
        return added["results"][0]

    async def confirm(self, memory_id: str) -> Memorized:
        """Let a tentative value hold from now on. Raises `InvalidRequest` (`memory_id`) if it is not tentative."""
        held = await self._find(memory_id)
        if held is None or held.document.type != PROPOSAL or held.status != "in_force":
            raise InvalidRequest("memory_id", f"No tentative memory has the id {memory_id!r}.")
        return await self._again(held.document)

    async def revert(self, key: str) -> Memorized:
        """Go back to the value that the present one replaced. Raises `InvalidRequest` (`key`) if there is none."""
        current = await self.current(key)
        ended = [member for member in await self._timeline(self._scope(key)) if member.ended and member.type in HELD]
        former = [
            member for member in ended if current is not None and digest_of(member.id) != digest_of(current["id"])
        ]
        held = await self._find(max(former, key=lambda member: (member.time, member.order)).id) if former else None
        if held is None:
            raise InvalidRequest("key", f"The key {key!r} has no earlier value to return to.")
        return await self._again(held.document)

    async def update(self, memory_id: str, data: str) -> dict[str, str]:
        """Replace the text of a memory: the new one supersedes it, and its key stays."""
        scope = scope_of((await self._existing(memory_id)).document)
        whose = Owner(scope["user"], scope["agent"], scope["session"])
        [fact] = await self._facts(data, str(key_in(scope)), None, whose)
        document = new_memory(fact, data, whose, self._clock.now())
        await self._add(document, MEMORY, reaffirm=True, replace_protected=True)
        return {"message": "Memory updated successfully!"}

    # Recall

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        include_superseded: bool = False,
        as_of: When | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> SearchResults:
        """Find memories that hold, best first; with `include_superseded`, each with the values that it replaced.

        If the extractor finds keys in the question, their values come first, and then what the words find.
        `as_of` asks what held at that time.
        """
        whose = owner(user_id, agent_id, run_id, self.owner)
        answer = await self.engine.query(query, k=limit, as_of=as_of, scope=whose.scope, include=["attributes"])
        scores = {
            control.document.id: group.score for group in reversed(answer.groups) for control in group.controlling
        }
        best = max(scores.values(), default=0.0)
        items: dict[tuple[str, str], MemoryItem] = {}
        for evidence in [*await self._in_question(query, whose, as_of), *answer.results]:
            if evidence.type in HELD:
                item = item_of(evidence, score=scores.get(evidence.id, best))
                items.setdefault((comparable(item["key"]), comparable(item["object"])), item)
                if include_superseded:
                    item["superseded"] = await self._former(scope_of(evidence))
        return {"results": list(items.values())[:limit], "complete": answer.certificate.complete}

    async def recall(
        self,
        query: str,
        k: int = 5,
        *,
        include_superseded: bool = False,
        as_of: When | None = None,
        budget_tokens: int | None = None,
        count_tokens: TokenCounter = estimate_tokens,
    ) -> list[MemoryItem]:
        """Find memories as `search` does, and return the best that fit into a budget of tokens.

        What counts is the sentence that gave the value. A sentence that several memories share counts once.

        Raises:
            InvalidRequest: the budget is not positive (`budget_tokens`).
        """
        if budget_tokens is not None and budget_tokens < 1:
            raise InvalidRequest("budget_tokens", "`budget_tokens` must be at least 1.")
        answer = await self.search(query, limit=k, include_superseded=include_superseded, as_of=as_of)
        return pack(answer["results"], budget_tokens, count_tokens)

    async def get(self, memory_id: str) -> MemoryItem | None:
        """Return a memory by id, whether it holds or not; `None` if there is none, or it was forgotten."""
        held = await self._find(memory_id)
        return item_of(held.document, held.status, held.outcome) if held is not None else None

    async def get_all(
        self,
        *,
        include_tentative: bool = False,
        limit: int = 100,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> SearchResults:
        """List memories that hold, by key; with `include_tentative`, also those to be confirmed."""
        whose = owner(user_id, agent_id, run_id, self.owner)
        forms = (*HELD, PROPOSAL) if include_tentative else HELD
        items = [item_of(evidence) for evidence in await self._frontier(whose.scope) if evidence.type in forms]
        latest = {
            (comparable(item["key"]), comparable(item["object"]), item["status"]): item for item in reversed(items)
        }
        results = list(reversed(latest.values()))
        return {"results": results[:limit], "complete": len(results) <= limit}

    async def current(self, key: str) -> MemoryItem | None:
        """Return the value of a key that holds, or `None`."""
        return await self._current(key, None)

    async def as_of(self, key: str, time: When) -> MemoryItem | None:
        """Return the value of a key that held at a time, or `None`."""
        return await self._current(key, time)

    async def tentative(self, key: str) -> list[MemoryItem]:
        """List the values of a key that are to be confirmed, latest first."""
        members = await self._frontier(self._scope(key))
        return [item_of(evidence) for evidence in members if evidence.type == PROPOSAL]

    async def history(self, key: str) -> list[HistoryItem]:
        """List what a key was, oldest first. Instead of a key, the id of a memory names its key.

        What was forgotten is not listed.
        """
        held = await self._find(key) if SEPARATOR not in key else None
        members = await self._timeline(scope_of(held.document) if held is not None else self._scope(key))
        documents = await self._originals(members)
        return history_of(members, {name: published.document for name, published in documents.items()})

    # Forget

    async def retire(self, key: str, reason: str = "") -> Forgotten:
        """End the value of a key: nothing holds there any more, and its history stays."""
        scope = self._scope(key)
        count = sum(evidence.type in HELD for evidence in await self._frontier(scope))
        await self._publish([self._retirement(scope, reason)])
        return {"message": f"The key {key_in(scope)} holds nothing any more. Its history stays.", "count": count}

    async def forget(
        self,
        key: str | None = None,
        *,
        before: When | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> Forgotten:
        """Retract all that a key ever was, or all memories of an owner, so that no call returns them.

        `before` spares what has held only since that time. Values of a key from before it that arrive later do not
        hold either.
        """
        if key is None and (user_id, agent_id, run_id) == (None, None, None):
            reason = "Name a `key`, or a `user_id`, `agent_id` or `run_id`. `reset` forgets everything."
            raise InvalidRequest("key", reason)
        whose = owner(user_id, agent_id, run_id, self.owner)
        if key is None and before is not None:
            raise InvalidRequest("before", "`before` needs a `key`.")
        if key is None:
            return await self._forget_all(owner(user_id, agent_id, run_id).given)
        about = parse_key(key)
        count = await self._forget_key(whose.scope | about.scope, read_time("before", before))
        return {"message": f"The key {about} was forgotten. {KEPT}", "count": count}

    async def delete(self, memory_id: str) -> Forgotten:
        """Forget a memory by id. If it holds, all earlier values of its key are forgotten too, so that none returns."""
        held, count = await self._existing(memory_id), 1
        if held.status == "in_force" and held.document.type in HELD:
            count = await self._forget_key(scope_of(held.document), None)
        else:
            await self._publish([Retraction(id=memory_id)])
        return {"message": f"Memory deleted successfully! {KEPT}", "count": count}

    async def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> Forgotten:
        """Forget all memories of an owner; without arguments, of the owner of this memory."""
        if (user_id, agent_id, run_id) == (None, None, None):
            return await self._forget_all(self.owner.scope)
        return await self.forget(user_id=user_id, agent_id=agent_id, run_id=run_id)

    async def reset(self) -> Forgotten:
        """Forget all memories of all owners."""
        return await self._forget_all({})

    # How

    async def _facts(self, text: str, key: str | None, value: str | None, whose: Owner) -> Sequence[Fact]:
        if not text.strip():
            raise InvalidRequest("messages", "The text is empty.")
        if len(text.encode("utf-8", "surrogatepass")) > TEXT_MAX:
            raise InvalidRequest("messages", f"The text has more than {TEXT_MAX:,} bytes. Add it in parts.")
        if UNFIT.search(text) is not None:
            raise InvalidRequest("messages", "The text contains a NUL character or half a surrogate pair. Remove it.")
        if key is not None:
            return [Fact(parse_key(key), value if value is not None else text)]
        if value is not None:
            raise InvalidRequest("key", "An `object` needs a `key`.")
        facts = [await self._bound(fact, whose) for fact in await self._guard.facts(text)]
        if len(facts) > 1:
            return facts
        [fact] = facts or [Fact(note_key(text), text, is_note=True)]
        return [await self._restated(fact, text, whose)]

    async def _bound(self, fact: Fact, whose: Owner) -> Fact:
        """Return a change with the known key that it means, if its own holds nothing."""
        if not fact.is_change or await self._holds(fact, whose):
            return fact
        if fact.former:
            words = f"{fact.former} {fact.key.subject}"
            known = list((await self.engine.query(words, k=20, scope=whose.scope, include=["attributes"])).results)
        else:
            known = await self._frontier(whose.scope | {"subject": fact.key.subject})
        key = meant(fact, [held for held in known if held.type in HELD])
        return replace(fact, key=key) if key is not None else fact

    async def _restated(self, fact: Fact, text: str, whose: Owner) -> Fact:
        """Return the fact of a text with the key of the one that it restates, if it has none of its own that holds."""
        is_certain = not fact.is_note and "<" not in str(fact.key)  # else a note, or the words around a value
        if is_certain or self.extractor is None or len(text) > RESTATED_MAX or await self._holds(fact, whose):
            return fact
        answer = await self.engine.query(text, k=RESTATED_OF, scope=whose.scope, include=["attributes"])
        held = [evidence for evidence in answer.results if evidence.type in HELD]
        facts = [restated for evidence in held if (restated := restatement(text, evidence)) is not None]
        return facts[0] if len({restated.key for restated in facts}) == 1 else fact

    async def _holds(self, fact: Fact, whose: Owner) -> bool:
        """Return whether the key of a fact has a value."""
        return any(held.type in HELD for held in await self._frontier(whose.scope | fact.key.scope))

    async def _in_question(self, question: str, whose: Owner, as_of: When | None) -> list[Evidence]:
        """Return what is in force of the keys that the extractor finds in a question."""
        reader: object = self.extractor
        keys = reader.keys_in_question(question) if isinstance(reader, QuestionReader) else ()
        time = read_time("as_of", as_of)
        return [held for key in keys for held in await self._frontier(whose.scope | key.scope, time)]

    async def _judged(self, fact: Fact, text: str, whose: Owner) -> Fact:
        """Return a fact as the judge sees it beside what holds for its key; without a judge, as it is."""
        if not self._guard.has_judge or fact.is_note:
            return fact
        held = [item for item in await self._frontier(whose.scope | fact.key.scope) if item.type in HELD]
        if not held or any(item_of(item)["object"] == fact.object for item in held):
            return fact
        verdict = await self._guard.verdict(fact.text or text, [item.text for item in held])
        if verdict is None or verdict.relation == "contradict":
            return fact
        if verdict.relation == "duplicate":
            return replace(fact, object=item_of(held[0])["object"])
        if verdict.relation == "merge":
            return replace(fact, object=verdict.merged_text, text=verdict.merged_text)
        return replace(fact, key=note_key(fact.text or text))

    async def _again(self, original: OriginalDocument) -> Memorized:
        """Let a value that was published before hold from now on."""
        form = PROTECTED if original.type == PROTECTED else MEMORY
        value = str(original.attributes["value"])
        document = replace(original, id=new_id(value), time=self._clock.now(), order=0, revision=1)
        return await self._add(document, form, reaffirm=True, replace_protected=True)

    async def _add(
        self,
        document: NewDocument,
        form: str,
        *,
        expires: datetime | None = None,
        reaffirm: bool = False,
        replace_protected: bool = False,
    ) -> Memorized:
        """Publish a value in the form that its key allows, and return what that did."""
        scope = scope_of(document)
        held = [evidence for evidence in await self._frontier(scope) if evidence.type in HELD]
        is_same = any(value_in(evidence) == value_in(document) for evidence in held)
        others = [evidence for evidence in held if value_in(evidence) != value_in(document)]
        reason = "tentative" if form == PROPOSAL else ""
        if form == MEMORY and any(evidence.type == PROTECTED for evidence in others):
            form, reason = (PROTECTED, "") if replace_protected else (PROPOSAL, "protected")
        elif form == MEMORY and others and not (reaffirm or is_same) and await self._is_echo(document, scope):
            form, reason = PROPOSAL, "echo"
        await self._publish(_with_expiry(replace(document, type=form), expires))
        retired: list[str] = []
        if form in HELD and others:
            names = [document.id, *(evidence.id for evidence in others)]
            states = {item.name: item.status for item in await self.engine.resolve(names)}
            retired = [evidence.id for evidence in others if states[evidence.id] == "superseded"]
            reason = "older" if states[document.id] == "superseded" else ""
        event: MemoryEvent = "SUPERSEDE" if retired else "REINFORCE" if is_same else "ADD"
        return {
            "id": document.id,
            "memory": document.text,
            "event": "TENTATIVE" if form == PROPOSAL else event,
            "key": str(key_in(scope)),
            "object": str(document.attributes["object"]),
            "retired": retired,
            "reason": reason,
        }

    async def _is_echo(self, document: NewDocument, scope: Mapping[str, str]) -> bool:
        """Return whether the key had this value before, and another one since."""
        time = read_time("valid_from", document.time)
        members = await self._timeline(scope)
        return time is not None and any(
            member.ended and member.time < time and digest_of(member.id) == digest_of(document.id) for member in members
        )

    def _retirement(self, scope: Mapping[str, str], reason: str, time: datetime | None = None) -> NewDocument:
        at = time or self._clock.now()
        return NewDocument(id=new_id(""), type=RETIREMENT, time=at, scope=scope, attributes={"reason": reason})

    async def _publish(self, documents: Sequence[NewDocument | Retraction]) -> None:
        await self.engine.publish(documents, on_rejected="raise")

    async def _frontier(self, scope: Mapping[str, str], as_of: datetime | None = None) -> list[Evidence]:
        frontiers = await self.engine.frontier(scope, as_of=as_of, include=["attributes"])
        return [evidence for frontier in frontiers for evidence in frontier.in_force if evidence.type in FORMS]

    async def _timeline(self, scope: Mapping[str, str]) -> list[TimelineMember]:
        return [member for history in await self.engine.history(scope) for member in history.members]

    async def _originals(self, members: Sequence[TimelineMember]) -> dict[str, PublishedDocument]:
        """Return the documents of members of a timeline, by id."""
        documents: dict[str, PublishedDocument] = {}
        for start in range(0, len(members), NAMES_AT_ONCE):
            for lookup in await self.engine.get([member.id for member in members[start : start + NAMES_AT_ONCE]]):
                documents |= {published.document.id: published for published in lookup.documents}
        return documents

    async def _former(self, scope: Mapping[str, str]) -> list[MemoryItem]:
        """Return the values that a key had before, latest first."""
        members = [member for member in await self._timeline(scope) if member.ended and member.type in HELD]
        documents = await self._originals(members)
        former = [documents[member.id] for member in reversed(members) if member.id in documents]
        return [item_of(published.document, published.status, published.outcome) for published in former]

    async def _current(self, key: str, time: When | None) -> MemoryItem | None:
        members = await self._frontier(self._scope(key), read_time("time", time))
        held = [evidence for evidence in members if evidence.type in HELD]
        return item_of(held[0]) if held else None

    def _scope(self, key: str) -> dict[str, str]:
        return self.owner.scope | parse_key(key).scope

    async def _find(self, memory_id: str) -> PublishedDocument | None:
        """Return the document of a memory; `None` if there is none, or it was forgotten."""
        [lookup] = await self.engine.get([memory_id])
        documents = [item for item in lookup.documents if item.document.type in FORMS and self._owns(item.document)]
        return documents[0] if documents and lookup.via == "id" else None

    def _owns(self, document: OriginalDocument) -> bool:
        """Return whether a memory is one of the owner that this memory is bound to."""
        return self.owner.given.items() <= scope_of(document).items()

    async def _existing(self, memory_id: str) -> PublishedDocument:
        held = await self._find(memory_id)
        if held is None:
            raise InvalidRequest("memory_id", f"No memory has the id {memory_id!r}.")
        return held

    async def _forget_key(self, scope: Mapping[str, str], before: datetime | None) -> int:
        """Retract all that a key ever was before a time. Return how many values that were."""
        at = before or self._clock.now()
        members = [member for member in await self._timeline(scope) if member.time <= at]
        values = [member.id for member in members if member.type in FORMS]
        await self._publish([self._retirement(scope, FORGOTTEN, at), *(Retraction(id=name) for name in values)])
        return len(values)

    async def _forget_all(self, scope: Mapping[str, str]) -> Forgotten:
        """Forget every key of which something is in force: each has a value, a proposal or a retirement."""
        keys: dict[tuple[tuple[str, str], ...], None] = {}
        async with self.engine.subscribe(types=[*FORMS, RETIREMENT], scope=scope or None, snapshot=True) as events:
            async for event in events:
                if isinstance(event, SnapshotEnd):
                    break
                if isinstance(event, SnapshotDocument):
                    keys[tuple(scope_of(event).items())] = None
        count = 0
        for pairs in keys:
            count += await self._forget_key(dict(pairs), None)
        return {"message": f"Memories deleted successfully! {KEPT}", "count": count}


def _with_expiry(document: NewDocument, expires: datetime | None) -> list[NewDocument]:
    """Return a memory and what ends it at a time, in a scope that only the two are in."""
    if expires is None:
        return [document]
    since = read_time("valid_from", document.time)
    if since is not None and expires <= since:
        raise InvalidRequest("expires", "`expires` must be later than `valid_from`, which is now by default.")
    own = {"memory_id": document.id}
    expiry = NewDocument(id=f"{document.id}-expiry", type=EXPIRY, time=expires, scope=own)
    return [replace(document, scope={**scope_of(document), **own}), expiry]
