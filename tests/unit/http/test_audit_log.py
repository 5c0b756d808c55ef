"""The audit log says what became of each document, and does not grow with input that is not kept."""

import logging

import pytest

from stream_car.api.requests import Publish
from stream_car.http.audit_log import AuditedReceipt, AuditRecord, call_audited
from stream_car.local import rejected_quota
from stream_car.local.concurrent_service import ConcurrentService
from tests.support.engines import engine


async def test_input_that_is_not_kept_is_counted_by_its_code(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rejected_quota, "FREE", 0)
    monkeypatch.setattr(rejected_quota, "FACTOR", 0)
    caplog.set_level(logging.INFO, "stream_car.audit")
    with engine() as car:
        async with ConcurrentService(car.directory) as service:
            for documents in ((b"{",), (b"[]", b"{", b"[]")):
                request = Publish(documents=documents, client="10.0.0.1")
                await call_audited(service, request, operation="publish", scope={"type": "http", "address": "10.0.0.1"})

    records = [record.msg for record in caplog.records if isinstance(record.msg, AuditRecord)]
    assert [record.receipts for record in records] == [
        (AuditedReceipt(outcome="rejected", offset=0, code="syntax"),),
        (
            AuditedReceipt(outcome="rejected", offset=1, code="not_object", not_kept=2),
            AuditedReceipt(outcome="rejected", offset=1, code="syntax", not_kept=1),
        ),
    ]
