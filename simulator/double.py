"""A test double for Ledger, Reader and Compactor: a table in several Regions, with lag and faults
from a seed.

Rule 1: A request takes a step and a millisecond, and between two requests the world does what it
does by itself.
Rule 2: The same calls after the same seed and start are the same history, so its tables take one
request at a time.
Rule 3: If several threads call it, they meet each other between two steps, in an order that no seed
knows.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ledger.core.checks import check_time, to_datetime
from ledger.core.clocks import wall_clock
from ledger.core.errors import LedgerError
from ledger.core.requests import Pause, Request
from ledger.gate.sold_out import REMEMBERED_MS
from simulator.choices import Drawn
from simulator.faults import NONE, OF_PROCESSES, Faults
from simulator.happening import LOST, by_itself, send
from simulator.strong import StrongReplica
from simulator.world import Landing, Replica, World

WAIT_STEPS_MAX = 1_000


class Simulation:
    """The table of several `regions`, for tests of your own code.

    Give `table(region)` as `table=` to Ledger and Reader, or in `tables=` to Ledger and Compactor,
    and `clock` as their clock. Without `faults` nothing fails, and items reach the other Regions
    one by one, in any order. With faults, calls raise the errors that a real table makes them
    raise. Raises ValueError for faults of processes: your code is the process.

    strong: with multi-Region strong consistency. start: the time at which it begins, an aware
    datetime; default: now, so that code which takes the time of its machine agrees with it. It is
    thread-safe. The same calls after the same `seed`, and the same `start` where they depend on the
    time, are the same history as long as they come from one thread, as those of `Compactor.run` do.
    """

    def __init__(
        self,
        regions: Sequence[str],
        *,
        seed: int = 0,
        faults: Faults = NONE,
        start: datetime | None = None,
        strong: bool = False,
    ) -> None:
        unheeded = [name for name in OF_PROCESSES if getattr(faults, name)]
        if unheeded:
            raise ValueError(
                f"A Simulation plays no {', no '.join(unheeded)}: such faults happen to a process."
            )
        replica = StrongReplica if strong else Replica
        self.world = World(regions, Drawn(seed), lag_steps=faults.lag_steps, replica=replica)
        self.world.now_ms = wall_clock() if start is None else check_time("start", start)
        self._faults = faults
        self._loses_next = False
        self._lock = threading.RLock()

    def table(self, region: str) -> SimulatedTable:
        """The table in a Region. Raises ValueError when there is no such Region."""
        return SimulatedTable(self, self._checked(region))

    def clock(self) -> int:
        """The time of this world, in milliseconds since 1970."""
        return self.world.now_ms

    def now(self) -> datetime:
        """The time of this world, for `at=`."""
        return to_datetime(self.world.now_ms)

    def wait(self, ms: int) -> None:
        """Let so many milliseconds pass; the world does what it does meanwhile."""
        for _ in range(min(ms, WAIT_STEPS_MAX)):
            self.step()
        with self._lock:
            self.world.now_ms += max(0, ms - WAIT_STEPS_MAX)

    def cut_off(self, region: str) -> None:
        """Cut a Region off from the others, until you join it: nothing replicates, and no
        request crosses.
        """
        with self._lock:
            self.world.cut.add(self._checked(region))

    def join(self, region: str) -> None:
        """End the cut of a Region; writes that piled up meanwhile are on their way again. A second
        passes, because a process remembers for so long that a Region did not answer.
        """
        with self._lock:
            self.world.cut.discard(self._checked(region))
            self.world.now_ms += REMEMBERED_MS + 1

    def lose_next_answer(self) -> None:
        """Apply the next write that comes, and answer OutcomeUnknown; a batch gets that for each
        of its changes.
        """
        with self._lock:
            self._loses_next = True

    def come_to_rest(self) -> None:
        """Join all Regions, and let everything on its way arrive. A second passes, as in `join`."""
        with self._lock:
            self.world.quiesce()
            self.world.now_ms += REMEMBERED_MS + 1

    def step(self) -> None:
        """Let one millisecond pass."""
        with self._lock:
            self.world.step += 1
            self.world.now_ms += 1
            by_itself(self.world, self._faults, self._heard)

    def answer(self, region: str, request: Request) -> Any:
        """The answer of `region`; a transaction's answer comes when its items are visible there."""
        if isinstance(request, Pause):
            return self.wait(int(request.ms))
        with self._lock:
            self.step()
            faults = replace(self._faults, lost=1_000) if self._loses_next else self._faults
            answer = send(self.world, region, request, faults, self._heard)
        if isinstance(answer, LedgerError):
            raise answer
        if isinstance(answer, Landing):
            while answer.left:
                self.step()
            return None
        return answer

    def _heard(self, what: object, came: object) -> None:
        self._loses_next = self._loses_next and what != LOST

    def _checked(self, region: str) -> str:
        if region not in self.world.regions:
            raise ValueError(f"{region!r} is not one of the Regions {self.world.regions}.")
        return region


class SimulatedTable:
    """One Region's view of a Simulation."""

    one_at_a_time = True
    may_be_cut_off = True

    def __init__(self, simulation: Simulation, region: str) -> None:
        self._simulation, self._region = simulation, region

    def answer(self, request: Request, /) -> Any:
        """The answer to a request. Raises a LedgerError, as a table does."""
        return self._simulation.answer(self._region, request)
