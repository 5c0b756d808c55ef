"""The server of the Model Context Protocol over the official SDK: tools, resources, and who may use which.

Promise: a wrong argument is the result of a tool, marked as an error, with a code and a sentence that an agent can act
on. Needs `stream-car[mcp]`.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

import mcp_types as t
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from stream_car.api.calls_aio import AsyncCalls
from stream_car.api.operations import Role
from stream_car.errors import InvalidRequest, StreamCarError
from stream_car.integrations.mcp.mcp_resources import RULES, TEMPLATES, read_resource
from stream_car.integrations.mcp.mcp_tools import TOOLS, Tool, ToolResult
from stream_car.integrations.mcp.memory_tools import MEMORY_TOOLS
from stream_car.integrations.mcp.token_budget import fitted
from stream_car.version import __version__

INSTRUCTIONS = """\
Stream-CAR knows which documents are in force now and which were superseded. Before you rely on a document, ask for it \
here, or resolve the ids that another search found. Quote only documents with the status in_force. Say so if an answer \
is not complete."""
JSON = "application/json"

Context = ServerRequestContext[object]
CallsOf = Callable[[Context], AsyncCalls]
RolesOf = Callable[[Context], Iterable[Role]]


def make_server(calls_of: CallsOf, roles_of: RolesOf) -> Server[object]:
    """Return a server that makes its calls as `calls_of` says, if the roles of the client allow it."""
    tools = {tool.name: tool for tool in (*TOOLS, *MEMORY_TOOLS)}
    listed = t.ListToolsResult(tools=[_described(tool) for tool in tools.values()])

    def require(context: Context, role: Role) -> None:
        if role not in roles_of(context):
            raise InvalidRequest("role", f"The token does not have the role `{role}`, which this needs.")

    async def list_tools(_: Context, __: t.PaginatedRequestParams | None) -> t.ListToolsResult:
        return listed

    async def call_tool(context: Context, params: t.CallToolRequestParams) -> t.CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(t.INVALID_PARAMS, f"Unknown tool: {params.name:.100}")
        try:
            for role in tool.roles:
                require(context, role)
            arguments, budget = tool.read(params.arguments or {})
            result = fitted(await tool.call(calls_of(context), arguments), budget)
        except StreamCarError as error:
            return t.CallToolResult(content=[t.TextContent(text=_sentence(error))], is_error=True)
        text = msgspec.json.encode(result).decode()
        return t.CallToolResult(content=[t.TextContent(text=text)], structured_content=result)

    async def list_resources(_: Context, __: t.PaginatedRequestParams | None) -> t.ListResourcesResult:
        rules = t.Resource(uri=RULES, name="rules", description="The rule packs in force.", mime_type=JSON)
        return t.ListResourcesResult(resources=[rules])

    async def list_templates(_: Context, __: t.PaginatedRequestParams | None) -> t.ListResourceTemplatesResult:
        templates = [
            t.ResourceTemplate(uri_template=uri, name=name, description=description, mime_type=JSON)
            for uri, (name, description) in TEMPLATES.items()
        ]
        return t.ListResourceTemplatesResult(resource_templates=templates)

    async def read(context: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
        try:
            require(context, "read")
            value = await read_resource(calls_of(context), params.uri)
        except StreamCarError as error:
            raise MCPError(t.INVALID_PARAMS, _sentence(error), {"uri": params.uri}) from None
        text = msgspec.json.encode(value).decode()
        return t.ReadResourceResult(contents=[t.TextResourceContents(uri=params.uri, mime_type=JSON, text=text)])

    return Server(
        "stream-car",
        title="Stream-CAR",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
    )


async def serve_stdio(calls: AsyncCalls, roles: Iterable[Role]) -> None:
    """Serve until standard input ends."""
    server = make_server(lambda _: calls, lambda _: roles)
    async with stdio_server() as (receive, send):
        with suppress(BrokenPipeError):
            await server.run(receive, send, server.create_initialization_options())


def _described(tool: Tool) -> t.Tool:
    is_read_only = tool.roles == ("read",)
    answer = msgspec.convert(_optional(_schema(ToolResult[tool.answer])), dict[str, object])  # type: ignore[name-defined]
    return t.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=_schema(tool.arguments),
        output_schema={**answer, "required": ["answer"]},
        annotations=t.ToolAnnotations(
            read_only_hint=is_read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=is_read_only,
            open_world_hint=False,
        ),
    )


def _schema(kind: object) -> dict[str, object]:
    """Return the JSON schema of a type, whose root is an object."""
    [root], components = msgspec.json.schema_components(
        [kind],
        ref_template="#/$defs/{name}",
        schema_hook=lambda _: {"description": "Any JSON value."},
    )
    schema: dict[str, object] = components.pop(str(root["$ref"]).rpartition("/")[2])
    return {**schema, "$defs": components} if components else schema


def _optional(node: object) -> object:
    """Return a schema without required fields: answers leave out what is empty."""
    if isinstance(node, dict):
        fields = ((key, value) for key, value in node.items() if key != "required" or not isinstance(value, list))
        return {key: _optional(value) for key, value in fields}
    return [_optional(item) for item in node] if isinstance(node, list | tuple) else node


def _sentence(error: StreamCarError) -> str:
    code = getattr(error, "code", "")
    return f"{code}: {error}" if code else str(error)
