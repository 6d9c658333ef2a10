"""The loads of ring.md's table and six more, each played by the model of a lane.

Rule 1: All is drawn from a seed.
Rule 2: A load of many lanes is that of one of them where all are alike; where they are not, of some of each kind,
weighed by how many there are of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from lab.scale.model import Coming, LaneModel, Told

BURST, BURST_S = 20, 10.0
"""Changes that come together, and within how many seconds."""

LATE_S = 20.0


def at_random(rate: float, drawn: Random, *, late: float = 0.0) -> Coming:
    """late: the share of items that come LATE_S after they were made."""
    at_s = 0.0
    while True:
        at_s += drawn.expovariate(rate)
        yield at_s, at_s - (LATE_S if late and drawn.random() < late else 0.0)


def in_bursts(rate: float, drawn: Random) -> Coming:
    """The same number of items, BURST at a time."""
    begins, waiting = 0.0, list[float]()
    while True:
        begins += drawn.expovariate(rate / BURST)
        while waiting and waiting[0] <= begins:
            at_s = waiting.pop(0)
            yield at_s, at_s
        waiting = sorted([*waiting, *(begins + drawn.uniform(0, BURST_S) for _ in range(BURST))])


def evenly(rate: float) -> Coming:
    number = 0
    while True:
        number += 1
        yield number / rate, number / rate


@dataclass(frozen=True, slots=True)
class Load:
    """rate: items of a lane, a second. each: changes of an item. lanes: how many of them."""

    name: str
    rate: float
    lanes: float = 1
    each: int = 1
    coming: Callable[[float, Random], Coming] = at_random
    draw_k: int | None = None

    @property
    def changes_per_s(self) -> float:
        return self.rate * self.each * self.lanes

    def told(self, items: int, seed: int = 1) -> Told:
        """What becomes of so many items of a lane, after it has been at work for a while."""
        drawn = Random(f"{self.name} {self.rate} {seed}")
        lane = LaneModel(f"stock:{drawn.randrange(10**6):06}", self.each, draw_k=self.draw_k)
        coming = self.coming(self.rate, drawn)
        lane.run(coming, max(items // 5, int(300 * self.rate)))
        lane.forget()
        lane.run(coming, items)
        return lane.told


def late_ones(rate: float, drawn: Random) -> Coming:
    return at_random(rate, drawn, late=0.01)


def packs_of_time(rate: float, drawn: Random) -> Coming:
    return evenly(rate)


RINGS = (
    *(Load(f"draw of 1 in {k}", 1e-5, draw_k=k) for k in (8, 16, 64)),
    *(Load("as shipped", rate) for rate in (1e-5, 0.01, 1.0, 30.0, 1_000.0)),
    Load("bursts of 20 in 10 s", 1e-5, coming=in_bursts),
)
"""Those of ring.md, section 3."""

MORE = (
    Load("bursts of 20 in 10 s", 0.01, coming=in_bursts),
    Load("packs of 2", 0.005, each=2),
    Load("packs of 100, evenly", 10.0, each=100, coming=packs_of_time),
    Load("busy: visits follow each other", 100.0),
    Load("busy: visits follow each other", 300.0),
    Load("1 in 100 is 20 s late", 0.01, coming=late_ones),
    Load("1,000/s of a counter with 64 shards", 1_000 / 64, lanes=64),
)

ZIPF_LANES, ZIPF_RATE = 10**6, 10**4


def zipf(parts: int = 12) -> Iterator[tuple[float, Load]]:
    """(the lanes of a part, one of them): of all lanes the nth is 1/n as busy as the first."""
    whole = sum(1 / n for n in range(1, ZIPF_LANES + 1))
    first = 1
    for part in range(1, parts + 1):
        last = max(first, round(ZIPF_LANES ** (part / parts)))
        share = sum(1 / n for n in range(first, last + 1)) / whole
        lanes = last - first + 1
        yield lanes, Load("Zipf", ZIPF_RATE * share / lanes, lanes=lanes)
        first = last + 1
