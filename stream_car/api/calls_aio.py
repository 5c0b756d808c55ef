"""The calls of an engine or a client, as a program makes them: each builds one request and returns its answer.

`calls.py` is generated from this file by `python -m tools.generate_sync`; edit this one.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from stream_car.api import arguments, requests as r
from stream_car.api.arguments import DependencyFileArgument, RulesArgument, ScopeArgument, ScopesArgument
from stream_car.api.bookmark import Bookmark
from stream_car.api.subscription_aio import AsyncSubscription
from stream_car.codec import Publishables, check_request
from stream_car.core.documents import Retraction
from stream_car.processing.receipts import Receipt
from stream_car.queries import answers as a
from stream_car.queries.findings import PackageFindings
from stream_car.queries.limits import DEPTH
from stream_car.subscriptions.events import Event, View

REBUILD_PAUSE_S = 0.1  # between two looks at the progress of a rebuild

A = TypeVar("A")
Revisions = Sequence[tuple[str, int]]


class AsyncCalls(ABC):
    """The requests of `api.requests` as methods.

    Times are aware `datetime`s, or text: RFC 3339, or a date, which means midnight UTC. Scopes are mappings, or text:
    `KEY=VALUE`, several joined by commas. Calls that take `min_revisions`, as `(id, revision)`, are answered only when
    these revisions or later ones are visible, else they raise `NotVisible` after `timeout_ms`. Documents of an answer
    have their attributes only with `include=["attributes"]`.
    """

    async def call(self, request: r.Request[A]) -> A:
        """Carry out a request; see `api.service.Service.call` for the errors."""
        return await self._carry_out(check_request(request))

    @abstractmethod
    async def _carry_out(self, request: r.Request[A]) -> A:
        """Carry out a request that was checked."""

    async def publish(
        self,
        documents: Publishables,
        *,
        format: str = "",
        strict: bool = False,
        on_rejected: arguments.OnRejected = "log",
    ) -> a.Published:
        """Store documents durably and apply them; the receipts are in order.

        A document is a `NewDocument`, a `Retraction`, a mapping, or JSON as text or bytes; one may be given alone.
        After a connection broke, a receipt may say `duplicate` for a document that had arrived before. A bad document
        is kept, and its receipt says `rejected`. A value that is no document, or that JSON cannot express, raises
        `InvalidRequest` or `InvalidDocument`; documents before it may be stored.

        Args:
            format: a publisher's own format, such as `osv`. Each document is then the content of one of its files.
            strict: store nothing, and raise `DocumentsRejected`, unless each document is valid and joins a scope.
            on_rejected: about rejected documents, `log` a warning, `raise` `DocumentsRejected`, or `ignore` them.
        """
        options = arguments.publishing(strict=strict, format=format, on_rejected=on_rejected)
        return arguments.report_rejected(await self._publish(documents, options), on_rejected)

    @abstractmethod
    async def _publish(self, documents: Publishables, options: r.PublishOptions) -> a.Published:
        """Publish documents and return their receipts."""

    @abstractmethod
    def _events(self, request: r.Subscribe, bookmark: Bookmark) -> AsyncGenerator[Event, None]:
        """Yield the events of a subscription; `bookmark` says after which."""

    async def retract(self, name: str, revision: int | None = None) -> Receipt:
        """Retract a document: this revision and all before it, or the one that is stored now."""
        return (await self.publish([Retraction(id=name, revision=revision)])).receipts[0]

    async def query(
        self,
        text: str,
        *,
        k: int = 5,
        depth: int = DEPTH,
        as_of: datetime | str | None = None,
        budget: int | None = None,
        scope: ScopeArgument | None = None,
        min_revisions: Revisions = (),
        timeout_ms: int = r.TIMEOUT_MS,
        include: Sequence[r.Part] = (),
    ) -> a.Answer:
        """Find the documents in force for a question, best first, each with the path that leads to it.

        Args:
            k: how many documents to return.
            depth: how many anchors relevance may propose.
            as_of: answer as of this time; documents that still wait for their time do not count.
            budget: stop after reading this many keys, most likely anchors first; the certificate lists the rest.
            scope: only documents in scopes that have these pairs may be anchors.
        """
        return await self.call(
            r.Query(
                text=text,
                k=k,
                depth=depth,
                as_of=arguments.time(as_of),
                budget=budget,
                scope=arguments.optional_scope(scope),
                min_revisions=arguments.revisions(min_revisions),
                timeout_ms=timeout_ms,
                include=arguments.parts(include),
            )
        )

    async def search(
        self, text: str, k: int = 5, *, scope: ScopeArgument | None = None, include: Sequence[r.Part] = ()
    ) -> tuple[a.Evidence, ...]:
        """Find what plain search returns, in force or not: Stage 1 alone. `scope` is as in `query`."""
        return await self.call(
            r.Search(text=text, k=k, scope=arguments.optional_scope(scope), include=arguments.parts(include))
        )

    async def resolve(
        self,
        names: Sequence[str],
        *,
        as_of: datetime | str | None = None,
        min_revisions: Revisions = (),
        timeout_ms: int = r.TIMEOUT_MS,
        include: Sequence[r.Part] = (),
    ) -> tuple[a.Resolution, ...]:
        """Report what controls each of these documents, chunks (`document#chunk`) or records now."""
        return await self.call(
            r.Resolve(
                names=arguments.names(names),
                as_of=arguments.time(as_of),
                min_revisions=arguments.revisions(min_revisions),
                timeout_ms=timeout_ms,
                include=arguments.parts(include),
            )
        )

    async def get(
        self, names: Sequence[str], *, min_revisions: Revisions = (), timeout_ms: int = r.TIMEOUT_MS
    ) -> tuple[a.Lookup, ...]:
        """Return documents as they were published, by id, chunk or record, with their status now.

        Of a record, the editions in force are returned; if there are none, the latest one.
        """
        return await self.call(
            r.GetDocuments(
                names=arguments.names(names),
                min_revisions=arguments.revisions(min_revisions),
                timeout_ms=timeout_ms,
            )
        )

    async def affected(
        self,
        packages: Sequence[str] = (),
        *,
        files: Sequence[DependencyFileArgument] = (),
        product: str = "",
        vex_authors: Sequence[str] = (),
        all: bool = False,
        as_of: datetime | str | None = None,
        min_revisions: Revisions = (),
        timeout_ms: int = r.TIMEOUT_MS,
    ) -> tuple[PackageFindings, ...]:
        """Report for each package and version which records in force say that it is affected, and the fixed versions.

        Args:
            packages: purls, `name@version`, or `name==version` as Python writes it.
            files: paths of lockfiles (`package-lock.json`, `poetry.lock`, `uv.lock`, `Cargo.lock`, `requirements.txt`,
                `go.sum`) and of bills of material (CycloneDX, SPDX), or their texts as `DependencyFile`. Their packages
                follow `packages`.
            product: the purl of what they are part of; by default what a file says. VEX statements about it overrule
                records.
            vex_authors: whose VEX statements count. With it, those about a package alone count as well.
            all: also list records that do not concern the version, and those that hold no more, such as withdrawn ones.
        """
        return await self.call(
            r.GetAffected(
                packages=arguments.names(packages, field="packages"),
                files=arguments.dependency_files(files),
                product=product,
                vex_authors=arguments.names(vex_authors, field="vex_authors"),
                all=all,
                as_of=arguments.time(as_of),
                min_revisions=arguments.revisions(min_revisions),
                timeout_ms=timeout_ms,
            )
        )

    async def check(
        self,
        ids: Sequence[str],
        *,
        question: str | None = None,
        depth: int = 20,
        as_of: datetime | str | None = None,
        min_revisions: Revisions = (),
        timeout_ms: int = r.TIMEOUT_MS,
    ) -> a.Audit:
        """Check whether a retrieved set is safe by Theorem 4, and report what would repair it.

        With a `question`, frontier inclusion is judged for the first `depth` anchors that it finds, otherwise for the
        set itself.
        """
        return await self.call(
            r.Check(
                ids=arguments.names(ids, field="ids"),
                question=question,
                depth=depth,
                as_of=arguments.time(as_of),
                min_revisions=arguments.revisions(min_revisions),
                timeout_ms=timeout_ms,
            )
        )

    async def frontier(
        self,
        scope: ScopeArgument,
        *,
        as_of: datetime | str | None = None,
        types: Sequence[str] = (),
        states: Sequence[str] = (),
        include: Sequence[r.Part] = (),
        after: str = "",
        limit: int = arguments.ALL,
    ) -> tuple[a.Frontier, ...]:
        """List the active members of every scope that has these `key=value` pairs.

        `types` selects documents by type, and `states` by how they stand: `in_force`, `ended` (also if another scope or
        the end of their record did that), or a word of a rule pack, such as `open` and `withdrawn`.

        With a `limit` of members, the last scope may have in `next` what to pass as `after` for the rest. A service is
        asked for 1,000 members at a time, and each time answers as of that moment.
        """
        return await self.call(
            r.GetFrontier(
                scope=arguments.scope(scope),
                as_of=arguments.time(as_of),
                types=arguments.names(types, field="types"),
                states=arguments.names(states, field="states"),
                include=arguments.parts(include),
                after=after,
                limit=limit,
            )
        )

    async def history(
        self,
        scope: ScopeArgument,
        *,
        types: Sequence[str] = (),
        states: Sequence[str] = (),
        after: str = "",
        limit: int = arguments.ALL,
    ) -> tuple[a.History, ...]:
        """List the timeline of every scope that has these pairs: from when to when each member was in force.

        The other arguments are as in `frontier`.
        """
        return await self.call(
            r.GetHistory(
                scope=arguments.scope(scope),
                types=arguments.names(types, field="types"),
                states=arguments.names(states, field="states"),
                after=after,
                limit=limit,
            )
        )

    async def changes(
        self,
        scope: ScopesArgument | None = None,
        *,
        types: Sequence[str] = (),
        states: Sequence[str] = (),
        only: Sequence[str] = (),
        material: bool = False,
        after: str = "",
        since: datetime | str | None = None,
        limit: int = 1000,
    ) -> tuple[a.Change, ...]:
        """List frontier changes, oldest first, from the one after the `position` of a change.

        With several values for a key, those of all of them; with `types` and `states`, only members that have one of
        each, and with `only`, those with one of these outcomes. `material` leaves out editions that change nothing
        material, and `since` what took effect earlier. Shards are listed one after the other.
        """
        return await self.call(
            r.GetChanges(
                scope=arguments.optional_scope(scope),
                types=arguments.names(types, field="types"),
                states=arguments.names(states, field="states"),
                only=arguments.names(only, field="only"),
                material=material,
                after=after,
                since=arguments.time(since, "since"),
                limit=limit,
            )
        )

    async def explain(
        self, name: str, *, as_of: datetime | str | None = None, include: Sequence[r.Part] = ()
    ) -> a.Explanation:
        """Explain why a document is or is not in force, and what controls it."""
        return await self.call(r.Explain(name=name, as_of=arguments.time(as_of), include=arguments.parts(include)))

    async def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[a.Rejected, ...]:
        """List rejected input with its bytes, oldest first, from the one after the `number` of an input."""
        return await self.call(r.GetRejected(after=after, limit=limit))

    async def replay(
        self,
        corrected: Mapping[int, bytes | str] | None = None,
        *,
        offsets: Sequence[int] = (),
        dry_run: bool = False,
    ) -> tuple[a.Replayed, ...]:
        """Send rejected input again, each at most once: as it was sent, or corrected, by offset.

        Without `corrected` and `offsets`, all rejected input is sent. Input that would be rejected again is not, and
        neither is anything in a `dry_run`.
        """
        if not corrected and not offsets:
            offsets = [rejected.offset for rejected in await self.rejected(limit=arguments.ALL)]
        return await self.call(arguments.replay(corrected, offsets, dry_run=dry_run))

    async def quarantine(self) -> tuple[a.Quarantined, ...]:
        """List the records that the engine failed on and set aside."""
        return await self.call(r.GetQuarantine())

    async def quarantined(self, name: str) -> a.Quarantined:
        """Return one record in quarantine with its bytes; `name` is as it is listed."""
        return await self.call(r.GetQuarantined(name=name))

    async def retry_quarantined(self, name: str) -> Receipt:
        """Publish a record in quarantine again, and drop it there. If it fails again, it is set aside again."""
        return await self.call(r.RetryQuarantined(name=name))

    async def drop_quarantined(self, name: str) -> a.Quarantined:
        """Drop a record from quarantine: answers are complete without it. Its bytes stay in the log."""
        return await self.call(r.DropQuarantined(name=name))

    async def pending(self, *, after: str = "", limit: int = arguments.ALL) -> tuple[a.PendingDocument, ...]:
        """List documents that wait for their time, the next one due first, from the one after a `position`."""
        return await self.call(r.GetPending(after=after, limit=limit))

    async def rules(self) -> a.Rules:
        """Return the rules in force."""
        return await self.call(r.GetRules())

    async def status(self) -> a.Status:
        """Return the state of the installation."""
        return await self.call(r.GetStatus())

    async def rebuild(
        self,
        rules: RulesArgument = (),
        *,
        future: r.Future | None = None,
        dry_run: bool = False,
        wait: bool = True,
        progress: Callable[[a.RebuildStatus], None] = lambda status: None,
    ) -> a.RebuildStatus:
        """Build the data under other rules, beside the old ones, and switch to them at once in the end.

        Args:
            rules: names of shipped rule packs or paths of pack files; without any, the present packs are read again.
            future: whether documents ahead of their time wait for it or count at once; unchanged unless given.
            dry_run: change nothing; report whose status would change.
            wait: return when the rebuild has ended. Without it, call `rebuild_status` for the progress; in an engine,
                the rebuild advances only in these calls.
            progress: receives the status now and then.
        """
        status = await self.call(r.Rebuild(rules=self._rules(rules), future=future, dry_run=dry_run))
        while wait and status.is_running:
            progress(status)
            await self._rest()
            status = await self.rebuild_status()
        return status

    async def rebuild_status(self) -> a.RebuildStatus:
        """Return the progress of the rebuild, or how the last one ended."""
        return await self.call(r.GetRebuildStatus())

    def subscribe(
        self,
        *,
        view: View = "document",
        ids: Sequence[str] = (),
        types: Sequence[str] = (),
        rules: Sequence[str] = (),
        scope: ScopesArgument | None = None,
        only: Sequence[str] = (),
        material: bool | None = None,
        since: datetime | str | None = None,
        include: Sequence[r.Part] = (),
        snapshot: bool | None = None,
        after: str | None = None,
        cursor_file: Path | str | None = None,
    ) -> AsyncSubscription:
        """Receive what is in force now, then every change of it: iterate over the subscription.

        After a cursor (`after`, or the one in `cursor_file`), there are only changes. From a service, events arrive
        until the subscription is closed. In an engine, the iteration ends at the last change, because nothing can be
        published meanwhile; the next iteration continues after it.

        Args:
            view: changes of records (one event for each), of documents, or of the frontiers of scopes.
            ids, types, rules, scope: select documents; a document must meet all that is given. A key of `scope` may
                have several values, of which a document needs one.
            only: only changes with these outcomes, such as `fixed` and `withdrawn`.
            material: leave out editions that change nothing material, which is the default for records.
            since: only changes that took effect then or later; without a cursor, also those of the past.
            snapshot: whether to begin with what is in force; by default only without a cursor and `since`.
        """
        request = check_request(
            r.Subscribe(
                view=view,
                ids=arguments.names(ids, field="ids"),
                types=arguments.names(types, field="types"),
                rules=arguments.names(rules, field="rules"),
                scope=arguments.optional_scope(scope),
                only=arguments.names(only, field="only"),
                material=material,
                since=arguments.time(since, "since"),
                include=arguments.parts(include),
                snapshot=snapshot,
                after=after,
            )
        )
        file = arguments.path(cursor_file, "cursor_file") if cursor_file is not None else None
        return AsyncSubscription(self, replace(request, after=None), Bookmark(request.after, file))

    def _rules(self, rules: RulesArgument) -> tuple[str | r.RuleText, ...]:
        return arguments.rules(rules)

    async def _rest(self) -> None:
        await asyncio.sleep(REBUILD_PAUSE_S)
