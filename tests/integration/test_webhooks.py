"""Webhooks deliver at least once, in order by record, signed, to addresses that are allowed; or they say why not."""

import asyncio
import json
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from stream_car import (
    Engine,
    Event,
    Halted,
    InvalidRequest,
    RecordChange,
    Reset,
    SnapshotBegin,
    SnapshotEnd,
    Unavailable,
)
from stream_car.api.requests import Subscribe
from stream_car.cli.webhooks import ClientEvents
from stream_car.local.doctor import examine
from stream_car.local.service import LocalService
from stream_car.settings import RecordSelection, ServerSettings, WebhookSettings
from stream_car.webhooks.in_service import ServiceWebhooks, outbox_path
from stream_car.webhooks.outbox import Outbox, OutgoingMessage
from stream_car.webhooks.webhook import Webhook, WebhookSender, begin, deliver_events, message_of
from tests.support.background import in_background
from tests.support.command_line import invoke
from tests.support.engines import RULESET, document
from tests.support.file_limit import no_more_files
from tests.support.http_service import as_fields, serving
from tests.support.webhook_receiver import ALLOWED, SECRET, Answer, ReceivedMessage, Receiver, receiving

ELSEWHERE = Webhook(url="https://x.example", secret=SECRET)


def events_of(*names: str) -> list[Event]:
    """Events about these records, in this order, with cursors."""
    with Engine(ruleset=RULESET) as car:
        start = car.status().cursor
        for number, name in enumerate(names):
            car.publish(document(f"{name}@{number}", at=number, record=name))
        return list(car.subscribe(view="record", after=start, material=False))


async def batches(events: Sequence[Event]) -> AsyncIterator[Sequence[Event]]:
    yield events


@contextmanager
def delivering(
    path: Path,
    receiver: Receiver,
    events: Sequence[Event],
    *,
    pauses_s: tuple[float, ...] = (0.0,) * 8,
    allow: tuple[str, ...] = ALLOWED,
) -> Iterator[None]:
    """Deliver these events while the block runs, and at its end wait until no message waits any more."""
    webhook = Webhook(url=receiver.url, secret=SECRET, allow=allow, pauses_s=pauses_s)

    @asynccontextmanager
    async def run() -> AsyncIterator[None]:
        sender = WebhookSender(webhook, outbox)
        await sender.receive(batches(events))
        task = asyncio.create_task(sender.deliver())
        yield
        while outbox.waiting():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with closing(Outbox(path)) as outbox, in_background(run()):
        yield


def dead(path: Path) -> Sequence[OutgoingMessage]:
    with closing(Outbox(path)) as outbox:
        return outbox.dead()


def failing(times: int, status: int = 500) -> Answer:
    """Fail each record so many times."""
    failures: Counter[str] = Counter()

    def answer(content: dict[str, object]) -> int:
        data = content["data"]
        assert isinstance(data, dict)
        failures[data["event_id"]] += 1
        return status if failures[data["event_id"]] <= times else 200

    return answer


def test_what_fails_is_tried_again_and_every_record_keeps_its_order(tmp_path: Path) -> None:
    names = ("a", "b", "a", "c", "a", "b", "a")
    with receiving(failing(2)) as receiver, delivering(tmp_path / "o", receiver, events_of(*names)):
        messages = receiver.next(3 * len(names))

    delivered = [message for message in messages if message.status == 200]
    for name in set(names):
        sent = [m.id for m in messages if m.record == name]
        assert list(dict.fromkeys(sent)) == [m.id for m in delivered if m.record == name]
        assert sent == sorted(sent, key=list(dict.fromkeys(sent)).index)
    assert Counter(message.record for message in delivered) == Counter(names)
    assert dead(tmp_path / "o") == []


def test_what_fails_too_often_is_dead_holds_nothing_up_and_can_be_tried_again(tmp_path: Path) -> None:
    path, events = tmp_path / "webhook.sqlite", events_of("a", "b", "a")
    is_broken = [True]

    def answer(content: dict[str, object]) -> int:
        data = content["data"]
        assert isinstance(data, dict)
        return 500 if is_broken[0] and data["outcome"] == "published" and data["record"] == "a" else 200

    with receiving(answer) as receiver:
        with delivering(path, receiver, events, pauses_s=(0.0, 0.0)):
            messages = receiver.next(5)
        assert Counter((m.record, m.status) for m in messages) == {("a", 500): 3, ("a", 200): 1, ("b", 200): 1}
        listed = json.loads(invoke("dead-letters", str(path), "--json").stdout)
        assert (listed["record"], listed["tries"], listed["error"]) == ("a", 3, "it answers 500.")
        assert listed["body"]["data"]["record"] == "a"

        is_broken[0] = False
        assert "a it answers 500." in invoke("dead-letters", str(path), "--retry").stdout
        with delivering(path, receiver, []):
            [again] = receiver.next()
        assert (again.id, again.status) == (listed["id"], 200)
    assert invoke("dead-letters", str(path)).stdout == "No message was given up.\n"


