"""Names of documents, by the keys that rule packs mark."""

from stream_car.core.documents import Document
from stream_car.rule_packs.loader import load


def test_names_come_in_the_order_of_their_keys() -> None:
    scope = ({"vulnerability": ("CVE-2026-1",), "package": ("tea",)}, {"package": ("pot",)})
    advisory = Document(id="OSV-1", type="advisory", time=0, scope=scope)

    assert list(load(["security"]).names_of([advisory]).items()) == [
        ("package", ("tea", "pot")),
        ("vulnerability", ("CVE-2026-1",)),
    ]
