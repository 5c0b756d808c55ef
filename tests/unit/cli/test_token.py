"""The command that makes tokens."""

from pathlib import Path

from stream_car.http.tokens import TokenFile
from tests.support.command_line import invoke, parse


def test_a_token_is_printed_once_and_its_hash_is_added_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("# who may do what")
    path.chmod(0o640)
    reader = invoke("token", "reader", "--role", "read", "--file", str(path)).stdout.strip()
    [feed] = parse(invoke("token", "feed", "--role", "read", "--role", "publish", "--file", str(path), "--json"))
    tokens = TokenFile(path)

    found_reader, found_feed = tokens.find(reader), tokens.find(str(feed["token"]))
    assert found_reader is not None and (found_reader.name, *found_reader.roles) == ("reader", "read")
    assert found_feed is not None and found_feed.roles == frozenset({"read", "publish"})
    assert reader not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640


def test_without_a_file_the_line_is_printed_beside_the_token(tmp_path: Path) -> None:
    result = invoke("token", "reader", "--role", "read")
    (tmp_path / "tokens").write_text(result.stderr.partition(": ")[2])

    assert TokenFile(tmp_path / "tokens").find(result.stdout.strip()) is not None


def test_a_new_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    assert invoke("token", "reader", "--role", "read", "--file", str(tmp_path / "tokens")).exit_code == 0
    assert (tmp_path / "tokens").stat().st_mode & 0o777 == 0o600


def test_a_name_that_is_taken_or_cannot_be_used_is_rejected_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    invoke("token", "reader", "--role", "read", "--file", str(path))
    before = path.read_text()
    taken = invoke("token", "reader", "--role", "admin", "--file", str(path))
    wrong = invoke("token", "two words", "--role", "read", "--file", str(path))
    missing = invoke("token", "other", "--role", "read", "--file", str(tmp_path / "none" / "tokens"))

    assert [result.exit_code for result in (taken, wrong, missing)] == [2, 2, 2]
    assert "has a token of this name" in taken.stderr and "up to 64 letters" in wrong.stderr
    assert "cannot be written: No such file" in missing.stderr
    assert path.read_text() == before