def test_a_receiver_that_is_gone_gets_no_message_twice(tmp_path: Path) -> None:
    with receiving(lambda content: 410) as receiver:
        with delivering(tmp_path / "o", receiver, events_of("a")):
            receiver.next()
        with delivering(tmp_path / "o", receiver, []):
            pass
        assert receiver.messages.empty()
    [letter] = dead(tmp_path / "o")
    assert letter.error == "it answers 410: it wants no more messages."


@pytest.mark.parametrize(("retry_after", "pause_s"), [("3600", 3600), ("9" * 400, 86_400)])
def test_a_receiver_may_ask_for_a_pause_of_a_day_at_most(tmp_path: Path, retry_after: str, pause_s: int) -> None:
    async def fail_once(sender: WebhookSender) -> None:
        await sender.receive(batches(events_of("a")))
        task = asyncio.create_task(sender.deliver())
        while not sender.outbox.heads(1)[0].tries:
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with receiving(lambda _: 503, retry_after=retry_after) as receiver, closing(Outbox(tmp_path / "outbox")) as outbox:
        before = time.time()
        webhook = Webhook(url=receiver.url, secret=SECRET, allow=ALLOWED, pauses_s=(0.0,))
        asyncio.run(fail_once(WebhookSender(webhook, outbox)))
        due = outbox.heads(1)[0].due

    assert before + pause_s <= due <= time.time() + pause_s


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with receiving(lambda content: 307) as receiver:
        with delivering(tmp_path / "o", receiver, events_of("a"), pauses_s=()):
            [message] = receiver.next()
        with delivering(tmp_path / "o", receiver, []):
            pass
        assert receiver.messages.empty()
    [letter] = dead(tmp_path / "o")
    assert (message.path, letter.error) == ("/hook", "it answers 307.")


def test_an_address_that_is_not_public_gets_nothing(tmp_path: Path) -> None:
    with receiving() as receiver:
        with delivering(tmp_path / "o", receiver, events_of("a"), pauses_s=(), allow=()):
            pass
        assert receiver.messages.empty()
    [letter] = dead(tmp_path / "o")
    assert letter.error.startswith("127.0.0.1 has the address 127.0.0.1, which is not public.")


def test_messages_and_cursor_are_kept_together(tmp_path: Path) -> None:
    events = events_of("a", "b")
    for event, waiting in zip(events, (1, 2), strict=True):
        with closing(Outbox(tmp_path / "o")) as outbox:
            asyncio.run(
                WebhookSender(Webhook(url="https://x.example", secret=SECRET), outbox).receive(batches([event]))
            )
        with closing(Outbox(tmp_path / "o")) as outbox:
            assert (outbox.cursor, outbox.waiting()) == (event.cursor, waiting)


def test_a_reset_is_a_message_and_the_snapshot_after_it_is_none(tmp_path: Path) -> None:
    [event] = events_of("a")
    reset = Reset(reason="generation", generation="h")
    snapshot = (SnapshotBegin(generation="h", view="record"), SnapshotEnd(generation="h", cursor="h:9"))
    events: list[Event] = [reset, *snapshot, event]
    with closing(Outbox(tmp_path / "o")) as outbox:
        asyncio.run(WebhookSender(ELSEWHERE, outbox).receive(batches(events)))
        kinds = [json.loads(message.body)["type"] for message in outbox.heads(9)]

    assert sorted(kinds) == ["record-change", "reset"]


def test_a_repeated_event_has_the_same_message_id() -> None:
    [event] = events_of("a")
    assert isinstance(event, RecordChange)
    message = message_of(event)
    assert message is not None
    assert message[0] == event.event_id


def test_a_service_delivers_to_its_webhooks_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    with receiving() as receiver:
        select = RecordSelection(scope=("topic=tea", "topic=milk"))
        webhook = WebhookSettings(url=receiver.url, secret_file=str(secret), select=select, allow=ALLOWED)
        settings = ServerSettings(port=0, webhooks=(webhook,))
        for number in (1, 2):
            with in_background(serving(tmp_path / "data", settings=settings)) as service:
                posted = [as_fields(f"{topic}-{number}", topic=topic) for topic in ("tea", "coffee", "milk")]
                service.run(service.value.post_documents(*posted))
                assert {message.record for message in receiver.next(2)} == {f"tea-{number}", f"milk-{number}"}
        assert receiver.messages.empty()


