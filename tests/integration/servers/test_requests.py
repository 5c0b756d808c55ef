"""Every request of the API has the same answer from a query worker over Kafka and Redis as from the library.

The requests are those of the contract of the service, see `support.contract`. They are sent to the service itself, and
over HTTP by a client.
"""

import pytest

from stream_car.api import requests as r
from stream_car.cluster.service import UNSUPPORTED
from tests.support import engines
from tests.support.back_ends import on_servers
from tests.support.background import in_background
from tests.support.cluster import settled_calls
from tests.support.contract import RULESET, BlockingCalls, Conversation, converse, request_types
from tests.support.either_service import served
from tests.support.http_service import TOKEN
from tests.support.servers import in_one_worker

pytestmark = in_one_worker(__name__)

FAILURE = "Unsupported"
# Their answers report what an unsupported request has done.
FOLLOWING: dict[type[r.Request[object]], str] = {r.GetRebuildStatus: "before any"}


@pytest.fixture(scope="module")
def library() -> Conversation:
    with engines.engine(ruleset=RULESET) as engine:
        return converse(engine)


@pytest.fixture(scope="module", params=["in process", "over HTTP"])
def cluster(kafka: str, redis: str, request: pytest.FixtureRequest) -> Conversation:
    if request.param == "in process":
        with in_background(settled_calls(kafka, redis, RULESET)) as calls:
            return converse(BlockingCalls(calls))
    with on_servers(kafka, redis), served(ruleset=RULESET, token=TOKEN) as client:
        return converse(client)


def type_of(name: str) -> str:
    """Return the type of a request in a conversation."""
    return name.partition(":")[0]


def test_every_type_of_request_is_sent(cluster: Conversation) -> None:
    assert cluster.types == request_types()


def test_every_request_has_the_answer_of_the_library(library: Conversation, cluster: Conversation) -> None:
    different = {kind.__name__ for kind in (*UNSUPPORTED, *FOLLOWING)}
    names = [name for name in library.outcomes if type_of(name) not in different]

    assert [name for name in cluster.outcomes if type_of(name) not in different] == names
    for name in names:
        assert cluster.outcomes[name] == library.outcomes[name], name


def test_a_request_that_the_cluster_cannot_carry_out_is_unsupported(cluster: Conversation) -> None:
    unsupported = {kind.__name__ for kind in UNSUPPORTED}
    outcomes = {name: outcome for name, outcome in cluster.outcomes.items() if type_of(name) in unsupported}

    assert {type_of(name) for name in outcomes} == unsupported
    assert set(outcomes.values()) == {FAILURE}
    assert FAILURE not in {cluster.outcomes[name] for name in cluster.outcomes.keys() - outcomes.keys()}


def test_an_unsupported_request_changes_nothing(library: Conversation, cluster: Conversation) -> None:
    for kind, before in FOLLOWING.items():
        unchanged = library.outcomes[f"{kind.__name__}: {before}"]
        assert {cluster.outcomes[name] for name in cluster.outcomes if type_of(name) == kind.__name__} == {unchanged}
