"""`affected`: which versions of packages are affected by a record in force."""

from collections.abc import Sequence
from datetime import datetime

import click

from stream_car.cli import hints, options, render_affected
from stream_car.cli.options import Session, command, require


@command("data", "rules", "url")
@click.argument("packages", nargs=-1, required=True, metavar="PACKAGE...")
@click.option("--product", metavar="PURL", default="", help="What they are part of: VEX statements about it count.")
@click.option(
    "--vex-author",
    "vex_authors",
    multiple=True,
    metavar="NAME",
    help="Count VEX statements of this author, also those about a package alone, and of no other; repeatable.",
)
@click.option("--all", "lists_all", is_flag=True, help="List also what does not concern the version, or holds no more.")
@click.option("--strict", is_flag=True, help="Exit with 1 also if it is unknown whether a package is affected.")
@options.as_of
def affected(
    session: Session,
    packages: Sequence[str],
    product: str,
    vex_authors: Sequence[str],
    lists_all: bool,
    strict: bool,
    as_of: datetime | None,
) -> None:
    """Tell whether packages are affected by a vulnerability.

    PACKAGE is `name@version`, a purl, or `name==version` as Python writes it. For each record in force, the range that
    decides is shown, and the versions in which it is fixed, the nearest first. Exploited vulnerabilities come first.
    Exit code 0 if nothing is affected, 1 if something is, 2 if that could not be found out.

    Examples:
      stream-car affected lodash@4.17.4
      stream-car affected pkg:pypi/jinja2@2.10 requests==2.19.0 --all
      stream-car affected pkg:npm/lodash@4.17.4 --product pkg:oci/shop --json
      stream-car affected lodash@4.17.4 --as-of 2019-07-01
    """
    with session.open() as calls:
        answer = calls.affected(packages, product=product, vex_authors=vex_authors, all=lists_all, as_of=as_of)
        if not any(each.findings for each in answer):
            hints.note_unknown_types(calls)
    if session.as_json:
        session.report_all(answer, lambda answer: "")
    else:
        session.report(answer, lambda answer: render_affected.packages(answer, lists_all=lists_all))
    failing = ("affected", "unknown") if strict else ("affected",)
    require(not any(each.status in failing for each in answer))
