"""A reader process: its threads read counters that are being written, one by one and several at once.

Rule 1: A read that may come from the cache began, for the judgement, when the answer in the cache was read.
Rule 2: What the library raises that a fault cannot cause is recorded as broken.
"""

import time
from pathlib import Path
from typing import Any

from lab.engines.proxy import OUTSIDE
from lab.torture.plan import DELTAS_OF_COUNTER, REGIONS, Plan, name_of
from lab.torture.record import Recorder, Worker, work_all
from ledger.checks import to_ms
from ledger.errors import LedgerError, ReadTooSlow, Throttled, TransactionConflict, Unavailable
from reader import Reader

TTL_S = 0.4
PAUSE_S = (0.0, 0.4)
WEAK, CACHED, SEVERAL = 0.1, 0.2, 0.1
SEVERAL_COUNTERS = 5
LATEST, OLDER = 0.6, 400  # a share of reads takes one of the latest counters, the others any of the last OLDER


def main(plan: Plan, reader: int, generation: int, reached: Any, stop: Any) -> None:
    """Reads in its own Region until `stop.value` is true."""
    region = REGIONS[reader % len(REGIONS)]
    settings = plan.settings(region, OUTSIDE)
    strong = Reader(settings, ttl=TTL_S, clock=plan.clock())
    weak = Reader(settings, ttl=TTL_S, consistent=False, clock=plan.clock())
    with Recorder(Path(plan.folder) / f"reader-{reader}.jsonl") as recorder:
        eyes = [
            _Eye(plan, f"reader {reader}.{thread} generation {generation}", region, (strong, weak), recorder, reached)
            for thread in range(plan.threads)
        ]
        work_all(eyes, stop)


class _Eye(Worker):
    def __init__(
        self, plan: Plan, name: str, region: str, readers: tuple[Reader, Reader], recorder: Recorder, reached: Any
    ) -> None:
        super().__init__(name, plan.seed, recorder, "read")
        self._plan, self._region, self._reached = plan, region, reached
        self._strong, self._weak = readers

    def act(self, stop: Any) -> None:
        while not stop.value:
            self._read()
            time.sleep(self._rng.uniform(*PAUSE_S))

    def _read(self) -> None:
        drawn = self._rng.random()
        several, weak = drawn < SEVERAL, SEVERAL <= drawn < SEVERAL + WEAK
        counters = sorted({self._counter() for _ in range(SEVERAL_COUNTERS if several else 1)})
        max_age_s = TTL_S if several or (not weak and self._rng.random() < CACHED) else 0
        about = {"region": self._region, "strong": not weak}
        began_ns = self._recorder.write(self._name, "invoke", "read", counters, **about)
        try:
            if several:  # from the cache or not: not said
                values = self._strong.values(map(name_of, counters))
                found: list[list[object]] = [[each, values[name_of(each)], None, None] for each in counters]
                began_ns -= int(TTL_S * 1e9)
            else:
                balance = (self._weak if weak else self._strong).read(name_of(counters[0]), max_age=max_age_s)
                found = [[counters[0], balance.value, balance.count, dict(balance.by_region)]]
                if balance.cached:
                    began_ns = min(began_ns, self._plan.monotonic_ns(to_ms(balance.as_of)))
        except (Unavailable, Throttled, TransactionConflict, ReadTooSlow) as error:
            self._recorder.write(self._name, "fail", "read", counters, error=type(error).__name__)
        except LedgerError as error:
            self.broken(error, counters)
        else:
            self._recorder.write(self._name, "ok", "read", found, began=began_ns, **about)

    def _counter(self) -> int:
        latest: int = max(self._reached) // DELTAS_OF_COUNTER
        if self._rng.random() < LATEST:
            return max(0, latest - self._rng.randint(0, 2 * self._plan.slots // DELTAS_OF_COUNTER + 8))
        return max(0, latest - self._rng.randint(0, OLDER))
