"""Who acts on the live page: writers, readers and compactors of this library, and of the two designs everybody tries.

Rule 1: Ours are the shipped programs.
Rule 2: The naive ones are those of `lab.designs.naive` and `lab.designs`.
Rule 3: A change is sent to all three alike, and again until it is acknowledged, as a queue does.
Rule 4: A script stops and goes on at any yield.
"""

from collections import Counter
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from compactor.report import Tally
from compactor.visit import visit
from lab.designs import naive
from lab.designs.atomic import Atomic
from lab.designs.design import Sight
from lab.designs.simulated import Simulated
from ledger.errors import DamagedItem, LaneDamaged, LedgerError
from ledger.lane.add import add
from ledger.settings import Settings
from ledger.values import Delta, Lane
from reader.read import read
from simulator.process import Script, Sleep

RETRY, READ, VISIT, MERGE = (Sleep(steps) for steps in (20, 15, 100, 300))
"""Rests between two tries, reads, visits and merges."""
NAIVE_LANE = Lane("eu-west-1", 0, "naive-merge")
"""The naive merge has one list of changes, and every Region works on it."""
ATOMIC = Atomic()


Seen = TypeVar("Seen")
Reading = Generator[Any, Any, Seen]
Readings = dict[str, tuple[str, Callable[[], Reading[Seen]]]]
Send = Callable[[], Generator[Any, Any, object]]


def until_acknowledged(send: Send, retry: Sleep = RETRY) -> Script:
    while True:
        try:
            yield from send()
            return
        except LedgerError:
            yield retry


def sends(delta: Delta, region: str, simulated: Simulated) -> dict[str, Send]:
    """One delivery of a change to each design, by who sends it; to the naive merge under the same token."""
    counter, change, token = delta.lane.counter, delta.change, delta.token
    return {
        "writer": lambda: add(delta),
        "writer of ADD": lambda: simulated.steps(ATOMIC.add(counter, change, token, 0), region, ATOMIC.sdk_attempts),
        "writer of the merge": lambda: add(Delta(NAIVE_LANE, token, change)),
    }


def readings(settings: Settings, counter: str, simulated: Simulated) -> Readings[Sight]:
    """By design, who reads it strongly, and how."""

    def ours() -> Reading[Sight]:
        lanes = settings.lanes_of(counter)
        _, sums = yield from read(lanes, consistent=True, read_time_max_ms=settings.read_time_max_ms)
        return Sight(sum(each.value for each in sums), sum(each.count for each in sums))

    def atomic() -> Reading[Sight]:
        return Sight((yield from simulated.steps(ATOMIC.value(counter), settings.region)))

    def merged() -> Reading[Sight]:
        value, _ = yield from naive.read(NAIVE_LANE)
        return Sight(value)

    return {"ours": ("reader", ours), "atomic": ("reader of ADD", atomic), "merge": ("reader of the merge", merged)}


def reads(once: Callable[[], Reading[Seen]], see: Callable[[Seen], None], report: Callable[[str], None]) -> Script:
    """Reads for ever; `see` is given what each showed, `report` what nothing in the scene can cause."""
    while True:
        yield READ
        try:
            see((yield from once()))
        except (DamagedItem, LaneDamaged) as damage:
            report(str(damage))
        except LedgerError:
            continue


def compacts(settings: Settings, counter: str, done: Counter[str], report: Callable[[str], None]) -> Script:
    """Visits to the lanes of its own Region, for ever. `done` counts what they did, also those cut short."""
    while True:
        yield VISIT
        for lane in settings.lanes_of(counter, settings.region):
            tally = Tally()
            try:
                yield from visit(lane, tally, settings)
                done["visits"] += 1
            except (DamagedItem, LaneDamaged) as damage:
                report(str(damage))
            except LedgerError:
                continue
            finally:
                done.update(folded=tally.folded, settled=tally.settled, cleaned=tally.cleaned)


def merges() -> Script:
    """The naive merge's job, for ever."""
    while True:
        yield MERGE
        try:
            yield from naive.merge(NAIVE_LANE)
        except LedgerError:
            continue
