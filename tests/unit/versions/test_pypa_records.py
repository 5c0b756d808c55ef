"""Records of PyPA's advisory database that enumerate versions: the list and the range of each agree."""

import pytest

from stream_car.versions.osv_ranges import osv_judge
from stream_car.versions.packages import parse_package

JINJA = """2.0 2.0rc1 2.1 2.1.1 2.10 2.2 2.2.1 2.3 2.3.1 2.4 2.4.1 2.5 2.5.1 2.5.2 2.5.3 2.5.4 2.5.5 2.6 2.7 2.7.1 2.7.2
2.7.3 2.8 2.8.1 2.9 2.9.1 2.9.2 2.9.3 2.9.4 2.9.5 2.9.6"""
REQUESTS = """0.0.1 0.10.0 0.10.8 0.11.1 0.12.0 0.12.01 0.12.1 0.13.9 0.14.2 0.2.0 0.9.3 1.0.0 1.2.3 2.0.0 2.10.0 2.11.1
2.12.5 2.16.5 2.17.3 2.18.4 2.19.0 2.19.1 2.2.0 2.9.2"""
RECORDS = [
    ("PYSEC-2019-217", "jinja2", "2.10.1", JINJA),
    ("PYSEC-2021-66", "jinja2", "2.11.3", f"{JINJA} 2.10.1 2.10.2 2.10.3 2.11.0 2.11.1 2.11.2"),
    ("PYSEC-2018-28", "requests", "2.20.0", REQUESTS),
]


@pytest.mark.parametrize(("record", "name", "fixed", "versions"), RECORDS)
@pytest.mark.parametrize("has_list", [True, False])
def test_every_enumerated_version_is_affected_and_the_fixed_one_is_not(
    record: str, name: str, fixed: str, versions: str, has_list: bool
) -> None:
    commits = {"type": "GIT", "events": [{"introduced": "0"}, {"fixed": "c45d7c49ea75133e52ab22a8e9e13173938e36ff"}]}
    ranges = [commits, {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": fixed}]}]
    listed = versions.split() if has_list else []
    affected = [{"package": {"name": name, "ecosystem": "PyPI"}, "ranges": ranges, "versions": listed}]

    for version in versions.split():
        verdict = osv_judge(affected)(parse_package(f"pkg:pypi/{name}@{version}"))
        assert verdict is not None
        assert (verdict.status, verdict.fixed_in) == ("affected", (fixed,)), (record, version)
    after = osv_judge(affected)(parse_package(f"pkg:pypi/{name}@{fixed}"))
    assert after is not None
    assert after.status == "not_affected"
