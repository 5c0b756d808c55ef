"""`mcp`: what is in force, for agents, over the Model Context Protocol on standard input and output."""

import asyncio

import stream_car
from stream_car import settings
from stream_car.api.operations import ROLES
from stream_car.cli.logs import write_logs
from stream_car.cli.options import Session, command
from stream_car.errors import InvalidRequest


@command("data", "rules", "url", "encoder")
def mcp(session: Session) -> None:
    """Give an agent tools to ask what is in force.

    Speaks the Model Context Protocol on standard input and output: the program that runs the agent starts it. With
    --data, no other process can use the directory meanwhile; with --url, several agents share a service, which also
    speaks the protocol itself, at /mcp.

    Examples:
      stream-car mcp --data ./advisories
      stream-car mcp --url http://127.0.0.1:8377
    """
    try:
        from stream_car.integrations.mcp.mcp_calls import EngineCalls
        from stream_car.integrations.mcp.mcp_server import serve_stdio
    except ImportError as error:
        cure = "pip install 'stream-car[mcp]'"
        raise InvalidRequest("extra", f"This command needs more packages ({error}): {cure}") from None

    async def serve_remote(url: str) -> None:
        async with stream_car.connect_async(url, token=settings.token_to_send()) as calls:
            await serve_stdio(calls, ROLES)

    write_logs("warning", as_json=session.as_json)
    if session.url and session.is_remote:
        asyncio.run(serve_remote(session.url))
        return
    with session.engine(create=False, rules=session.rules) as engine:
        asyncio.run(serve_stdio(EngineCalls(engine), ROLES))