def webhook_settings(receiver: Receiver, folder: Path, *topics: str) -> WebhookSettings:
    """A webhook of records of these topics."""
    secret = folder / "secret"
    secret.write_text(SECRET)
    select = RecordSelection(scope=tuple(f"topic={topic}" for topic in topics))
    return WebhookSettings(url=receiver.url, secret_file=str(secret), select=select, allow=ALLOWED)


def test_two_subscriptions_of_one_url_have_outboxes_of_their_own(tmp_path: Path) -> None:
    with receiving() as receiver:
        webhooks = tuple(webhook_settings(receiver, tmp_path, topic) for topic in ("tea", "milk"))
        with in_background(serving(tmp_path / "data", settings=ServerSettings(port=0, webhooks=webhooks))) as service:
            posted = [as_fields(topic, topic=topic) for topic in ("tea", "milk", "tea-2")]
            service.run(service.value.post_documents(*posted))
            assert {message.record for message in receiver.next(2)} == {"tea", "milk"}
        assert receiver.messages.empty()

    with Engine() as car:
        local = LocalService(car.directory)
        with pytest.raises(InvalidRequest, match="the same `url` and the same `select`"):
            ServiceWebhooks(local, ServerSettings(webhooks=webhooks[:1] * 2), tmp_path, local.hub.cursor)


def test_a_damaged_outbox_is_set_aside_told_and_found_while_the_service_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with receiving() as receiver:
        webhook = webhook_settings(receiver, tmp_path, "tea")
        path = outbox_path(tmp_path / "data" / "webhooks", webhook)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"no database " * 1000)
        settings = ServerSettings(port=0, webhooks=(webhook,))
        with in_background(serving(tmp_path / "data", settings=settings)) as service:
            assert "is damaged" in caplog.text
            assert "stream-car changes --since DATE" in caplog.text
            service.run(service.value.post_documents(as_fields("tea", topic="tea")))
            assert [message.record for message in receiver.next()] == ["tea"]
            metrics = service.run(service.value.client.get("/metrics")).text
        assert f'stream_car_webhook_tries_total{{outcome="delivered",webhook="{path.stem}"}} 1.0' in metrics
        assert f'stream_car_webhook_age_seconds{{webhook="{path.stem}"}} 0.0' in metrics

    findings = [finding for finding in examine(tmp_path / "data") if finding.check == "webhooks"]
    assert [(finding.status, path.name in finding.detail) for finding in findings] == [("notice", True)]
    path.write_bytes(b"no database " * 1000)
    assert "damaged" in {finding.status for finding in examine(tmp_path / "data") if finding.check == "webhooks"}


def test_an_outbox_that_cannot_be_opened_now_is_not_set_aside(tmp_path: Path) -> None:
    async def begin_without_files() -> None:
        with no_more_files():
            await begin(path, None, ClientEvents("http://127.0.0.1:1", Subscribe()))

    path = tmp_path / "o"
    with closing(Outbox(path)) as outbox:
        asyncio.run(WebhookSender(ELSEWHERE, outbox).receive(batches(events_of("a"))))
    with pytest.raises(Unavailable, match="cannot be opened"):
        asyncio.run(begin_without_files())

    assert [file.name for file in tmp_path.iterdir()] == ["o"]
    with closing(Outbox(path)) as outbox:
        assert outbox.waiting() == 1


def test_the_doctor_says_that_it_could_not_check_an_outbox(tmp_path: Path) -> None:
    with Engine(tmp_path) as car:
        car.status()
    path = tmp_path / "webhooks" / "any.sqlite"
    path.parent.mkdir()
    Outbox(path).close()
    path.with_name(f"{path.name}-wal").mkdir()  # SQLite cannot open it

    [finding] = [finding for finding in examine(tmp_path) if finding.check == "webhooks"]
    assert (finding.status, "cannot be opened" in finding.detail) == ("notice", True)


def outbox_named_by_its_url(folder: Path, url: str) -> Path:
    """Return the file of a message as an earlier release named it, after a crash: the log still has the message."""
    path = folder / "webhooks" / f"{sha256(url.encode()).hexdigest()[:16]}.sqlite"
    path.parent.mkdir(parents=True)
    with closing(Outbox(folder / "o")) as outbox:
        asyncio.run(WebhookSender(ELSEWHERE, outbox).receive(batches(events_of("a"))))
        for end in ("", "-wal"):
            shutil.copy(folder / f"o{end}", path.with_name(path.name + end))
    return path


