"""The clock and the entropy that a process uses when it is given none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from ledger.requests import Instant

Clock = Callable[[], int]
"""Returns milliseconds since 1970."""

Entropy = Callable[[int], bytes]
"""Returns that many random bytes."""

entropy: Entropy = os.urandom


def wall_clock() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000


def instants(clock: Clock) -> Callable[[], Instant]:
    """What answers `Now`: the given clock beside this machine's monotonic one."""
    return lambda: Instant(clock(), time.monotonic_ns() // 1_000_000)
