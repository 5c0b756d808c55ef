"""`/mcp` of the service: the Model Context Protocol over streamable HTTP, behind the service's own tokens and roles.

Promise: a request is answered on its own, so that any process behind a balancer can answer the next one. Cost: the SDK
is imported by the first request.
"""

import asyncio
from importlib import import_module

from starlette.types import ASGIApp, Receive, Scope, Send

from stream_car.api.service import Service
from stream_car.http.problems import HttpError, problem_response

CURE = "Install it where the service runs: pip install 'stream-car[mcp]'."


class McpEndpoint:
    """An ASGI application, which begins with the first request and ends with the event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._app: ASGIApp | None = None
        self._lock = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Without the SDK, say how to install it."""
        scope["operation"] = "mcp"
        try:
            app = await self._begun()
        except ImportError as error:
            problem = HttpError(501, "unsupported", f"The service does not speak MCP ({error}). {CURE}")
            await problem_response(problem)(scope, receive, send)
            return
        await app(scope, receive, send)

    async def _begun(self) -> ASGIApp:
        async with self._lock:
            if self._app is None:
                await asyncio.to_thread(import_module, "stream_car.integrations.mcp.mcp_server")
                from stream_car.integrations.mcp.mcp_sessions import open_sessions

                is_open = asyncio.get_running_loop().create_future()
                self._running = asyncio.create_task(open_sessions(self._service, is_open))
                await asyncio.wait([is_open, self._running], return_when=asyncio.FIRST_COMPLETED)
                if self._running.done():
                    await self._running  # its exception
                self._app = await is_open
        return self._app
