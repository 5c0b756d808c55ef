"""Fit the result of a tool into a budget of tokens.

Promise: what is left out is counted, and a document is never shown without what is said of its status. Cost: the JSON
of the value is made about ten times if much is left out.
"""

from typing import cast

import msgspec

from stream_car.errors import InvalidRequest
from stream_car.memory.packing import BYTES_PER_TOKEN

TEXT_LENGTHS = (2_000, 500, 100)  # characters that are left of each text, one after the other
ROOM_FOR_NOTE = 400  # bytes
CUT = "Texts are cut: read the resource stream-car://documents/ID for a whole document."
LEFT_OUT = "Items are left out at the end: ask for less at a time, or raise `budget_tokens`."

Json = dict[str, object] | list[object] | str | int | float | bool | None


def fitted(value: object, budget_tokens: int) -> dict[str, object]:
    """Return `{"answer": value}` as JSON without empty fields, with `omitted` and `note` if it is not whole.

    Raises:
        InvalidRequest: not even one item fits (`budget_tokens`).
    """
    answer = pruned(cast(Json, msgspec.json.decode(msgspec.json.encode(value))))
    room = budget_tokens * BYTES_PER_TOKEN - ROOM_FOR_NOTE // 2
    if size(answer) <= room:
        return {"answer": answer}
    room -= ROOM_FOR_NOTE // 2
    whole, omitted = answer, 0
    for length in TEXT_LENGTHS:
        answer = _with_short_texts(answer, length)
        if size(answer) <= room:
            return {"answer": answer, "note": CUT}
    note = f"{CUT} {LEFT_OUT}" if answer != whole else LEFT_OUT
    while size(answer) > room:
        longest = _longest_list(answer)
        if longest is None:
            cure = f"The smallest result has about {size(answer) // BYTES_PER_TOKEN + 100} tokens."
            raise InvalidRequest("budget_tokens", f"`budget_tokens` is too small. {cure}")
        count = len(longest) // 2
        del longest[-count:]
        omitted += count
    return {"answer": answer, "omitted": omitted, "note": note}


def pruned(value: Json) -> Json:
    """Return a value without fields that are empty."""
    if isinstance(value, dict):
        items = ((key, pruned(cast(Json, item))) for key, item in value.items())
        return {key: item for key, item in items if item not in ("", None, [], {})}
    return [pruned(cast(Json, item)) for item in value] if isinstance(value, list) else value


def size(value: object) -> int:
    """Return the length of the JSON, in bytes."""
    return len(msgspec.json.encode(value))


def _with_short_texts(value: Json, length: int) -> Json:
    if isinstance(value, dict):
        return {
            key: f"{item[:length]}…"
            if key == "text" and isinstance(item, str) and len(item) > length + 1
            else _with_short_texts(cast(Json, item), length)
            for key, item in value.items()
        }
    return [_with_short_texts(cast(Json, item), length) for item in value] if isinstance(value, list) else value


def _longest_list(value: Json) -> list[object] | None:
    """Return the outermost list of several items on the way into what takes most room."""
    if isinstance(value, list) and len(value) > 1:
        return value
    children = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    for child in sorted(children, key=size, reverse=True):
        longest = _longest_list(cast(Json, child))
        if longest is not None:
            return longest
    return None
