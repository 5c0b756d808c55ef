"""`worker`: a process that keeps shards moving, over Kafka and Redis."""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click
from rich.text import Text

from stream_car.api.json import line
from stream_car.cli import options, servers
from stream_car.cli.console import clean, emit, err
from stream_car.cli.topics import require_driver
from stream_car.settings import require_known_variables

if TYPE_CHECKING:
    from stream_car.cluster.connections import Hops
    from stream_car.cluster.shard_runner import Said


@click.command(
    epilog=options.examples(
        "stream-car topics apply --kafka localhost:9092 --single-broker",
        "STREAM_CAR_REDIS=redis://localhost:6379 stream-car worker all --kafka localhost:9092 --single-broker",
        "stream-car worker intake        as many as there are partitions; each takes its share",
        "stream-car worker frontier --rules security",
    )
)
@click.argument("hops", type=click.Choice(["intake", "frontier", "all"]), metavar="intake|frontier|all")
@servers.installation
@options.as_json
def worker(
    hops: str, kafka: str | None, prefix: str, namespace: str, single_broker: bool, rules: Sequence[str], as_json: bool
) -> None:
    """Apply rules to what arrives in Kafka.

    Frontiers are kept in Redis, where $STREAM_CAR_REDIS says. Start as many as you like: the group shares the
    partitions out, and takes over from one that is gone. Ctrl-C or SIGTERM ends it in order, with exit code 0.
    Code 3: a shard halted and a person must decide, see deploy/runbook.md. Code 75: start it again.
    """
    require_known_variables()
    require_driver()
    from stream_car.cluster.worker import run

    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")

    def tell(said: "Said") -> None:
        if as_json:
            emit(line(said))
        else:
            err().print(_words(said), soft_wrap=True)

    plan = servers.plan_of(kafka, prefix, namespace, single_broker, rules)
    code = asyncio.run(run(plan, cast("Hops", hops), tell))
    raise click.exceptions.Exit(code)


def _words(said: "Said") -> Text:
    where = f"{said.hop} {said.shard}: " if said.hop is not None else ""
    why = f" ({said.code})" if said.code else ""
    more = said.reason or ", ".join(said.shards)
    style = {"halted": "bold red", "trouble": "red", "taken": "yellow"}.get(said.event, "dim")
    return Text(clean(f"{where}{said.event}{why}{': ' + more if more else ''}"), style)
