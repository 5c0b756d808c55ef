"""A receiver of webhooks for tests: it verifies signatures on its own, and fails as it is told to."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread

from msgspec import Struct

KEY = b"0123456789abcdef0123456789abcdef"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
ALLOWED = ("127.0.0.1",)


class ReceivedMessage(Struct, frozen=True):
    """A message whose signature was right, and the status that it was answered with."""

    id: str
    path: str
    status: int
    content: dict[str, object]

    @property
    def record(self) -> object:
        """The record that it is about."""
        data = self.content["data"]
        return data["record"] if isinstance(data, dict) else None

    @property
    def outcome(self) -> object:
        """What became of the record."""
        data = self.content["data"]
        return data["outcome"] if isinstance(data, dict) else None


Answer = Callable[[dict[str, object]], int]


class Receiver(Struct, frozen=True):
    """A receiver that listens; `messages` has what arrived, in order."""

    url: str
    messages: "Queue[ReceivedMessage]"

    def next(self, count: int = 1) -> list[ReceivedMessage]:
        """Wait for so many messages."""
        return [self.messages.get(timeout=60) for _ in range(count)]


@contextmanager
def receiving(answer: Answer = lambda content: 204, *, retry_after: str = "0") -> Iterator[Receiver]:
    """Listen on a free port of this machine. `answer` returns the status for a message."""
    messages: Queue[ReceivedMessage] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            name, timestamp = self.headers["webhook-id"], self.headers["webhook-timestamp"]
            signature = hmac.new(KEY, f"{name}.{timestamp}.".encode() + body, hashlib.sha256).digest()
            is_genuine = self.headers["webhook-signature"] == "v1," + base64.b64encode(signature).decode()
            content = json.loads(body)
            status = answer(content) if is_genuine else 401
            self.send_response(status)
            if status // 100 == 3:
                self.send_header("location", "/elsewhere")
            self.send_header("Retry-After", retry_after)
            self.send_header("content-length", "0")
            self.end_headers()
            messages.put(ReceivedMessage(name, self.path, status, content))

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Receiver(f"http://127.0.0.1:{server.server_port}/hook", messages)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
