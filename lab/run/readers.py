"""A reader process: its threads read counters that are being written, one by one and several at
once.

Rule 1: A read that may come from the cache began, for the judgement, when the answer in the cache
was read.
Rule 2: An error of the library that no fault can cause is recorded as broken.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab.engines.proxy import OUTSIDE
from lab.run.plan import REGIONS, THREADS, Plan
from lab.run.record import Recorder, Worker, work_all
from ledger.core.checks import to_ms
from ledger.core.errors import LedgerError, ReadTooSlow, Throttled, TransactionConflict, Unavailable
from reader import Reader

TTL_S = 0.4
PAUSE_S = (0.0, 0.4)
WEAK, CACHED, SEVERAL = 0.1, 0.2, 0.1
SEVERAL_COUNTERS = 5

Found = tuple[int | None, list[tuple[str, int, int | None]]]
"""When the read began at the earliest (None: when it was called), and (counter, sum, count) of
each.
"""


def main(plan: Plan, reader: int, generation: int, reached: Any, stop: Any) -> None:
    """Reads in its own Region until `stop.value` is true."""
    region = REGIONS[reader % len(REGIONS)]
    settings = plan.settings(region, OUTSIDE)
    strong = Reader(settings, ttl=TTL_S, clock=plan.clock())
    weak = Reader(settings, ttl=TTL_S, consistent=False, clock=plan.clock())
    with Recorder(Path(plan.folder) / f"reader-{reader}.jsonl") as recorder:
        names = (f"reader {reader}.{thread} generation {generation}" for thread in range(THREADS))
        work_all(
            [ReaderThread(plan, name, region, recorder, reached, strong, weak) for name in names],
            stop,
        )


class ReaderThread(Worker):
    """`strong`, `weak`: the readers of this process."""

    def __init__(
        self,
        plan: Plan,
        name: str,
        region: str,
        recorder: Recorder,
        reached: Any,
        strong: Reader,
        weak: Reader,
    ) -> None:
        super().__init__(name, plan.seed, recorder, "read")
        self._plan, self._region, self._reached, self.strong, self.weak = (
            plan,
            region,
            reached,
            strong,
            weak,
        )

    def act(self, stop: Any) -> None:
        while not stop.value:
            drawn = self._rng.random()
            if drawn < SEVERAL:
                self._record(
                    sorted({self._counter() for _ in range(SEVERAL_COUNTERS)}), self._values
                )
            elif drawn < SEVERAL + WEAK:
                self._record([self._counter()], partial(self._balance, self.weak), strong=False)
            else:
                self._record([self._counter()], partial(self._balance, self.strong))
            time.sleep(self._rng.uniform(*PAUSE_S))

    def _values(self, counters: Sequence[str]) -> Found:
        """The answer does not say whether it comes from the cache, where a value is at most
        TTL_S old.
        """
        since_ns = time.monotonic_ns() - int(TTL_S * 1e9)
        values = self.strong.values(counters)
        return since_ns, [(counter, values[counter], None) for counter in counters]

    def _balance(self, reader: Reader, counters: Sequence[str]) -> Found:
        [counter] = counters
        max_age_s = TTL_S if reader is self.strong and self._rng.random() < CACHED else 0
        balance = reader.read(counter, max_age=max_age_s)
        since_ns = self._plan.monotonic_ns(to_ms(balance.as_of)) if balance.cached else None
        return since_ns, [(counter, balance.value, balance.count)]

    def _record(
        self, counters: list[str], read: Callable[[Sequence[str]], Found], strong: bool = True
    ) -> None:
        about = {"region": self._region, "strong": strong}
        began_ns = self._recorder.write(self._name, "invoke", "read", counters, **about)
        try:
            since_ns, found = read(counters)
        except (Unavailable, Throttled, TransactionConflict, ReadTooSlow) as error:
            self._recorder.write(self._name, "fail", "read", counters, error=type(error).__name__)
        except LedgerError as error:
            self.broken(error, counters)
        else:
            began_ns = began_ns if since_ns is None else min(began_ns, since_ns)
            self._recorder.write(self._name, "ok", "read", found, began=began_ns, **about)

    def _counter(self) -> str:
        return self._plan.counter_to_read(self._rng, max(self._reached))
