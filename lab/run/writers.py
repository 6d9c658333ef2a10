"""A writer process: its threads ask for their share of the changes, retry what is unknown, and send some again later.

Rule 1: A change is asked for with its idempotency key and instant, by whoever sends it: first, again, elsewhere, or in
the place of a process that was killed.
Rule 2: What was invoked stands in the record first; a process that takes over reads there how far its predecessor came.
Rule 3: Whatever the library raises that a fault cannot cause is recorded as broken.
Rule 4: Every design gets the same changes through the same Regions, and again what it alone left open.
"""

import heapq
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from lab.engines.proxy import OUTSIDE
from lab.run.plan import REGIONS, SLOTS, THREADS, Asked, Plan
from lab.run.record import OURS, Line, Recorder, Worker, lines_of, work_all
from lab.run.usual_ways import NaiveWay
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
TAKEN_OVER = 200
LATE, LATE_BY_MS = 0.1, (0, 6_000)
AHEAD, AHEAD_BY_MS = 0.02, (0, 3_000)
WAITING_S = 0.05

Outcome = Receipt | LedgerError | None
Send = Callable[[str, Sequence[Change]], Sequence[Outcome]]


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
    naive = [NaiveWay(plan, name, OUTSIDE) for name in plan.profile.naive]
    with Recorder(path) as recorder:
        threads = [
            WriterThread(plan, slot, generation, recorder, reached)
            for slot in range(writer * THREADS, (writer + 1) * THREADS)
        ]
        for thread in threads:
            thread.sends = {OURS: thread.of_ours(ledgers, gathering)} | {way.name: of_naive(way) for way in naive}
            thread.take_over(before)
        work_all(threads, stop)


def of_naive(way: NaiveWay) -> Send:
    def send(region: str, changes: Sequence[Change]) -> Sequence[Outcome]:
        return [_outcome(partial(way.add, change, region)) for change in changes]

    return send


class WriterThread(Worker):
    """`sends`: how each design is sent changes."""

    def __init__(self, plan: Plan, slot: int, generation: int, recorder: Recorder, reached: Any) -> None:
        super().__init__(f"writer {slot} generation {generation}", plan.seed, recorder, "add")
        self._plan, self._slot, self._reached = plan, slot, reached
        self._at_once = ThreadPoolExecutor(BATCH[1])
        self._clock = plan.clock()
        self._later: list[tuple[float, int, Asked, tuple[str, ...]]] = []  # heap of (due, sends, what, designs)
        self._next = slot
        self.sends: dict[str, Send] = {}

    def of_ours(self, ledgers: dict[str, Ledger], gathering: dict[str, Ledger]) -> Send:
        """One change alone; several as deltas, in packs, or each by a thread of its own, which gather."""

        def send(region: str, changes: Sequence[Change]) -> Sequence[Outcome]:
            if len(changes) == 1:
                return [_alone(ledgers[region], changes[0])]
            drawn = self._rng.random()
            if drawn < GATHERED:
                return list(self._at_once.map(partial(_alone, gathering[region]), changes))
            return ledgers[region].add_many(changes, pack=drawn < GATHERED + PACKED)

        return send

    def act(self, stop: Any) -> None:
        while not stop.value and (self._next < self._plan.changes or self._later):
            self._send(*self._due())
            time.sleep(
                self._rng.uniform(0, self._plan.profile.pause_s) if self._next < self._plan.changes else WAITING_S
            )

    def take_over(self, before: list[Line]) -> None:
        """Goes on where a killed predecessor stopped: sends most of what it left open, and some of the rest, again."""
        mine = f"writer {self._slot} "
        lines = [line for line in before if line["process"].startswith(mine) and line["f"] == "add"]
        asked = [Asked(*each) for line in lines if line["type"] == "invoke" for each in line["value"]]
        ended = [each for line in lines if line["type"] != "invoke" for each in line["value"]]
        sure = {number for number, how in ended if how == "ok"}
        for each in dict.fromkeys(asked):
            self._next = max(self._next, each.number + SLOTS)
        for each in dict.fromkeys(asked[-TAKEN_OVER:]):
            if self._rng.random() < (RESEND if each.number in sure else RESEND_OPEN):
                self._send_later(each, 1, tuple(self.sends))

    def _due(self) -> tuple[list[Asked], str, int, tuple[str, ...]]:
        """What to send now, through which Region, how often it was sent before, and to which designs."""
        if self._later and self._later[0][0] <= time.monotonic():
            _, sends, asked, designs = heapq.heappop(self._later)
            elsewhere = self._rng.random() < RESEND_ELSEWHERE
            return [asked], self._rng.choice(REGIONS) if elsewhere else asked.home, sends, designs
        region = self._rng.choice(REGIONS)
        count = 1 if self._rng.random() < SINGLE else self._rng.randint(*BATCH)
        return [self._ask(region) for _ in range(count) if self._next < self._plan.changes], region, 0, ()

    def _ask(self, region: str) -> Asked:
        number = self._next
        self._reached[self._slot] = number
        self._next += SLOTS
        at_ms, drawn = self._clock(), self._rng.random()
        if drawn < LATE:
            at_ms -= self._rng.randint(*LATE_BY_MS)
        elif drawn < LATE + AHEAD:
            at_ms += self._rng.randint(*AHEAD_BY_MS)
        return Asked(number, self._plan.home_of(region, self._rng), at_ms)

    def _send(self, batch: list[Asked], region: str, sends: int, designs: tuple[str, ...]) -> None:
        """To all designs where none is named."""
        if not batch:
            return
        again = [self._rng.random() < RESEND for _ in batch]
        for design in designs or self.sends:
            hows = self._send_to(design, batch, region)
            for asked, how in zip(batch, hows, strict=True):
                if how != "ok":
                    self._send_later(asked, sends + 1, (design,))
        for asked, is_again in zip(batch, again, strict=True):
            if is_again:
                self._send_later(asked, sends + 1, designs or tuple(self.sends))

    def _send_to(self, design: str, batch: list[Asked], region: str) -> list[str]:
        value = [[asked.number, asked.home, asked.at_ms] for asked in batch]
        self._recorder.write(self._name, "invoke", "add", value, region=region, design=design)
        outcomes = self.sends[design](region, [self._plan.change(asked) for asked in batch])
        hows = [self._how(outcome) for outcome in outcomes]
        kind = hows[0] if len(set(hows)) == 1 else "info"
        ended = [[asked.number, how] for asked, how in zip(batch, hows, strict=True)]
        packed = sum(isinstance(each, Receipt) and each.outcome == "accepted" for each in outcomes)
        self._recorder.write(self._name, kind, "add", ended, region=region, design=design, packed=packed)
        return hows

    def _how(self, outcome: Outcome) -> str:
        match outcome:
            case Receipt() | None:
                return "ok"
            case OutcomeUnknown():
                return "info"
            case Throttled() | TransactionConflict() | Unavailable() | OutOfReach() | GaveUp():
                return "fail"
        self.broken(outcome)
        return "info"

    def _send_later(self, asked: Asked, sends: int, designs: tuple[str, ...]) -> None:
        due = time.monotonic() + self._rng.uniform(0, self._plan.profile.again_s)
        heapq.heappush(self._later, (due, sends, asked, designs))


def _alone(ledger: Ledger, change: Change) -> Outcome:
    key, at = change.idempotency_key, change.at
    return _outcome(lambda: ledger.add(change.counter, change.change, idempotency_key=key, at=at, region=change.region))


def _outcome(send: Callable[[], Receipt | None]) -> Outcome:
    try:
        return send()
    except LedgerError as error:
        return error
