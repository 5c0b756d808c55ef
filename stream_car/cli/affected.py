"""`affected`: which versions of packages are affected by a record in force."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from msgspec.structs import replace

from stream_car.api import arguments
from stream_car.api.json import to_json
from stream_car.cli import hints, options, render_affected
from stream_car.cli.options import EXISTING_FILE, FILE, Session, command, require
from stream_car.reports.openvex import openvex
from stream_car.reports.sarif import sarif

AUTHOR = "unknown"  # of an OpenVEX document whose author was not named


@command("data", "rules", "url")
@click.argument("packages", nargs=-1, metavar="[PACKAGE...]")
@click.option(
    "--lockfile",
    "lockfiles",
    type=EXISTING_FILE,
    multiple=True,
    help="The packages of package-lock.json, poetry.lock, uv.lock, Cargo.lock, requirements.txt or go.sum; repeatable.",
)
@click.option(
    "--sbom",
    "sboms",
    type=EXISTING_FILE,
    multiple=True,
    help="The packages of a bill of materials: CycloneDX (JSON, XML) or SPDX (JSON); repeatable.",
)
@click.option(
    "--product",
    metavar="PURL",
    default="",
    help="What the packages are part of: VEX statements about it count.  [default: what a file says]",
)
@click.option(
    "--vex-author",
    "vex_authors",
    multiple=True,
    metavar="NAME",
    help="Count VEX statements of this author, also those about a package alone, and of no other; repeatable.",
)
@click.option("--all", "lists_all", is_flag=True, help="List also what does not concern the version, or holds no more.")
@click.option("--strict", is_flag=True, help="Exit with 1 also if a package is unknown, or no record names it.")
@click.option("--sarif", "sarif_file", type=FILE, help="Also write the findings to this file, as SARIF 2.1.0.")
@click.option("--openvex", "openvex_file", type=FILE, help="Also write the findings to this file, as OpenVEX.")
@click.option("--author", metavar="NAME", default=AUTHOR, help="The author of the OpenVEX document.")
@options.as_of
def affected(
    session: Session,
    packages: Sequence[str],
    lockfiles: Sequence[Path],
    sboms: Sequence[Path],
    product: str,
    vex_authors: Sequence[str],
    lists_all: bool,
    strict: bool,
    sarif_file: Path | None,
    openvex_file: Path | None,
    author: str,
    as_of: datetime | None,
) -> None:
    """Tell whether packages are affected by a vulnerability.

    PACKAGE is `name@version`, a purl, or `name==version` as Python writes it. For each record in force, the range that
    decides is shown, and the versions in which it is fixed, the nearest first. Exploited vulnerabilities come first.
    A package that no record names is not called clean: its name may be wrong.

    Exit code 0 if no package is affected, 1 if one is, 2 if the command failed, such as for a file that cannot be read.
    A package that is unknown, or that no record names, counts as 0, and with --strict as 1.

    Examples:
      stream-car affected lodash@4.17.4
      stream-car affected pkg:pypi/jinja2@2.10 requests==2.19.0 --all
      stream-car affected --lockfile package-lock.json --sarif findings.sarif
      stream-car affected --sbom bom.json --product pkg:oci/shop --json
      stream-car affected lodash@4.17.4 --as-of 2019-07-01
    """
    if not packages and not lockfiles and not sboms:
        raise click.UsageError("Name a package, or give --lockfile or --sbom.")
    read = arguments.dependency_files((*lockfiles, *sboms))
    files = [replace(file, name=str(path)) for file, path in zip(read, (*lockfiles, *sboms), strict=True)]
    with session.open() as calls:
        answer = calls.affected(
            packages, files=files, product=product, vex_authors=vex_authors, all=lists_all, as_of=as_of
        )
        if not any(each.findings for each in answer):
            hints.note_unknown_types(calls)
    options.write_file(sarif_file, lambda: to_json(sarif(answer, files)), "sarif")
    options.write_file(
        openvex_file,
        lambda: to_json(openvex(answer, author=author, time=datetime.now(UTC), product=product)),
        "openvex",
    )
    if session.as_json:
        session.report_all(answer, lambda answer: "")
    else:
        session.report(answer, lambda answer: render_affected.packages(answer, lists_all=lists_all, arguments=packages))
    failing = ("affected", "unknown", "no_record") if strict else ("affected",)
    require(not any(each.status in failing for each in answer))
