"""Everything Stream-CAR raises on purpose: one root, few families, named for what the caller can do.

Promise: a message says in one or two sentences what to do. A `code` is stable; programs compare it, not the message.
"""

from collections.abc import Sequence


class StreamCarError(Exception):
    """Any failure that Stream-CAR raises on purpose."""


class InvalidDocument(StreamCarError):
    """The document can never be accepted; set it aside.

    `code` names the reason (`syntax`, `scope`, `conflict`, ...); `reason` is one sentence to act on.
    """

    def __init__(self, code: str, reason: str, document_id: str | None = None) -> None:
        name = f"document {document_id!r}" if document_id is not None else "document"
        super().__init__(f"{name} rejected ({code}): {reason}")
        self.code = code
        self.reason = reason
        self.document_id = document_id

    def as_value(self) -> "InvalidDocument":
        """Return an equal error that was never raised. The traceback of one that was keeps its callers in memory."""
        return InvalidDocument(self.code, self.reason, self.document_id)


class DocumentsRejected(StreamCarError):
    """Documents were rejected. `problems` has one sentence for each, and the message says what became of the others.

    `code` is `strict` if nothing was stored because the call was strict, and `rejected` if the others are stored.
    """

    def __init__(self, summary: str, problems: tuple[str, ...], *, code: str = "rejected") -> None:
        super().__init__(_sentences((summary, *problems[:1])))
        self.summary = summary
        self.problems = problems
        self.code = code


class InvalidRules(StreamCarError):
    """Rule packs cannot be loaded. `problems` has one sentence for each reason."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(_sentences(problems))
        self.problems = problems


class InvalidRequest(StreamCarError):
    """The request is invalid; the message says what to change. `code` names the argument, or the reason."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Busy(StreamCarError):
    """Another process has the data directory open. Try again when it has closed it. `reason` names the process."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(_sentences((reason, advice)))
        self.reason = reason


class ClaimLost(StreamCarError):
    """Another worker has claimed the shard, or has moved it. Claim it again, or stop working on it."""


class Halted(StreamCarError):
    """The state or the log breaks a promise. A person must decide what to do. `code` names the case."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


# Codes of `Unavailable` that only a person ends: trying again does not help.
LASTING = frozenset({"quarantined", "lost_history"})


class Unavailable(StreamCarError):
    """A server does not answer now, so it is unknown whether it did what was requested. Try again later.

    `code` is the reason that the server gave, or `unavailable`.
    """

    def __init__(self, reason: str, code: str = "unavailable") -> None:
        super().__init__(reason)
        self.code = code


class Overloaded(StreamCarError):
    """This is more than the service accepts at once, and nothing was done. Send less at once, or try again later."""


class UnsafeSettings(StreamCarError):
    """The settings of a server or a topic would break a promise. `problems` names each, and what it must be."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__(_sentences(problems))
        self.problems = problems


class NotVisible(StreamCarError):
    """A revision that the answer must count is not visible. Try again, or allow more time.

    `code` is `not_visible` if the revision was not visible in time, and `pending` if the document waits for its time.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Unsupported(StreamCarError):
    """This back end cannot do it; docs/reference/back-ends.md lists what each one can do."""


def _sentences(texts: Sequence[str]) -> str:
    return " ".join(text if text.endswith((".", "?")) else f"{text}." for text in texts)
