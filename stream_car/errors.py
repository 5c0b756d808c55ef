"""Everything Stream-CAR raises on purpose: one root, few families, named for what the caller can do."""


class StreamCarError(Exception):
    """Any failure Stream-CAR raises on purpose."""


class InvalidDocument(StreamCarError):
    """The document can never be accepted; set it aside.

    `code` is stable (`syntax`, `scope`, `conflict`, ...); `reason` is one sentence to act on.
    """

    def __init__(self, code: str, reason: str, document_id: str | None = None) -> None:
        named = f"document {document_id!r}" if document_id is not None else "document"
        super().__init__(f"{named} rejected ({code}): {reason}")
        self.code = code
        self.reason = reason
        self.document_id = document_id


class InvalidRules(StreamCarError):
    """A rule pack cannot be loaded; `problems` lists every reason found."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class InvalidRequest(StreamCarError):
    """The question cannot be answered as put; `code` is stable, the message says what to change."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Busy(StreamCarError):
    """Somebody else has the folder open; try again when they have let go. `reason` is who, without the advice."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}; {advice}")
        self.reason = reason


class ClaimLost(StreamCarError):
    """Another worker holds the shard now, or it has moved; claim it again or let go."""


class Halted(StreamCarError):
    """The state or the log breaks a promise; a person must decide. `code` names the case."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Unavailable(StreamCarError):
    """A server does not answer, or not now. Nothing is known of what was asked of it; try again later.

    `code` is stable where the server gave a reason.
    """

    def __init__(self, reason: str, code: str = "unavailable") -> None:
        super().__init__(reason)
        self.code = code


class TooMuch(StreamCarError):
    """More at once than a server takes; nothing was kept. Send it in smaller parts."""


class UnsafeSettings(StreamCarError):
    """Settings of a server or a topic would break a promise; `problems` names each, and what it must be."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class NotVisible(StreamCarError):
    """A revision that an answer must count is not visible; ask again, or give it more time.

    `code` is `not_visible` where it was waited for, `pending` where it waits for a time to come.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
