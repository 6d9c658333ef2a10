"""What one run is: everything that every process of it must know, drawn from a seed and a profile.

Rule 1: Without events, change `n` of the run is delta n % 28 of counter n // 28 and adds 4^(n % 28), so a sum names its
deltas. With events, change `n` is event `n`, and the witnesses among them are counters of that kind.
Rule 2: One clock for all processes: the machine's monotonic one, and wall time is that plus a constant, so no step of
the wall clock can excuse a violation. Compactors see it askew by at most SKEW_MAX_MS; the judgement allows for that.
Rule 3: The times are short, in proportion to the real ones: keep is above a read's longest time.
"""

import random
import time
from dataclasses import dataclass, field
from functools import cached_property

from lab.events import Event, is_witness
from lab.run.plants import Mistake
from lab.run.profiles import Profile
from ledger import Change, Limit, Settings
from ledger.checks import to_datetime
from ledger.clocks import Clock

REGIONS = ("eu-west-1", "us-east-1")
TABLE = "counters"
DELTAS_OF_COUNTER = 28
LIMITED = "counter-3"
"""Counters whose number begins with 3 have a limit, wide enough for all their deltas: rights must move, none lacks."""

MIXED = 3  # every third counter is asked for in both Regions, the others in one of them: fewer and longer lanes
LATEST, OLDER = 0.6, 400  # a share of reads takes one of the latest counters, the others any of the last OLDER
ELSEWHERE = 0.05  # of a user's events, whose callers go to the Region that is not their home
KEY_MAX = 64
WRITERS, READERS, THREADS = 3, 2, 4  # processes, and threads of each

LATENESS_MS, READ_MS, KEEP_MS = 1_500, 3_000, 6_000
SKEW_MAX_MS = 150
ON_TIME_MS = LATENESS_MS - SKEW_MAX_MS - 50
"""Acknowledged at home this soon after its instant, a delta is on time by the clock of every compactor."""

SLOTS = WRITERS * THREADS
"""Writing threads: thread s asks for the changes s, s + SLOTS, s + 2 SLOTS, …"""


@dataclass(frozen=True, slots=True, order=True)
class Asked:
    """One change of the run as its callers keep it: enough to send it again from anywhere."""

    number: int
    home: str
    at_ms: int


@dataclass(frozen=True)
class Plan:
    """One run. `proxy`: the endpoint; a caller's place is its path. `wall_ns`: wall time less monotonic time."""

    profile: Profile
    seed: int
    changes: int
    folder: str
    events: tuple[Event, ...] = ()
    mistake: Mistake | None = None
    proxy: str = ""
    wall_ns: int = field(default_factory=lambda: time.time_ns() - time.monotonic_ns())

    def event(self, number: int) -> tuple[str, int]:
        """The counter of a change, and by how much it changes it."""
        if self.events:
            event = self.events[number]
            return event.counter, event.change
        counter, delta = divmod(number, DELTAS_OF_COUNTER)
        return f"counter-{counter}", 4**delta

    def change(self, asked: Asked) -> Change:
        """What a caller hands to a ledger. No two changes of the run have one key, whatever keys a file has."""
        counter, amount = self.event(asked.number)
        key = self.events[asked.number].key if self.events else "key"
        return Change(counter, amount, f"{asked.number}/{key}"[:KEY_MAX], to_datetime(asked.at_ms), asked.home)

    def home_of(self, number: int, region: str, rng: random.Random) -> str:
        """Where a change is at home that a caller sends through `region`."""
        if self.events:
            elsewhere = rng.random() < ELSEWHERE
            return REGIONS[region == REGIONS[0]] if elsewhere else region
        counter = number // DELTAS_OF_COUNTER
        return region if counter % MIXED == 0 else REGIONS[counter % len(REGIONS)]

    def names_deltas(self, counter: str) -> bool:
        """Whether a sum of the counter names the deltas that it holds."""
        return not self.events or is_witness(counter)

    @cached_property
    def witnesses(self) -> list[str]:
        """The counters whose sums name their deltas, where the run has events."""
        return sorted({event.counter for event in self.events if is_witness(event.counter)})

    def counter_to_read(self, rng: random.Random, reached: int) -> str:
        """A counter whose sum names its deltas; `reached` is the latest change that was asked for."""
        if self.events:
            return rng.choice(self.witnesses)
        latest = reached // DELTAS_OF_COUNTER
        back = 2 * SLOTS // DELTAS_OF_COUNTER + 8 if rng.random() < LATEST else OLDER
        return f"counter-{max(0, latest - rng.randint(0, back))}"

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
            limits={LIMITED: Limit(ceiling=4**DELTAS_OF_COUNTER, region=REGIONS[0])} if not self.events else {},
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
