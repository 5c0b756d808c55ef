"""`python -m benchmarks.paper`: measures answers on benchmark sets on this machine."""

import click

from benchmarks.paper import evaluate, run
from stream_car.cli.main import SentenceErrors


@click.group(cls=SentenceErrors)
def main() -> None:
    """Measure answers on benchmark sets on this machine."""


main.add_command(run.command)
main.add_command(evaluate.command)

if __name__ == "__main__":
    main(prog_name="python -m benchmarks.paper")
