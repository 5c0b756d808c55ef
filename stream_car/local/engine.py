"""The library: an engine over a folder, in this process, without any server."""

from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from msgspec.structs import replace

from stream_car.adapters.search.encoders import load_encoder
from stream_car.api import arguments, requests as r
from stream_car.api.arguments import RulesArgument
from stream_car.api.bookmark import Bookmark
from stream_car.api.calls import Calls
from stream_car.codec import Publishables, encode_batches, encode_document, iterate_documents
from stream_car.codec.expectations import must_be
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidRequest
from stream_car.local.data_directory import DataDirectory
from stream_car.local.run_sync import run_sync
from stream_car.local.service import LocalService
from stream_car.ports import Clock, Encoder
from stream_car.queries import answers as a
from stream_car.queries.cache import BYTES_MAX
from stream_car.ranking.settings import SETTINGS, Settings
from stream_car.subscriptions.events import Event

PUBLISH_MAX = 4000  # documents stored with one flush
PUBLISH_BYTES_MAX = 16 << 20

A = TypeVar("A")


class Engine(Calls):
    """Publish documents and ask what is in force. Use it as a context manager, or `close` it.

    Not to be used from several threads at once. Several processes share a folder through `stream-car serve`.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        ruleset: Ruleset | None = None,
        rules: RulesArgument = (),
        future: r.Future | None = None,
        clock: Clock | None = None,
        cache_bytes: int = BYTES_MAX,
        ranking: Settings = SETTINGS,
        encoder: Encoder | str | Path | None = None,
    ) -> None:
        """Open a folder, which is made if need be; see `stream_car.open`."""
        self.directory = DataDirectory(
            arguments.path(path, "path") if path is not None else None,
            ruleset=ruleset,
            rules=arguments.rule_paths(rules),
            future=arguments.opening(future),
            clock=clock,
            cache_bytes=cache_bytes,
            ranking=arguments.instance(ranking, Settings, "ranking"),
            encoder=load_encoder(encoder) if isinstance(encoder, str | Path) else _checked_encoder(encoder),
        )
        self.path = self.directory.path
        self._service = LocalService(self.directory)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; closing again is harmless. The files of a temporary engine are removed."""
        try:
            self._service.close()
        finally:
            self.directory.close()

    def _carry_out(self, request: r.Request[A]) -> A:
        return run_sync(self._service.call(request))

    def _publish(self, documents: Publishables, options: r.PublishOptions) -> a.Published:
        if options.strict or options.format:
            whole = tuple(map(encode_document, iterate_documents(documents)))
            request = r.Publish(documents=whole, strict=options.strict, format=options.format)
            return run_sync(self._service.call(request))
        batches = encode_batches(documents, count_max=PUBLISH_MAX, bytes_max=PUBLISH_BYTES_MAX)
        published = [run_sync(self._service.call(r.Publish(documents=batch))) for batch in batches]
        return published[0] if len(published) == 1 else a.Published.joined(published)

    def settle(self) -> None:
        """Wait until every vector is made; without an encoder there are none."""
        self.directory.settle()

    def _events(self, request: r.Subscribe, bookmark: Bookmark) -> Generator[Event, None, None]:
        """Yield what a subscriber would have received by now."""
        try:
            subscriber = run_sync(self._service.open_subscription(replace(request, after=bookmark.cursor)))
        except InvalidRequest as error:
            raise bookmark.explain(error) from error
        try:
            while True:
                events = run_sync(subscriber.poll())
                yield from events
                if not events and subscriber.is_at_rest:
                    bookmark.move_past(subscriber.heartbeat())
                    return
        finally:
            subscriber.close()

    def _rest(self) -> None:
        """A rebuild goes on with each look at its status: there is nothing to wait for."""

    def _rules(self, rules: RulesArgument) -> tuple[str | r.RuleText, ...]:
        """Files stay files, so that they can be read again later."""
        return tuple(str(pack) for pack in arguments.rule_paths(rules))


def _checked_encoder(encoder: Encoder | None) -> Encoder | None:
    if encoder is not None and not (hasattr(encoder, "name") and hasattr(encoder, "encode")):
        expectation = "a folder, the name of a model, or an object like `stream_car.Encoder`"
        raise InvalidRequest("encoder", must_be("encoder", expectation, encoder))
    return encoder
