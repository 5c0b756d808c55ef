"""What a document says of a package's version, in whichever format its publisher says it.

Promise: a document that says nothing that can be judged gives `unknown`, never `not_affected`.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from stream_car.versions.csaf_products import csaf_judge
from stream_car.versions.cve_ranges import cve_judge
from stream_car.versions.osv_ranges import osv_judge
from stream_car.versions.packages import Package
from stream_car.versions.verdicts import Judge, Verdict, worst

JUDGES: Mapping[str, Callable[[object], Judge]] = {  # by the attribute that they read
    "affected": osv_judge,
    "cve_affected": cve_judge,
    "csaf_products": csaf_judge,
}
LEFT_OUT = "left_out"  # the attribute that lists what was too large to be kept


class VersionStatements(Struct, frozen=True):
    """What a document says of versions, decoded."""

    judges: tuple[Judge, ...]
    is_left_out: bool  # what it says was too large to be kept

    @property
    def has_versions(self) -> bool:
        """Whether the document says which versions are affected, or would say so if it were not too large."""
        return bool(self.judges) or self.is_left_out

    def verdict(self, package: Package) -> Verdict | None:
        """Return the verdict on a version; `None` if the document does not name the package."""
        verdicts = [verdict for judge in self.judges if (verdict := judge(package)) is not None]
        if self.is_left_out:
            verdicts.append(Verdict(status="unknown", basis="left_out"))
        return worst(verdicts)


def read_statements(attributes: Mapping[str, object]) -> VersionStatements:
    """Decode what the attributes of a document say of versions."""
    left_out = attributes.get(LEFT_OUT)
    return VersionStatements(
        judges=tuple(read(attributes[name]) for name, read in JUDGES.items() if name in attributes),
        is_left_out=isinstance(left_out, list) and not JUDGES.keys().isdisjoint(left_out),
    )
