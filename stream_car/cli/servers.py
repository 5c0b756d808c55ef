"""What commands that work on Kafka and Redis have in common: where the servers are, whose state, which rules."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from stream_car.adapters.kafka.topic_layout import PREFIX
from stream_car.settings import RULES_VARIABLE, kafka_server, redis_server

if TYPE_CHECKING:
    from stream_car.cluster.connections import Plan

P = ParamSpec("P")
R = TypeVar("R")


def kafka(command: Callable[P, R]) -> Callable[P, R]:
    """`--kafka HOST:PORT`"""
    return click.option(
        "--kafka",
        metavar="HOST:PORT",
        help="Where Kafka is; several apart by commas.  [default: $STREAM_CAR_KAFKA; user, password and "
        "certificates come from $STREAM_CAR_KAFKA_USER and its like]",
    )(command)


def installation(command: Callable[P, R]) -> Callable[P, R]:
    """The options that workers and query workers of one installation must agree on; see `plan_of`."""
    for option in (
        click.option(
            "--rules",
            multiple=True,
            envvar=RULES_VARIABLE,
            metavar="NAME|FILE",
            help="A shipped rule pack by name, or your own TOML file; may be repeated; the same for all workers and "
            f"query workers.  [default: ${RULES_VARIABLE}, or all shipped packs]",
        ),
        click.option("--single-broker", is_flag=True, help="Accept topics with one copy: for trying out."),
        click.option(
            "--namespace",
            default="",
            metavar="NAME",
            help="Names the state in Redis and the group of workers: another one builds other rules beside these.  "
            "[default: the prefix]",
        ),
        click.option("--prefix", default=PREFIX, show_default=True, help="What the names of the topics begin with."),
    ):
        command = option(command)
    return kafka(command)


def plan_of(address: str | None, prefix: str, namespace: str, single_broker: bool, rules: Sequence[str]) -> "Plan":
    """Which servers, topics and rules these options mean."""
    from stream_car import rule_packs
    from stream_car.cluster.connections import Plan

    return Plan(
        kafka=kafka_server(address),
        redis=redis_server(),
        ruleset=rule_packs.load(rules),
        prefix=prefix,
        namespace=namespace,
        single_broker=single_broker,
    )
