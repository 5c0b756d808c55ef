"""What tests of questions share: an engine in which relevance alone orders groups, and a crowd in one scope."""

from functools import partial

from stream_car.core.documents import Document
from stream_car.ranking.settings import Settings
from tests.support import either_service
from tests.support.engines import document

engine = partial(either_service.engine, ranking=Settings(superseded_bonus=0.0))


def crowd(count: int) -> list[Document]:
    """Return denials of equal time in one scope, which differ in their order."""
    return [document(f"d{n}", "denial", at=1, topic="moon", order=n) for n in range(count)]
