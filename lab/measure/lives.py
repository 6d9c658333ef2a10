"""What a change costs over its whole life, alone and in packs, and what a read costs.

Rule 1: Every sum is checked.
"""

import io
from collections.abc import Iterator
from functools import partial

from compactor.known import KnownCovers
from compactor.report import Tally
from compactor.settle_named import Naming, settle_named
from lab.measure.figure import Figure
from lab.measure.metered_table import HOME, START_MS, Charge, Shop
from ledger import Change
from ledger.client.message import dumps_many
from ledger.core.checks import to_datetime
from ledger.core.requests import Instant
from ledger.core.running import run
from ledger.lane.add import PACK_CHANGES
from ledger.lane.named import Named
from ledger.tables.dynamo import ByRegion
from service.add_from_queue.handler import AddFromQueue
from service.observe import Watch

COUNTER = "stock:85123A"
ROUND = 10_000  # changes between two runs of the compactor
PACKS = {(10, 20, 37): 0.27, (38, 39, 77, 100, 115, 153, 200, 343, PACK_CHANGES): 0.16}
"""The goal of a change by how many are in a pack.

One more than some KB hold is the dearest: its KB is nearly empty.
"""

QUEUED_PER_S = 1_000
BATCH, WINDOW_S = 100, 1
"""Messages that `add_from_queue` is handed, and how long they are waited for."""


class Life(Shop):
    """A counter in a table of its own."""

    def __init__(self) -> None:
        super().__init__(clean_units_per_s=10**9)  # nothing waits
        self.changes, self._not_of_changes = 0, self.cost

    def write(self, changes: int, *, each: int = 500, pack: bool = False) -> None:
        """Add that many changes of 1, about a millisecond apart, `each` in a call; pack: they
        are one item.
        """
        for done in range(0, changes, each):
            number = min(each, changes - done)
            self.now_ms += number
            self.add_many([Change(COUNTER, 1)] * number, pack=pack)
        self.changes += changes

    def compact(self) -> None:
        """A compaction after everything is old enough, then the two visits of a clean."""
        self.now_ms += self.settings.allowed_lateness_ms + 1
        self.compactor.compact(COUNTER)
        self.compactor.compact(COUNTER)
        self.now_ms += self.settings.keep_ms
        self.compactor.compact(COUNTER)

    def read(self, *, behind: float = 0) -> Charge:
        """What a read costs that has all changes, or the folded ones, which are as many as
        `behind` leaves.
        """

        def read() -> None:
            value = self.reader.read(COUNTER, behind=behind).value
            if not behind and value != self.changes:
                raise AssertionError(
                    f"the counter reads {value}, but it has {self.changes} changes of 1"
                )

        charge = self.charged(read)
        self._not_of_changes += charge
        return charge

    def a_change(self) -> Charge:
        """What writing and compacting were charged, for all changes, once the value is right."""
        self.read()
        return self.cost - self._not_of_changes


def hot(small: bool) -> Iterator[Figure]:
    life = Life()
    for target in (100, 1_000) if small else (100, 1_000, 10_000):
        while life.changes < target:
            life.write(min(ROUND, target - life.changes))
            life.compact()
        read = life.read()
        yield Figure(f"read after {target:,} changes: requests", read.requests, 2, 2)
        yield Figure(f"read after {target:,} changes: read units", read.read_units, 2, 2)
    spent, of = life.a_change(), f"hot counter ({life.changes:,} changes):"
    yield Figure(f"{of} write units a change, whole life", spent.write_units / life.changes, 2.1, 2)
    yield Figure(
        f"{of} read units of the compactor a change", spent.read_units / life.changes, 0.15, 0.01
    )


def cold(small: bool) -> Iterator[Figure]:
    life = Life()
    life.write(20)
    life.compact()
    yield Figure(
        "cold counter (20 changes): write units a change", life.a_change().write_units / 20, 1, 1
    )


def packs(small: bool) -> Iterator[Figure]:
    for sizes, most in PACKS.items():
        worst, size = max((in_packs(size, 2_000 if small else 20_000), size) for size in sizes)
        where = f"packs of {sizes[0]} to {sizes[-1]}, the worst ({size})"
        yield Figure(f"hot counter, {where}: write units a change, whole life", worst, most, 0.09)


