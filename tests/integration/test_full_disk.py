"""A disk that fills up between the log and what is derived from it."""

from pathlib import Path

import pytest

from stream_car import StreamCarError
from tests.support.engines import document, engine


def test_documents_that_only_the_log_could_keep_are_recognized_when_there_is_space_again(tmp_path: Path) -> None:
    batch = [document(f"denial-{number}", "denial", at=2, topic=f"t{number}") for number in range(900)]
    with engine(tmp_path) as running:
        running.publish([document("claim", at=1, topic="t0")])
        state = running.directory.projection.file.connection
        state.execute("PRAGMA max_page_count = 1")  # SQLite takes the number that there are now

        with pytest.raises(StreamCarError, match="publish again whatever has no receipt"):
            running.publish(batch)

        state.execute("PRAGMA max_page_count = 1000000")
        assert running.publish(batch).outcomes == {"duplicate": len(batch)}
        assert [resolution.status for resolution in running.resolve(["claim"])] == ["superseded"]
