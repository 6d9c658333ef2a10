"""A test double: a table in several Regions, with lag and faults from a seed, to give to Ledger, Reader and Compactor.

Rule 1: A request is a step and a millisecond, and between two requests the world does what it does by itself.
Rule 2: The same calls after the same seed are the same history, so its tables ask for one request at a time.
Rule 3: Threads that come all the same meet each other between two steps, in an order that no seed knows.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ledger.errors import LedgerError
from ledger.requests import Pause, Request
from simulator.choices import Drawn
from simulator.faults import NONE, Faults
from simulator.happening import by_itself, send
from simulator.world import Landing, World

WAIT_STEPS_MAX = 1_000


class Simulation:
    """The table that `regions` share, for tests of your own code.

    Give `table(region)` as `table=` to Ledger and Reader, or in `tables=` to Compactor, and `clock` as their clock.
    Without `faults` nothing fails, and items reach the other Regions one by one, in any order. With them calls raise
    the errors of `ledger.errors` that a real table makes them raise. Thread-safe; the same calls after the same `seed`
    are the same history as long as they come from one thread, as those of `Compactor.run` do.
    """

    def __init__(self, regions: Sequence[str], *, seed: int = 0, faults: Faults = NONE) -> None:
        self.world = World(regions, Drawn(seed), lag_steps=faults.lag_steps)
        self._faults = faults
        self._lock = threading.RLock()

    def table(self, region: str) -> SimulatedTable:
        """The table as it is seen in a Region. Raises ValueError when there is no such Region."""
        if region not in self.world.regions:
            raise ValueError(f"{region!r} is not one of the Regions {self.world.regions}")
        return SimulatedTable(self, region)

    def clock(self) -> int:
        """The time of this world, in milliseconds since 1970."""
        return self.world.now_ms

    def wait(self, ms: int) -> None:
        """Let time pass, and the world do what it does meanwhile."""
        for _ in range(min(ms, WAIT_STEPS_MAX)):
            self.step()
        with self._lock:
            self.world.now_ms += max(0, ms - WAIT_STEPS_MAX)

    def cut_off(self, region: str) -> None:
        """Cut a Region off from the others, until it is joined again."""
        with self._lock:
            self.world.cut.add(region)

    def come_to_rest(self) -> None:
        """Join all Regions, and let everything that is on its way arrive."""
        with self._lock:
            self.world.quiesce()

    def step(self) -> None:
        """One millisecond."""
        with self._lock:
            self.world.step += 1
            self.world.now_ms += 1
            by_itself(self.world, self._faults, _unheard)

    def answer(self, region: str, request: Request) -> Any:
        """What `region` answers; a transaction's answer comes when its items are visible there."""
        if isinstance(request, Pause):
            return self.wait(request.ms)
        with self._lock:
            self.step()
            answer = send(self.world, region, request, self._faults, _unheard)
        if isinstance(answer, LedgerError):
            raise answer
        if isinstance(answer, Landing):
            while answer.left:
                self.step()
            return None
        return answer


class SimulatedTable:
    """One Region's view of a Simulation."""

    one_at_a_time = True

    def __init__(self, simulation: Simulation, region: str) -> None:
        self._simulation, self._region = simulation, region

    def answer(self, request: Request, /) -> Any:
        """The answer to a request. Raises a LedgerError, as a table does."""
        return self._simulation.answer(self._region, request)


def _unheard(what: object, came: object) -> None:
    """Nobody keeps a trace."""
