"""The time of day, as the operating system tells it."""

import time

from stream_car.ports import CLOCK_STEP_MAX

CLOCK_CURE = "Check the clock. If it is right, the next document sets the log right too."


class SystemClock:
    """Promise: microseconds since 1970, UTC. It may step back; logs that stamp records see to that."""

    def now(self) -> int:
        """Microseconds since 1970, UTC."""
        return time.time_ns() // 1000


def clock_notice(lead: int) -> str:
    """Return what is strange about a log whose last record is `lead` microseconds ahead of the clock, if anything."""
    if lead <= CLOCK_STEP_MAX:
        return ""
    hours = lead // 3_600_000_000
    return f"The last record is {hours:,} hours ahead of the clock. Documents may have taken effect too early."
