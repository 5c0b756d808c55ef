"""Calls of tools at `/mcp`, without the SDK's client: what is sent and received is plain."""

from collections.abc import Mapping

import httpx
import msgspec

HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


class Content(msgspec.Struct):
    """A part of a result."""

    text: str


class ToolResult(msgspec.Struct):
    """What a tool has answered."""

    content: list[Content]
    isError: bool = False

    @property
    def text(self) -> str:
        """The text of its only part."""
        [content] = self.content
        return content.text


class _Response(msgspec.Struct):
    result: ToolResult


async def call_tool(http: httpx.AsyncClient, token: str, tool: str, arguments: Mapping[str, object]) -> ToolResult:
    """Call a tool as the owner of a token."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    response = await http.post("/mcp", json=body, headers={**HEADERS, "Authorization": f"Bearer {token}"})
    assert response.status_code == 200, response.text
    return msgspec.json.decode(response.content, type=_Response).result