def test_an_outbox_that_an_earlier_release_named_by_the_url_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with receiving() as receiver:
        webhook = webhook_settings(receiver, tmp_path, "tea")
        earlier = outbox_named_by_its_url(tmp_path / "data", webhook.url)
        settings = ServerSettings(port=0, webhooks=(webhook,))
        with in_background(serving(tmp_path / "data", settings=settings)):
            assert [message.record for message in receiver.next()] == ["a"]

    assert [file.name for file in earlier.parent.glob("*.sqlite")] == [outbox_path(earlier.parent, webhook).name]
    assert "which no webhook uses" not in caplog.text


def test_an_outbox_named_by_the_url_of_two_webhooks_is_left_to_neither(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with receiving() as receiver:
        webhooks = tuple(webhook_settings(receiver, tmp_path, topic) for topic in ("tea", "milk"))
        earlier = outbox_named_by_its_url(tmp_path / "data", receiver.url)
        with in_background(serving(tmp_path / "data", settings=ServerSettings(port=0, webhooks=webhooks))):
            assert f"1 messages wait in {earlier}" in caplog.text


def test_messages_that_no_webhook_sends_any_more_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with receiving() as receiver:
        before, now = (webhook_settings(receiver, tmp_path, topic) for topic in ("tea", "milk"))
        path = outbox_path(tmp_path / "data" / "webhooks", before)
        path.parent.mkdir(parents=True)
        with closing(Outbox(path)) as outbox:
            asyncio.run(WebhookSender(ELSEWHERE, outbox).receive(batches(events_of("a"))))
        with in_background(serving(tmp_path / "data", settings=ServerSettings(port=0, webhooks=(now,)))):
            assert f"1 messages wait in {path}" in caplog.text


def test_the_logs_of_a_webhook_have_its_origin_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def fail_once() -> None:
        class Failing:
            async def cursor(self) -> str:
                raise Halted("damaged", "The log is damaged.")

            events = None

        webhook = Webhook(url="https://x.example:8443/hook/canary?key=canary", secret=SECRET)
        task = asyncio.create_task(deliver_events(webhook, tmp_path / "o", None, Failing()))  # type: ignore[arg-type]
        while "has stopped" not in caplog.text:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(asyncio.wait_for(fail_once(), 60))

    assert "https://x.example:8443 " in caplog.text
    assert "canary" not in caplog.text


def test_the_command_line_delivers_what_a_service_publishes(tmp_path: Path) -> None:
    path, selection = tmp_path / "o", Subscribe(view="record", only=("published",))

    async def deliver() -> None:
        async with serving() as running:
            source = ClientEvents(running.url, selection)
            webhook = Webhook(url=receiver.url, secret=SECRET, allow=ALLOWED)
            await begin(path, selection, source)
            task = asyncio.create_task(deliver_events(webhook, path, selection, source))
            await running.post_documents(as_fields("tea", topic="tea"))
            received.extend(await asyncio.to_thread(receiver.next))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    received: list[ReceivedMessage] = []
    with receiving() as receiver:
        asyncio.run(deliver())
    assert [(message.record, message.outcome) for message in received] == [("tea", "published")]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--webhook", "https://x.example"), "give its --url"),
        (("--webhook", "ftp://x.example", "--url", "http://127.0.0.1:1"), "is not the URL of a webhook"),
        (("--webhook", "https://x.example:99999", "--url", "http://127.0.0.1:1"), "is not the URL of a webhook"),
        (("--webhook", "https://u:p@x.example", "--url", "http://127.0.0.1:1"), "must not have a user"),
    ],
)
def test_a_webhook_that_cannot_be_used_is_an_error(
    arguments: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STREAM_CAR_WEBHOOK_SECRET", SECRET)
    with Engine(tmp_path / "data"):
        pass
    where = () if "--url" in arguments else ("--data", str(tmp_path / "data"))
    result = invoke("watch", "--outbox", str(tmp_path / "o"), *where, *arguments)

    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.split())


def test_a_webhook_without_a_secret_is_an_error_that_says_how_to_make_one() -> None:
    result = invoke("watch", "--url", "http://127.0.0.1:1", "--webhook", "https://x.example")

    assert result.exit_code == 2
    assert "openssl rand" in result.stderr
