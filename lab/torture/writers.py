"""A writer process: its threads ask for their share of the changes, retry what is unknown, and send some again later.

Rule 1: A change is asked for with its idempotency key and instant, by whoever sends it: first, again, elsewhere, or in
the place of a process that was killed.
Rule 2: What was invoked stands in the record first; a process that takes over reads there how far its predecessor came.
Rule 3: Whatever the library raises that a fault cannot cause is recorded as broken.
"""

import heapq
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from lab.engines.proxy import OUTSIDE
from lab.torture.plan import DELTAS_OF_COUNTER, REGIONS, Plan, name_of
from lab.torture.record import Line, Recorder, Worker, lines_of, work_all
from ledger import Change, Ledger, Receipt
from ledger.errors import (
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
RESEND_AFTER_S = (0.0, 16.0)
TAKEN_OVER = 200
LATE, LATE_BY_MS = 0.1, (0, 6_000)
AHEAD, AHEAD_BY_MS = 0.02, (0, 3_000)
SENDS_MAX = 6
MIXED = 3  # every third counter is asked for in both Regions, the others in one of them: fewer and longer lanes
PAUSE_S = (0.0, 0.5)
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Asked:
    """One change of the run as its callers keep it: enough to send it again from anywhere."""

    counter: int
    number: int
    home: str
    at_ms: int

    @property
    def change(self) -> Change:
        at = _1970 + timedelta(milliseconds=self.at_ms)
        return Change(name_of(self.counter), 4**self.number, f"key-{self.number}", at, self.home)


def main(plan: Plan, writer: int, generation: int, reached: Any, stop: Any) -> None:
    """Writes until this writer's share is asked for and sent again, or `stop.value` is true.

    `reached[slot]` says how far a thread came, for the readers.
    """
    path = Path(plan.folder) / f"writer-{writer}.jsonl"
    before = lines_of(path)
    ledgers, gathering = (
        {region: Ledger(plan.settings(region, OUTSIDE), gather=gather, clock=plan.clock()) for region in REGIONS}
        for gather in (False, True)
    )
    with Recorder(path) as recorder:
        hands = [
            _Hand(plan, writer * plan.threads + thread, generation, ledgers, gathering, recorder, reached, before)
            for thread in range(plan.threads)
        ]
        work_all(hands, stop)


class _Hand(Worker):
    def __init__(
        self,
        plan: Plan,
        slot: int,
        generation: int,
        ledgers: dict[str, Ledger],
        gathering: dict[str, Ledger],
        recorder: Recorder,
        reached: Any,
        before: list[Line],
    ) -> None:
        super().__init__(f"writer {slot} generation {generation}", plan.seed, recorder, "add")
        self._plan, self._slot, self._ledgers, self._reached = plan, slot, ledgers, reached
        self._gathering, self._at_once = gathering, ThreadPoolExecutor(BATCH[1])
        self._clock = plan.clock()
        self._later: list[tuple[float, int, Asked]] = []  # heap of (due, sends, what)
        self._next = slot
        self._take_over(before)

    def act(self, stop: Any) -> None:
        while not stop.value and (self._next < self._plan.changes or self._later):
            self._send(*self._due())
            time.sleep(self._rng.uniform(*PAUSE_S) if self._next < self._plan.changes else 0.05)

    def _take_over(self, before: list[Line]) -> None:
        """Goes on where a killed predecessor stopped: sends most of what it left open, and some of the rest, again."""
        mine = f"writer {self._slot} "
        lines = [line for line in before if line["process"].startswith(mine) and line["f"] == "add"]
        asked = [Asked(*each) for line in lines if line["type"] == "invoke" for each in line["value"]]
        ended = [each for line in lines if line["type"] != "invoke" for each in line["value"]]
        sure = {(counter, number) for counter, number, how in ended if how == "ok"}
        for each in dict.fromkeys(asked):
            self._next = max(self._next, each.counter * DELTAS_OF_COUNTER + each.number + self._plan.slots)
        for each in dict.fromkeys(asked[-TAKEN_OVER:]):
            if self._rng.random() < (RESEND if (each.counter, each.number) in sure else RESEND_OPEN):
                self._send_later(each, 1)

    def _due(self) -> tuple[list[Asked], str, int]:
        """What to send now, through which Region, and how often it was sent before."""
        if self._later and self._later[0][0] <= time.monotonic():
            _, sends, asked = heapq.heappop(self._later)
            elsewhere = self._rng.random() < RESEND_ELSEWHERE
            return [asked], self._rng.choice(REGIONS) if elsewhere else asked.home, sends
        if self._next >= self._plan.changes:
            return [], REGIONS[0], 0
        region = self._rng.choice(REGIONS)
        count = 1 if self._rng.random() < SINGLE else self._rng.randint(*BATCH)
        return [self._ask(region) for _ in range(count) if self._next < self._plan.changes], region, 0

    def _ask(self, region: str) -> Asked:
        counter, number = divmod(self._next, DELTAS_OF_COUNTER)
        self._reached[self._slot] = self._next
        self._next += self._plan.slots
        home = region if counter % MIXED == 0 else REGIONS[counter % len(REGIONS)]
        at_ms, drawn = self._clock(), self._rng.random()
        if drawn < LATE:
            at_ms -= self._rng.randint(*LATE_BY_MS)
        elif drawn < LATE + AHEAD:
            at_ms += self._rng.randint(*AHEAD_BY_MS)
        return Asked(counter, number, home, at_ms)

    def _send(self, batch: list[Asked], region: str, sends: int) -> None:
        if not batch:
            return
        value = [[each.counter, each.number, each.home, each.at_ms] for each in batch]
        self._recorder.write(self._name, "invoke", "add", value, region=region)
        outcomes = self._call(region, batch)
        hows = [self._how(outcome) for outcome in outcomes]
        kind = hows[0] if len(set(hows)) == 1 else "info"
        value = [[each.counter, each.number, how] for each, how in zip(batch, hows, strict=True)]
        self._recorder.write(self._name, kind, "add", value, region=region, packed=sum(map(_is_packed, outcomes)))
        for each, how in zip(batch, hows, strict=True):
            if sends < SENDS_MAX and (how != "ok" or self._rng.random() < RESEND):
                self._send_later(each, sends + 1)

    def _call(self, region: str, batch: list[Asked]) -> list[Receipt | LedgerError]:
        """One change alone; several as deltas, in packs, or each by a thread of its own, which gather."""
        if len(batch) == 1:
            return [_alone(self._ledgers[region], batch[0])]
        drawn = self._rng.random()
        if drawn < GATHERED:
            return list(self._at_once.map(partial(_alone, self._gathering[region]), batch))
        return self._ledgers[region].add_many([each.change for each in batch], pack=drawn < GATHERED + PACKED)

    def _how(self, outcome: Receipt | LedgerError) -> str:
        match outcome:
            case Receipt():
                return "ok"
            case OutcomeUnknown():
                return "info"
            case Throttled() | TransactionConflict() | Unavailable() | OutOfReach() | GaveUp():
                return "fail"
        self.broken(outcome)
        return "info"

    def _send_later(self, asked: Asked, sends: int) -> None:
        due = time.monotonic() + self._rng.uniform(*RESEND_AFTER_S)
        heapq.heappush(self._later, (due, sends, asked))


def _alone(ledger: Ledger, asked: Asked) -> Receipt | LedgerError:
    change = asked.change
    key, at = change.idempotency_key, change.at
    try:
        return ledger.add(change.counter, change.change, idempotency_key=key, at=at, region=change.region)
    except LedgerError as error:
        return error


def _is_packed(outcome: Receipt | LedgerError) -> bool:
    return isinstance(outcome, Receipt) and outcome.outcome == "accepted"
