"""What a document says of a package's version, in whichever format its publisher says it.

Promise: a document that says nothing that can be judged gives `unknown`, never `not_affected`.
"""

from collections.abc import Callable, Mapping

from stream_car.versions.csaf_products import judge_csaf
from stream_car.versions.cve_ranges import judge_cve
from stream_car.versions.osv_ranges import judge_osv
from stream_car.versions.packages import Package
from stream_car.versions.verdicts import Verdict, worst

JUDGES: Mapping[str, Callable[[object, Package], Verdict | None]] = {  # by the attribute that they read
    "affected": judge_osv,
    "cve_affected": judge_cve,
    "csaf_products": judge_csaf,
}
LEFT_OUT = "left_out"  # the attribute that lists what was too large to be kept


def has_versions(attributes: Mapping[str, object]) -> bool:
    """Return whether a document says which versions are affected, or would say so if it were not too large."""
    return not JUDGES.keys().isdisjoint(attributes) or _is_left_out(attributes)


def judge(attributes: Mapping[str, object], package: Package) -> Verdict | None:
    """Return the verdict of a document's attributes on a version; `None` if they do not name the package."""
    judged = [by(attributes[name], package) for name, by in JUDGES.items() if name in attributes]
    verdicts = [verdict for verdict in judged if verdict is not None]
    if _is_left_out(attributes):
        verdicts.append(Verdict(status="unknown", basis="left_out"))
    return worst(verdicts)


def _is_left_out(attributes: Mapping[str, object]) -> bool:
    left_out = attributes.get(LEFT_OUT)
    return isinstance(left_out, list) and not JUDGES.keys().isdisjoint(left_out)
