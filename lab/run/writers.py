"""A writer process: its threads send their share of the changes, retry what is unknown, and send
some again later.

Rule 1: Whoever sends a change sends its idempotency key and instant: first, again, elsewhere, or in
the place of a process that was killed.
Rule 2: An invocation is recorded before it is sent. A process that takes over reads there how far
its predecessor came.
Rule 3: An error of the library that no fault can cause is recorded as broken.
"""

import heapq
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from lab.engines.proxy import OUTSIDE
from lab.run.plan import REGIONS, SLOTS, THREADS, Asked, Plan
from lab.run.record import Line, Recorder, Worker, lines_of, work_all
from ledger import Change, Ledger, Receipt
from ledger.core.errors import (
    GaveUp,
    LedgerError,
    OutcomeUnknown,
    OutOfReach,
    Throttled,
    TransactionConflict,
    Unavailable,
)

BATCH = (2, 24)
SINGLE = 0.15
PACKED, GATHERED = 0.4, 0.2  # of the batches; the others go as single deltas
RESEND, RESEND_OPEN, RESEND_ELSEWHERE = 0.12, 0.8, 0.4
TAKEN_OVER = 200
LATE, LATE_S = 0.1, 10.0  # of the changes, which are sent up to so long after they were made
AHEAD, AHEAD_BY_MS = 0.02, (0, 3_000)
WAITING_S = 0.05

Outcome = Receipt | LedgerError


def main(plan: Plan, writer: int, generation: int, reached: Any, stop: Any) -> None:
    """Writes until this writer has sent its share, and some of it again, or `stop.value` is true.

    `reached[slot]` says how far a thread came, for the readers.
    """
    path = Path(plan.folder) / f"writer-{writer}.jsonl"
    before = lines_of(path)
    ledgers, gathering = (
        {
            region: Ledger(plan.settings(region, OUTSIDE), gather=gather, clock=plan.clock())
            for region in REGIONS
        }
        for gather in (False, True)
    )
    with Recorder(path) as recorder:
        threads = [
            WriterThread(plan, slot, generation, recorder, reached)
            for slot in range(writer * THREADS, (writer + 1) * THREADS)
        ]
        for thread in threads:
            thread.ledgers, thread.gathering = ledgers, gathering
            thread.take_over(before)
        work_all(threads, stop)


class WriterThread(Worker):
    """`ledgers`, `gathering`: those of this process, by Region."""

    ledgers: dict[str, Ledger]
    gathering: dict[str, Ledger]

    def __init__(
        self, plan: Plan, slot: int, generation: int, recorder: Recorder, reached: Any
    ) -> None:
        super().__init__(f"writer {slot} generation {generation}", plan.seed, recorder, "add")
        self._plan, self._slot, self._reached = plan, slot, reached
        self._at_once = ThreadPoolExecutor(BATCH[1])
        self._clock = plan.clock()
        self._later: list[tuple[float, Asked]] = []  # heap of (due, what)
        self._next = slot

    def act(self, stop: Any) -> None:
        while not stop.value and (self._next < self._plan.changes or self._later):
            batch, region = self._due()
            if batch:
                self._send(batch, region)
            time.sleep(
                self._rng.uniform(0, self._plan.profile.pause_s)
                if self._next < self._plan.changes
                else WAITING_S
            )

    def take_over(self, before: list[Line]) -> None:
        """Goes on where a killed predecessor stopped: it sends most of what that left open
        again, and some more.
        """
        mine = f"writer {self._slot} "
        lines = [line for line in before if line["process"].startswith(mine) and line["f"] == "add"]
        asked = [
            Asked(*each) for line in lines if line["type"] == "invoke" for each in line["value"]
        ]
        ended = [each for line in lines if line["type"] != "invoke" for each in line["value"]]
        sure = {number for number, how in ended if how == "ok"}
        for each in dict.fromkeys(asked):
            self._next = max(self._next, each.number + SLOTS)
        for each in dict.fromkeys(asked[-TAKEN_OVER:]):
            if self._rng.random() < (RESEND if each.number in sure else RESEND_OPEN):
                self._send_later(each, self._plan.profile.again_s)

    def _due(self) -> tuple[list[Asked], str]:
        """What to send now, and through which Region."""
        if self._later and self._later[0][0] <= time.monotonic():
            _, asked = heapq.heappop(self._later)
            elsewhere = self._rng.random() < RESEND_ELSEWHERE
            return [asked], self._rng.choice(REGIONS) if elsewhere else asked.home
        region = self._rng.choice(REGIONS)
        count = 1 if self._rng.random() < SINGLE else self._rng.randint(*BATCH)
        batch = []
        for change in [self._make(region) for _ in range(count) if self._next < self._plan.changes]:
            if self._rng.random() < LATE:
                self._send_later(change, LATE_S)
            else:
                batch.append(change)
        return batch, region

    def _make(self, region: str) -> Asked:
        number = self._next
        self._reached[self._slot] = number
        self._next += SLOTS
        ahead_ms = self._rng.randint(*AHEAD_BY_MS) if self._rng.random() < AHEAD else 0
        return Asked(number, self._plan.home_of(region, self._rng), self._clock() + ahead_ms)

    def _send(self, batch: list[Asked], region: str) -> None:
        """Sends a batch, and plans to send what it leaves open again, and some of the rest."""
        value = [[asked.number, asked.home, asked.at_ms] for asked in batch]
        self._recorder.write(self._name, "invoke", "add", value, region=region)
        outcomes = self._put(region, [self._plan.change(asked) for asked in batch])
        hows = [self._how(outcome) for outcome in outcomes]
        kind = hows[0] if len(set(hows)) == 1 else "info"
        ended = [[asked.number, how] for asked, how in zip(batch, hows, strict=True)]
        packed = sum(isinstance(each, Receipt) and each.outcome == "accepted" for each in outcomes)
        self._recorder.write(self._name, kind, "add", ended, region=region, packed=packed)
        for asked, how in zip(batch, hows, strict=True):
            if how != "ok" or self._rng.random() < RESEND:
                self._send_later(asked, self._plan.profile.again_s)

    def _put(self, region: str, changes: Sequence[Change]) -> Sequence[Outcome]:
        """Sends one change alone, several as deltas or packs, or each by a thread of its own, so
        that they gather.
        """
        if len(changes) == 1:
            return [_alone(self.ledgers[region], changes[0])]
        drawn = self._rng.random()
        if drawn < GATHERED:
            return list(self._at_once.map(partial(_alone, self.gathering[region]), changes))
        return self.ledgers[region].add_many(changes, pack=drawn < GATHERED + PACKED)

    def _how(self, outcome: Outcome) -> str:
        match outcome:
            case Receipt():
                return "ok"
            case OutcomeUnknown():
                return "info"
            case Throttled() | TransactionConflict() | Unavailable() | OutOfReach() | GaveUp():
                return "fail"
        self.broken(outcome)
        return "info"

    def _send_later(self, asked: Asked, most_s: float) -> None:
        heapq.heappush(self._later, (time.monotonic() + self._rng.uniform(0, most_s), asked))


def _alone(ledger: Ledger, change: Change) -> Outcome:
    key, at = change.idempotency_key, change.at
    try:
        return ledger.add(
            change.counter, change.change, idempotency_key=key, at=at, region=change.region
        )
    except LedgerError as error:
        return error
