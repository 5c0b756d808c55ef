"""The command line in this process, for tests."""

import asyncio

import msgspec
from click.testing import CliRunner, Result

from stream_car.cli import main
from tests.support.http_service import Running


def invoke(*arguments: str, text: str | None = None, **environment: str | None) -> Result:
    """Run `stream-car` with these arguments, standard input and environment variables."""
    return CliRunner(env=environment).invoke(main, arguments, input=text)


async def run(*arguments: str, text: str | None = None, **environment: str | None) -> Result:
    """Do the same in a thread, beside a service in this loop."""
    return await asyncio.to_thread(invoke, *arguments, text=text, **environment)


def parse(result: Result) -> list[dict[str, object]]:
    """Return the lines of JSON that a successful command printed."""
    assert result.exit_code == 0, result.output
    return [msgspec.json.decode(line, type=dict[str, object]) for line in result.stdout.splitlines()]


async def until_subscribed(running: Running) -> None:
    """Return when a service has a subscriber."""
    async with asyncio.timeout(20):
        while not (await running.get("/v1/status")).json()["subscriptions"]:
            await asyncio.sleep(0.01)
