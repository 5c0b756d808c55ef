"""`worker`: a process that keeps shards moving, over Kafka and Redis."""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click
from rich.text import Text

from stream_car.adapters.kafka.specification import PREFIX
from stream_car.api.plain import line
from stream_car.cli import options
from stream_car.cli.console import clean, emit, err
from stream_car.cli.topics import require_driver
from stream_car.runtime.settings import RULES_VARIABLE, kafka_server, redis_server, require_known_variables

if TYPE_CHECKING:
    from stream_car.runtime.worker.hosted import Said
    from stream_car.runtime.worker.wiring import Hops


@click.command(
    epilog=options.examples(
        "stream-car topics apply --kafka localhost:9092 --single-broker",
        "STREAM_CAR_REDIS=redis://localhost:6379 stream-car worker all --kafka localhost:9092 --single-broker",
        "stream-car worker intake        as many as there are partitions; each takes its share",
        "stream-car worker frontier --rules security",
    )
)
@click.argument("hops", type=click.Choice(["intake", "frontier", "all"]), metavar="intake|frontier|all")
@click.option(
    "--kafka",
    metavar="HOST:PORT",
    help="Where Kafka is; several apart by commas.  [default: $STREAM_CAR_KAFKA; user, password and "
    "certificates come from $STREAM_CAR_KAFKA_USER and its like]",
)
@click.option("--prefix", default=PREFIX, show_default=True, help="What the names of the topics begin with.")
@click.option(
    "--namespace",
    default="",
    metavar="NAME",
    help="Names the state in Redis and the group of workers: another one builds other rules beside these.  "
    "[default: the prefix]",
)
@click.option("--single-broker", is_flag=True, help="Accept topics with one copy: for trying out.")
@click.option(
    "--rules",
    multiple=True,
    envvar=RULES_VARIABLE,
    metavar="NAME|FILE",
    help="A shipped rule pack by name, or your own TOML file; may be repeated; the same for all workers.  "
    f"[default: ${RULES_VARIABLE}, or all shipped packs]",
)
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
    from stream_car import domains
    from stream_car.runtime.worker.wiring import Plan
    from stream_car.runtime.worker.worker import run

    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")

    def tell(said: "Said") -> None:
        if as_json:
            emit(line(said))
        else:
            err().print(_words(said), soft_wrap=True)

    plan = Plan(
        kafka=kafka_server(kafka),
        redis=redis_server(),
        ruleset=domains.load(rules),
        prefix=prefix,
        namespace=namespace,
        single_broker=single_broker,
    )
    code = asyncio.run(run(plan, cast("Hops", hops), tell))
    raise click.exceptions.Exit(code)


def _words(said: "Said") -> Text:
    where = f"{said.hop} {said.shard}: " if said.hop is not None else ""
    why = f" ({said.code})" if said.code else ""
    more = said.reason or ", ".join(said.shards)
    style = {"halted": "bold red", "trouble": "red", "taken": "yellow"}.get(said.event, "dim")
    return Text(clean(f"{where}{said.event}{why}{': ' + more if more else ''}"), style)
