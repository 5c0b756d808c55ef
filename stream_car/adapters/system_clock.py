"""The time of day, as the operating system tells it."""

import time


class SystemClock:
    """Promise: microseconds since 1970, UTC. It may step back; logs that stamp records see to that."""

    def now(self) -> int:
        """Microseconds since 1970, UTC."""
        return time.time_ns() // 1000
