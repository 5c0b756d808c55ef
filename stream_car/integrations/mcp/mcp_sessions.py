"""The SDK's manager of requests over HTTP, over one service."""

import asyncio

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import ASGIApp

from stream_car.api.service import Service
from stream_car.integrations.mcp.mcp_calls import ServiceCalls
from stream_car.integrations.mcp.mcp_server import Context, make_server


async def open_sessions(service: Service, is_open: "asyncio.Future[ASGIApp]") -> None:
    """Give the application to `is_open`, and keep it open until this task is cancelled."""
    server = make_server(
        lambda context: ServiceCalls(service, _request(context).scope),
        lambda context: _request(context).scope["roles"],
    )
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    async with manager.run():
        is_open.set_result(manager.handle_request)
        await asyncio.Event().wait()


def _request(context: Context) -> Request:
    assert isinstance(context.request, Request)
    return context.request
