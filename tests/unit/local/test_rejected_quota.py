"""What is kept of a client's rejected input has limits, and what is not kept is counted."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import stream_car
from stream_car.api.requests import Publish
from stream_car.cli import main
from stream_car.codec import encode
from stream_car.local import rejected_quota
from stream_car.local.concurrent_service import ConcurrentService
from stream_car.local.engine import Engine
from stream_car.local.rejected_quota import DAY_S, FREE, RECORD_BYTES, UNSAVED_MAX, RejectedQuota
from stream_car.processing.receipts import Receipt
from tests.support.data_directories import wipe_state
from tests.support.engines import document, engine

GOOD = encode(document("claim-1", topic="tea"))
CONFLICT = encode(document("claim-1", topic="coffee"))
UNKNOWN = encode(document("claim-2", "rumour", topic="tea"))


async def publish(car: Engine, *documents: bytes, client: str | None = "10.0.0.1") -> list[Receipt]:
    async with ConcurrentService(car.directory) as service:
        receipts: list[Receipt] = []
        for part in documents:
            published = await service.call(Publish(documents=(part,), client=client))
            receipts += published.receipts
        return receipts


@pytest.fixture
def nothing_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejected_quota, "FREE", 0)
    monkeypatch.setattr(rejected_quota, "FACTOR", 0)


@pytest.mark.usefixtures("nothing_is_free")
async def test_beyond_the_quota_rejected_input_is_counted_and_not_kept(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        receipts = await publish(car, b"first", GOOD, b"[]", CONFLICT, UNKNOWN, GOOD)

        assert [(receipt.outcome, receipt.code, receipt.kept) for receipt in receipts] == [
            ("rejected", "syntax", True),
            ("accepted", None, True),
            ("rejected", "not_object", False),
            ("rejected", "conflict", False),
            ("rejected", "type_unknown", False),
            ("duplicate", None, True),
        ]
        assert [receipt.offset for receipt in receipts] == list(range(6))
        assert [rejected.value for rejected in car.rejected()] == [b"first"]
        assert car.status().outcomes == {"accepted": 1, "control": 3, "duplicate": 1, "not_kept": 3, "rejected": 1}


@pytest.mark.usefixtures("nothing_is_free")
async def test_the_list_of_rejected_input_says_how_much_was_not_kept(tmp_path: Path) -> None:
    with stream_car.open(tmp_path) as car:
        await publish(car, b"first", b"[]", b"{")
    for options in ([], ["--json"]):
        listed = CliRunner().invoke(main, ["rejected", "list", "--data", str(tmp_path), *options])

        assert (listed.exit_code, "2 more rejected inputs were not kept (`kept: false`)." in listed.stderr) == (0, True)
        assert "kept: false" not in listed.stdout


@pytest.mark.usefixtures("nothing_is_free")
async def test_a_state_that_is_built_again_counts_the_same(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        await publish(car, b"first", b"[]", GOOD, b"[]")
        before = car.status().outcomes
    wipe_state(tmp_path)
    with engine(tmp_path) as car:
        assert car.status().outcomes == before
        assert before["not_kept"] == 2


@pytest.mark.usefixtures("nothing_is_free")
async def test_one_client_does_not_use_up_what_is_kept_of_another_even_after_a_restart() -> None:
    with engine() as car:
        await publish(car, b"first", b"second")
        async with ConcurrentService(car.directory) as service:
            outcomes = []
            for client in ("10.0.0.1", "10.0.0.1", "10.0.0.2", None):
                published = await service.call(Publish(documents=(b"[]",), client=client))
                outcomes.append(published.receipts[0].kept)

        assert outcomes == [False, False, True, True]


@pytest.mark.usefixtures("nothing_is_free")
async def test_the_receipts_of_many_are_in_order_whatever_is_kept() -> None:
    with engine() as car:
        async with ConcurrentService(car.directory) as service:
            await service.call(Publish(documents=(b"first",), client="10.0.0.1"))
            mixed = (b"[]", GOOD, b"{", encode(document("claim-3", topic="tea")), UNKNOWN)
            published = await service.call(Publish(documents=mixed, client="10.0.0.1"))

    assert [(receipt.id, receipt.code, receipt.offset) for receipt in published.receipts] == [
        (None, "not_object", 3),
        ("claim-1", None, 1),
        (None, "syntax", 3),
        ("claim-3", None, 2),
        ("claim-2", "type_unknown", 3),
    ]


def test_accounts_survive_the_end_of_a_process_and_a_kill_costs_little(tmp_path: Path) -> None:
    killed = RejectedQuota(tmp_path, lambda: 0.0)
    for number in range(1000):
        killed.count(f"client-{number % 3}", 1000, is_kept=True)
    after_kill = RejectedQuota(tmp_path, lambda: 0.0)
    killed.save()
    after_end = RejectedQuota(tmp_path, lambda: 0.0)

    assert killed._kept - UNSAVED_MAX <= after_kill._kept < killed._kept == after_end._kept
    assert after_end.is_exhausted("client-1") == killed.is_exhausted("client-1")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.parametrize("content", [b"", b"00000000\n{}", b"\xff", b"nothing of use", None])
def test_a_damaged_file_opens_new_accounts(content: bytes | None, tmp_path: Path) -> None:
    quota = RejectedQuota(tmp_path, lambda: 0.0)
    quota.count("a", rejected_quota.DAY_MAX, is_kept=True)
    quota.save()
    file = tmp_path / rejected_quota.FILE
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"67109088", b"67109089") if content is None else content)

    assert not RejectedQuota(tmp_path, lambda: 0.0).is_exhausted("a")
    file.write_bytes(whole)
    assert RejectedQuota(tmp_path, lambda: 0.0).is_exhausted("a")


def test_an_account_has_a_little_for_free_then_a_multiple_of_what_is_sent(tmp_path: Path) -> None:
    quota = RejectedQuota(tmp_path, lambda: 0.0)
    kept = 0
    for _ in range(100_000):
        is_kept = not quota.is_exhausted("a")
        quota.count("a", 1, is_kept=is_kept)
        kept += is_kept

    assert FREE < kept * (1 + RECORD_BYTES) <= FREE + 2 * 100_000 + 2 * RECORD_BYTES


def test_every_day_has_new_accounts(tmp_path: Path) -> None:
    now = 0.0
    quota = RejectedQuota(tmp_path, lambda: now)
    quota.count("a", rejected_quota.DAY_MAX, is_kept=True)
    assert quota.is_exhausted("a")

    now = float(DAY_S)

    assert not quota.is_exhausted("a")


def test_all_clients_together_have_a_limit(tmp_path: Path) -> None:
    quota = RejectedQuota(tmp_path, lambda: 0.0)
    for number in range(rejected_quota.ALL_MAX // rejected_quota.DAY_MAX):
        quota.count(f"client-{number}", rejected_quota.DAY_MAX, is_kept=True)

    assert quota.is_exhausted("another")


def test_the_number_of_accounts_is_limited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rejected_quota, "CLIENTS_MAX", 3)
    quota = RejectedQuota(tmp_path, lambda: 0.0)
    for number in range(10):
        quota.count(f"client-{number}", 1, is_kept=True)

    assert len(quota._accounts) == 4
