"""What of a change is the same at every reading."""

import msgspec

WORDS = ("state", "state_text", "state_since", "outcome", "outcome_text")  # read from the documents there are now


def constant_part(change: bytes | str) -> object:
    """Return a change without the words for people."""
    return _without(msgspec.json.decode(change))


def _without(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in WORDS}
    return [_without(item) for item in value] if isinstance(value, list) else value
