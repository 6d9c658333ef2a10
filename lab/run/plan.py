"""What one run is: everything that every process of it must know, drawn from a seed and a profile.

Rule 1: Change `n` is event `n`. Witnesses among the counters take the changes 4^0, 4^1, …, so a sum
names its deltas.
Rule 2: All processes have one clock: the machine's monotonic one. Wall time is that plus a
constant, so no step of the wall clock can excuse a violation. A compactor's is wrong by at most
SKEW_MAX_MS, which the judgement allows for.
Rule 3: A floor of a profile is so low that only a run that shows nothing misses it.
Rule 4: The times are short, in proportion to the real ones: keep is above a read's longest time.
"""

import random
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lab.engines.proxy_faults import FAULTS, Mix
from lab.events import OPENING, WITNESS_CHANGES, Event, is_witness
from ledger import Change, Limit, Settings
from ledger.core.checks import to_datetime
from ledger.core.clocks import Clock

REGIONS = ("eu-west-1", "us-east-1")
TABLE = "counters"
LIMITED = "witness:3"
"""Witnesses whose number begins with 3 have a limit, wide enough for all their deltas: rights
must move, none lacks.
"""

OFTEN, LATEST, OLDER = 0.6, 250, 11_000
"""A share of reads takes a counter of one of the latest changes, the others one of a longer
while.
"""

ELSEWHERE = 0.2  # of the callers, who go to the Region that is not their home
KEY_MAX = 64
WRITERS, READERS, THREADS = 3, 2, 4  # processes, and threads of each

LATENESS_MS, READ_MS, KEEP_MS = 1_500, 3_000, 6_000
SKEW_MAX_MS = 150
ON_TIME_MS = LATENESS_MS - SKEW_MAX_MS - 50
"""Acknowledged at home this soon after its instant, a delta is on time by the clock of every
compactor.
"""

SLOTS = WRITERS * THREADS
"""Writing threads: thread s asks for the changes s, s + SLOTS, s + 2 SLOTS, …"""


@dataclass(frozen=True, slots=True)
class Profile:
    """pause_s: how long a writer rests between two batches, at most. again_s: how long it waits
    before it sends again, at most. resending_s: for how long, once half of the writers are done.
    kills: processes are killed. faults: what the proxy does; None draws a mix.

    floors: what a run must have of each, at least, as (number, share of its changes or operations).
    """

    pause_s: float
    again_s: float
    resending_s: float
    kills: bool
    faults: Mix | None
    floors: Mapping[str, tuple[int, float]]

    def floors_of(self, asked: int) -> dict[str, int]:
        """What a run of so many changes or operations must have of each, at least."""
        return {
            name: max(least, int(asked * share)) for name, (least, share) in self.floors.items()
        }


GENTLE_KINDS = (
    "500 after it applied",
    "answer dropped after it applied",
    "throttled",
    "repeated late",
)

GENTLE = Profile(
    pause_s=2.0,
    again_s=4.0,
    resending_s=60.0,
    kills=False,
    faults={fault: 0.01 for fault in FAULTS if fault.kind in GENTLE_KINDS},
    floors={
        "changes acknowledged": (1, 1.0),
        "of them owed to strong reads": (1, 0.01),
        "read ok": (1, 0.01),
        "packed": (1, 0.01),
        "folded": (1, 0.01),
        "settled": (1, 0.0),
        "cleaned": (1, 0.01),
        "faults": (1, 0.01),
    },
)
"""Events of a user; no process is killed."""

ROUGH = Profile(
    pause_s=0.5,
    again_s=16.0,
    resending_s=12.0,
    kills=True,
    faults=None,
    floors={
        "operations": (0, 1.0),
        "changes acknowledged": (0, 0.5),
        "of them owed to strong reads": (0, 0.01),
        "cleaned": (0, 0.001),
        "read ok": (0, 0.01),
        "faults": (0, 0.05),
    },
)
"""Changes of many witnesses; processes are killed."""


def numbered(changes: int) -> tuple[Event, ...]:
    """So many changes of witnesses alone, one witness after the other."""
    deltas = (divmod(number, WITNESS_CHANGES) for number in range(changes))
    return tuple(Event(f"witness:{witness}", 4**delta, "key", OPENING) for witness, delta in deltas)


@dataclass(frozen=True, slots=True, order=True)
class Asked:
    """One change of the run as its callers keep it: enough to send it again from anywhere."""

    number: int
    home: str
    at_ms: int


@dataclass(frozen=True)
class Plan:
    """One run.

    `proxy`: the endpoint; a caller's place is its path. `wall_ns`: wall time less monotonic time.
    """

    profile: Profile
    seed: int
    events: tuple[Event, ...]
    folder: str
    proxy: str = ""
    wall_ns: int = field(default_factory=lambda: time.time_ns() - time.monotonic_ns())

    @property
    def changes(self) -> int:
        return len(self.events)

    def change(self, asked: Asked) -> Change:
        """What a caller hands to a ledger.

        No two changes of the run have one key, whatever keys a file has.
        """
        event = self.events[asked.number]
        key = f"{asked.number}/{event.key}"[:KEY_MAX]
        return Change(event.counter, event.change, key, to_datetime(asked.at_ms), asked.home)

    @staticmethod
    def home_of(region: str, rng: random.Random) -> str:
        """Where a change is at home that a caller sends through `region`."""
        return REGIONS[region == REGIONS[0]] if rng.random() < ELSEWHERE else region

    @cached_property
    def witnessed(self) -> Sequence[int]:
        """The changes of witnesses, in order."""
        return [number for number, event in enumerate(self.events) if is_witness(event.counter)]

    def counter_to_read(self, rng: random.Random, reached: int) -> str:
        """A witness; `reached` is the latest change that somebody sent."""
        latest = bisect_right(self.witnessed, reached)
        back = rng.randint(1, LATEST if rng.random() < OFTEN else OLDER)
        return self.events[self.witnessed[max(0, latest - back)]].counter

    def settings(self, region: str, place: str, endpoint: str | None = None) -> Settings:
        """The settings of a caller at `place` that asks `region`; through the proxy, else
        straight to `endpoint`.
        """
        rng = random.Random(f"{self.seed} fold")
        fold_min = rng.choice((1, 2, 4, 8))
        return Settings(
            table=TABLE,
            region=region,
            regions=REGIONS,
            endpoint_url=endpoint or f"{self.proxy}/{place}",
            shards={"witness:7": 2},  # those whose number begins with 7
            limits={LIMITED: Limit(ceiling=4**WITNESS_CHANGES, region=REGIONS[0])},
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
