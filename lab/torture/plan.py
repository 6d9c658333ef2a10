"""What one round of torture is: everything that every process of it must know, drawn from a seed.

Rule 1: Change `n` of the run is delta n % 28 of counter n // 28 and adds 4^(n % 28), so a sum names its deltas.
Rule 2: One clock for all processes: the machine's monotonic one, and wall time is that plus a constant, so no step of
the wall clock can excuse a violation. Compactors see it askew by at most SKEW_MAX_MS; the judgement allows for that.
Rule 3: The times are short, in proportion to the real ones: keep is above a read's longest time.
"""

import random
import time
from dataclasses import dataclass, field

from ledger import Limit, Settings
from ledger.clocks import Clock

REGIONS = ("eu-west-1", "us-east-1")
TABLE = "counters"
DELTAS_OF_COUNTER = 28
LIMITED = "counter-3"
"""Counters whose number begins with 3 have a limit, wide enough for all their deltas: rights must move, none lacks."""

LATENESS_MS, READ_MS, KEEP_MS = 1_500, 3_000, 6_000
SKEW_MAX_MS = 150
ON_TIME_MS = LATENESS_MS - SKEW_MAX_MS - 50
"""Acknowledged at home this soon after its instant, a delta is on time by the clock of every compactor."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One round. `proxy`: the endpoint; a caller's place is its path. `wall_ns`: wall time less monotonic time."""

    seed: int
    changes: int
    folder: str
    writers: int = 3
    threads: int = 4
    readers: int = 2
    proxy: str = ""
    wall_ns: int = field(default_factory=lambda: time.time_ns() - time.monotonic_ns())

    @property
    def counters(self) -> int:
        return -(-self.changes // DELTAS_OF_COUNTER)

    @property
    def slots(self) -> int:
        """Writing threads: thread s asks for the changes s, s + slots, s + 2 slots, …"""
        return self.writers * self.threads

    def settings(self, region: str, place: str, endpoint: str | None = None) -> Settings:
        """The settings of a caller at `place` that asks `region`; through the proxy, else straight to `endpoint`."""
        rng = random.Random(f"{self.seed} fold")
        fold_min = rng.choice((1, 2, 4, 8))
        return Settings(
            table=TABLE,
            region=region,
            regions=REGIONS,
            endpoint_url=endpoint or f"{self.proxy}/{place}",
            shards={"counter-7": 2},  # those whose number begins with 7
            limits={LIMITED: Limit(ceiling=4**DELTAS_OF_COUNTER, region=REGIONS[0])},
            allowed_lateness_ms=LATENESS_MS,
            read_time_max_ms=READ_MS,
            keep_ms=KEEP_MS,
            fold_min=fold_min,
            fold_max=rng.randint(fold_min, 16),
        )

    def clock(self, skew_ms: int = 0) -> Clock:
        """Milliseconds since 1970, by the monotonic clock."""
        return lambda: (time.monotonic_ns() + self.wall_ns) // 1_000_000 + skew_ms

    def monotonic_ns(self, wall_ms: int) -> int:
        """The monotonic time at which a right clock showed `wall_ms`."""
        return wall_ms * 1_000_000 - self.wall_ns


def name_of(counter: int) -> str:
    return f"counter-{counter}"
