"""The calls of a service or an engine, as the tools make them."""

from collections.abc import AsyncGenerator
from typing import TypeVar

from msgspec.structs import replace
from starlette.types import Scope

from stream_car.api import requests as r
from stream_car.api.bookmark import Bookmark
from stream_car.api.calls_aio import AsyncCalls
from stream_car.api.service import Service
from stream_car.codec import Publishables, encode_document, iterate_documents
from stream_car.http.audit_log import call_audited
from stream_car.http.clients import client_of
from stream_car.local.engine import Engine
from stream_car.queries import answers as a
from stream_car.subscriptions.events import Event

A = TypeVar("A")


class ServiceCalls(AsyncCalls):
    """Calls on behalf of one request over HTTP. What it publishes is in the audit log under its token."""

    def __init__(self, service: Service, scope: Scope) -> None:
        self._service = service
        self._scope = scope

    async def _carry_out(self, request: r.Request[A]) -> A:
        return await self._service.call(request)

    async def _publish(self, documents: Publishables, options: r.PublishOptions) -> a.Published:
        encoded = tuple(map(encode_document, iterate_documents(documents)))
        request = r.Publish(
            documents=encoded, client=client_of(self._scope), strict=options.strict, format=options.format
        )
        return await call_audited(self._service, request, operation="publish", scope=self._scope)

    async def _events(self, request: r.Subscribe, bookmark: Bookmark) -> AsyncGenerator[Event, None]:
        batches = await self._service.subscribe(replace(request, after=bookmark.cursor), client_of(self._scope))
        async for events in batches:
            for event in events:
                yield event


class EngineCalls(AsyncCalls):
    """Calls of an engine in this process. They never suspend."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def _carry_out(self, request: r.Request[A]) -> A:
        return self._engine.call(request)

    async def _publish(self, documents: Publishables, options: r.PublishOptions) -> a.Published:
        return self._engine._publish(documents, options)

    async def _events(self, request: r.Subscribe, bookmark: Bookmark) -> AsyncGenerator[Event, None]:
        for event in self._engine._events(request, bookmark):
            yield event
