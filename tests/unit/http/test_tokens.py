"""Tokens in a file: what each may do, how a change of the file counts, and what a file with a mistake does."""

import logging
from pathlib import Path

import pytest

from stream_car.errors import InvalidRequest
from stream_car.http.tokens import RECHECK_S, TOKENS_MAX, TokenFile, Tokens, make_token, tokens_of
from stream_car.settings import ServerSettings

READER, READER_LINE = make_token("reader", ["read"])
FEED, FEED_LINE = make_token("feed", ["publish", "read", "publish"])
OPERATOR, OPERATOR_LINE = make_token("operator", ["admin"])
HASH = READER_LINE.split()[2]


class Clock:
    """A clock that stands still until the next look at the file is due."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self) -> None:
        self.now += RECHECK_S


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def roles_of(tokens: Tokens, token: str) -> set[str] | None:
    principal = tokens.find(token)
    return set(principal.roles) if principal is not None else None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "tokens", "# who may do what", "", READER_LINE, f"  {FEED_LINE}  ", OPERATOR_LINE)


def test_each_token_has_the_roles_of_its_line_and_admin_includes_the_others(path: Path) -> None:
    tokens = TokenFile(path)

    assert roles_of(tokens, READER) == {"read"}
    assert roles_of(tokens, FEED) == {"read", "publish"}
    assert roles_of(tokens, OPERATOR) == {"read", "publish", "metrics", "admin"}
    assert [roles_of(tokens, text) for text in ("", "reader", READER[:-1], READER.upper(), HASH)] == [None] * 5


def test_a_line_holds_no_token_and_every_token_is_another() -> None:
    assert READER not in READER_LINE and len(READER) == 64
    assert len({make_token("reader", ["read"])[0] for _ in range(100)}) == 100


def test_a_changed_file_counts_a_second_later(path: Path) -> None:
    clock = Clock()
    tokens = TokenFile(path, clock)
    reader, operator = tokens.find(READER), tokens.find(OPERATOR)
    assert reader is not None and operator is not None
    write(path, OPERATOR_LINE)

    before = roles_of(tokens, READER)
    clock.advance()

    assert before == {"read"}
    assert tokens.find(READER) is None
    assert (tokens.has(reader), tokens.has(operator)) == (False, True)


def test_a_token_that_loses_a_role_is_another_one(path: Path) -> None:
    clock = Clock()
    tokens = TokenFile(path, clock)
    feed = tokens.find(FEED)
    write(path, FEED_LINE.replace("publish,read", "publish"))
    clock.advance()

    assert feed is not None and not tokens.has(feed)
    assert roles_of(tokens, FEED) == {"publish"}


MISTAKES = [
    ("reader read", "line 1"),
    (f"reader {HASH}", "line 1"),
    (f"reader write {HASH}", "line 1"),
    (f"reader read,, {HASH}", "line 1"),
    (f"re/ader read {HASH}", "line 1"),
    (f"reader read {HASH[:-1]}", "line 1"),
    (f"reader read {HASH} more", "line 1"),
    (READER, "line 1"),
    (f"\x00reader read {HASH}", "line 1"),
    (f"reader read {HASH}\nreader read {FEED_LINE.split()[2]}", "line 2"),
    (f"reader read {HASH}\nother read {HASH}", "line 2"),
    ("", "1 to 1000 lines"),
    ("# no token\n", "1 to 1000 lines"),
    ("".join(f"n{n} read sha256:{n:064x}\n" for n in range(TOKENS_MAX + 1)), "1 to 1000 lines"),
    ("#" * (1 << 20) + "\n", "larger than 1 MiB"),
]


@pytest.mark.parametrize(("content", "problem"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_file_with_a_mistake_does_not_start_a_service_and_is_not_shown(
    tmp_path: Path, content: str, problem: str
) -> None:
    path = tmp_path / "tokens"
    path.write_text(content)

    with pytest.raises(InvalidRequest, match=problem) as caught:
        TokenFile(path)

    assert caught.value.code == "settings"
    assert READER not in str(caught.value) and HASH not in str(caught.value)


@pytest.mark.parametrize("mistake", ["missing", "wrong", "empty"])
def test_later_a_mistake_leaves_the_tokens_in_force_until_it_is_mended(
    path: Path, mistake: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "stream_car")
    clock = Clock()
    tokens = TokenFile(path, clock)
    if mistake == "missing":
        path.unlink()
    else:
        path.write_text("reader reed x\n" if mistake == "wrong" else "")
    for _ in range(3):
        clock.advance()
        assert roles_of(tokens, READER) == {"read"}
        assert tokens.is_stale
    write(path, OPERATOR_LINE)
    clock.advance()

    assert tokens.find(READER) is None
    assert not tokens.is_stale
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert "cannot be used" in caplog.messages[0] and "stay in force" in caplog.messages[0]


def test_without_a_file_the_token_of_the_environment_may_do_everything(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STREAM_CAR_TOKEN", raising=False)
    assert tokens_of(ServerSettings()) is None
    monkeypatch.setenv("STREAM_CAR_TOKEN", "a-token-for-tests")
    single, several = tokens_of(ServerSettings()), tokens_of(ServerSettings(token_file=str(path)))

    assert single is not None and several is not None
    assert roles_of(single, "a-token-for-tests") == {"read", "publish", "metrics", "admin"}
    assert roles_of(several, "a-token-for-tests") is None
