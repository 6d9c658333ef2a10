"""Who acts on the live page: writers, readers and compactors of this library, and of the two designs everybody tries.

Rule 1: Ours are the shipped programs; the naive ones are those of `lab.designs`.
Rule 2: A change is sent to all three alike, and again until it is acknowledged, as a queue does.
Rule 3: A script stops and goes on at any yield.
"""

from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

from compactor.report import Tally
from compactor.visit import visit
from lab.designs import item_collection as naive
from lab.designs.atomic import Atomic
from lab.designs.simulated import Simulated
from lab.live.customers import COUNTER
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

Send = Callable[[], Generator[Any, Any, object]]
Read = Callable[[], Generator[Any, Any, tuple[int, int | None]]]
"""The value, and of how many changes it is the sum; None where the read does not know."""


def sends(delta: Delta, region: str, simulated: Simulated) -> dict[str, Send]:
    """One delivery of a change to each design, by who sends it; to the naive merge under the same token."""
    change, token = delta.change, delta.token
    return {
        "writer": lambda: add(delta),
        "writer of ADD": lambda: simulated.steps(ATOMIC.add(COUNTER, change, token, 0), region, ATOMIC.sdk_attempts),
        "writer of the merge": lambda: add(Delta(NAIVE_LANE, token, change)),
    }


def until_acknowledged(send: Send) -> Script:
    while True:
        try:
            yield from send()
            return
        except LedgerError:
            yield RETRY


def readings(settings: Settings, simulated: Simulated) -> dict[str, tuple[str, Read]]:
    """By design, who reads it strongly, and how."""

    def ours() -> Generator[Any, Any, tuple[int, int | None]]:
        lanes = settings.lanes_of(COUNTER)
        _, sums = yield from read(lanes, consistent=True, read_time_max_ms=settings.read_time_max_ms)
        return sum(lane.value for lane in sums), sum(lane.count for lane in sums)

    def atomic() -> Generator[Any, Any, tuple[int, int | None]]:
        return (yield from simulated.steps(ATOMIC.value(COUNTER), settings.region)), None

    def merged() -> Generator[Any, Any, tuple[int, int | None]]:
        value, _ = yield from naive.read_all(NAIVE_LANE)
        return value, None

    return {"ours": ("reader", ours), "atomic": ("reader of ADD", atomic), "merge": ("reader of the merge", merged)}


def reads(once: Read, see: Callable[[int, int | None], None]) -> Script:
    """Reads for ever; `see` is given what each showed."""
    while True:
        yield READ
        try:
            see(*(yield from once()))
        except LedgerError as error:
            check_passes(error)


def compacts(settings: Settings, done: Counter[str]) -> Script:
    """Visits to the lanes of its own Region, for ever. `done` counts what they did, also those cut short."""
    while True:
        yield VISIT
        for lane in settings.lanes_of(COUNTER, settings.region):
            tally = Tally()
            try:
                yield from visit(lane, tally, settings)
            except LedgerError as error:
                check_passes(error)
            finally:
                done.update(folded=tally.folded, settled=tally.settled, cleaned=tally.cleaned)


def check_passes(error: LedgerError) -> None:
    """Raises what nothing in the scene can cause."""
    if isinstance(error, DamagedItem | LaneDamaged):
        raise error


def merges() -> Script:
    """The naive merge's job, for ever."""
    while True:
        yield MERGE
        try:
            yield from naive.merge(NAIVE_LANE)
        except LedgerError:
            continue