def through_sqs(small: bool) -> Iterator[Figure]:
    for each in (1, 250):
        name = f"the same through SQS at {QUEUED_PER_S:,}/s, {each} in a message"
        yield Figure(name, queued(each, 3 if small else 60), 0.2, 0.09)


def late(small: bool) -> Iterator[Figure]:
    """In a process that did the others: one that begins reads every segment under the cover."""
    settles = 40 if small else 400
    name = f"a settle of one change after {settles} such settles: read units"
    yield Figure(name, settled(settles), 6, 1)


def in_packs(each: int, changes: int) -> float:
    """Write units of a change over its whole life, put, folded, settled and cleaned, with so
    many in each pack.
    """
    life = Life()
    for number in (changes // 2, changes - changes // 2):
        life.write(number, each=each, pack=True)
        life.compact()
    return life.a_change().write_units / changes


def queued(each: int, seconds: int) -> float:
    """The same of a change that comes through SQS with 1,000 others a second, `each` in a message.

    The function's own handler gets batches as serverless.yml has them, and the lane is visited
    every minute.
    """
    life, watch = Life(), Watch.here("bench", io.StringIO())
    handle = AddFromQueue(life.ledger, watch, pack=True)
    batch, total = min(BATCH * each, QUEUED_PER_S * WINDOW_S), seconds * QUEUED_PER_S
    for first in range(0, total, batch):
        changes = []
        for number in range(first, min(first + batch, total)):
            life.now_ms += 1_000 // QUEUED_PER_S
            changes.append(Change(COUNTER, 1, str(number), to_datetime(int(life.now_ms))))
        bodies = [dumps_many(changes[i : i + each]) for i in range(0, len(changes), each)]
        sent = {"eventSource": "aws:sqs", "attributes": {"ApproximateReceiveCount": "1"}}
        records = [{"messageId": str(n), "body": body, **sent} for n, body in enumerate(bodies)]
        if failed := handle({"Records": records})["batchItemFailures"]:
            raise AssertionError(f"{len(failed)} messages failed")
        life.changes += len(changes)
        if (first + batch) % (60 * QUEUED_PER_S) < batch:
            life.compact()
    life.compact()
    return life.a_change().write_units / life.changes


def settled(settles: int) -> float:
    """Read units of a settle of one change, by its name, in a lane that had so many; all fall
    under one cover, and one process does them.
    """
    life, known = Life(), KnownCovers()
    life.write(100)
    life.compact()
    (lane,), table = life.settings.lanes_of(COUNTER), ByRegion(HOME, life.tables)
    for number in range(settles + 1):
        life.now_ms += 60_000
        at = to_datetime(START_MS + 100 * number // (settles + 1))
        stray = life.ledger.add(COUNTER, 1, idempotency_key=str(number), at=at).delta.token
        tally, clock = Tally(), partial(Instant, int(life.now_ms), int(life.now_ms))
        naming, fold_max = Naming(Named.of([stray])), life.settings.fold_max
        program = settle_named(lane, tally, naming, fold_max=fold_max, known=known)
        units = life.charged(partial(run, program, table, clock)).read_units
        life.changes += tally.settled
    life.read()
    return units


def tail(small: bool) -> Iterator[Figure]:
    """Reads of packs as full as they go, above a checkpoint."""
    changes, life = 1_000 if small else 100_000, Life()
    life.write(PACK_CHANGES, each=PACK_CHANGES, pack=True)
    life.compact()
    life.write(changes, each=PACK_CHANGES, pack=True)
    of = f"read of a tail of {changes:,} changes in packs:"
    for how, read, requests, units in (
        ("", life.read(), 5, 2 + changes // 150),
        (", with behind=", life.read(behind=3_600), 1, 1),
    ):
        yield Figure(f"{of} requests{how}", read.requests, requests, 1)
        yield Figure(f"{of} read units{how}", read.read_units, units, 1 if how else changes / 180)


PARTS = (hot, cold, packs, through_sqs, late, tail)
