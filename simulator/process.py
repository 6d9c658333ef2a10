"""A process of a history: it runs programs of the shipped code, one request a step, with its own clocks and faults.

Rules: a process sees the world only through the requests that its programs yield; what befalls it (a pause, a crash, a
lost answer) happens between two of them; a program's failure is raised in its script, as in real life.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from ledger.errors import LedgerError, OutcomeUnknown, Throttled, Unavailable
from ledger.requests import DeleteMany, Instant, Now, Put, PutMany, Request, Transact
from simulator.faults import Faults
from simulator.world import Landing, World

WRITES = (Put, PutMany, Transact, DeleteMany)
PAUSES_STEPS = (20, 50, 100, 300, 1_000, 2_000)


@dataclass(frozen=True, slots=True)
class Sleep:
    """Asked by a script: wait that many steps."""

    steps: int


@dataclass(frozen=True, slots=True)
class Move:
    """Asked by a script: go on in another Region, as a message does that is delivered there."""

    region: str


Script = Generator[Request | Sleep | Move, Any, None]
Log = Callable[[str, object, object], None]
"""Told (who, what was asked, what came of it)."""


class Process:
    """Runs `script()` in `region`, again from its start after a crash."""

    def __init__(
        self, name: str, region: str, script: Callable[[], Script], world: World, faults: Faults, log: Log | None
    ) -> None:
        self.name = name
        self.region = self._first_region = region
        self.done = False
        self.asleep_until = 0
        self.skew_ms = 0
        """How much its wall clock is ahead of true time."""
        self._stopped_ms = 0  # what its monotonic clock missed while it was frozen
        self._script = script
        self._world = world
        self._faults = faults
        self._log = log
        self._running: Script | None = None
        self._request: Request | Sleep | Move | None = None
        self._landing: Landing | None = None

    @property
    def ready(self) -> bool:
        """Whether it can take a step: it is not over, not asleep, and its transaction has landed."""
        if self.done or self.asleep_until > self._world.step:
            return False
        return self._landing is None or not self._landing.left

    @property
    def is_local(self) -> bool:
        """Whether its next step touches nothing that others see: its start, the time, the end of a transaction."""
        return self._running is None or self._landing is not None or isinstance(self._request, Now)

    def step(self) -> None:
        """Send the request that its script waits with, and run the script up to its next one."""
        if self._running is None:
            self._running = self._script()
            self._go(None)
        elif self._landing is not None:
            self._landing = None
            self._go(True)
        else:
            self._send()
        faults, choices = self._faults, self._world.choices
        if faults.pause and choices.chance(faults.pause):
            self._stand_still(PAUSES_STEPS[choices.pick(len(PAUSES_STEPS))])

    def _stand_still(self, steps: int) -> None:
        self.asleep_until = max(self.asleep_until, self._world.step) + steps
        if self._faults.frozen:
            self._stopped_ms += steps * self._world.step_ms
        self._tell("stands still", f"{steps} steps")

    def _go(self, answer: Any) -> None:
        """Give the script an answer, or raise it there, and take its next request."""
        assert self._running is not None
        try:
            if isinstance(answer, LedgerError):
                self._request = self._running.throw(answer)
            else:
                self._request = self._running.send(answer)
        except StopIteration:
            self.done = True

    def _send(self) -> None:
        request, world = self._request, self._world
        if isinstance(request, Now):
            return self._go(Instant(world.now_ms + self.skew_ms, world.now_ms - self._stopped_ms))
        if isinstance(request, Sleep):
            self.asleep_until = world.step + request.steps
            return self._go(None)
        if isinstance(request, Move):
            self.region = request.region
            return self._go(None)
        assert request is not None
        if self._happens(self._faults.crash):
            return self._crash()
        before = self._fault_before(request)
        if before is not None:
            self._tell(request, before)
            return self._go(before)
        answer = world.answer_or_error(self.region, request)
        self._tell(request, answer)
        if isinstance(request, WRITES) and self._happens(self._faults.lost):
            self._tell("the answer is lost", "")
            return self._go(OutcomeUnknown("The answer was lost."))
        if isinstance(answer, Landing):
            self._landing = answer
            return None
        return self._go(answer)

    def _fault_before(self, request: Request) -> LedgerError | None:
        """What keeps an answer to this request from being given."""
        faults = self._faults
        if not isinstance(request, WRITES):
            return Unavailable("No answer.") if self._happens(faults.unreadable) else None
        if self._happens(faults.throttled):
            return Throttled("Throttled. Nothing was written.")
        if self._happens(faults.dropped):
            return OutcomeUnknown("Lost on the way.")
        if self._happens(faults.late):
            self._world.late.append((self.region, request))
            return OutcomeUnknown("Still on its way.")
        return None

    def _happens(self, per_mille: int) -> bool:
        return per_mille > 0 and self._world.choices.chance(per_mille)

    def _crash(self) -> None:
        assert self._running is not None
        self._running.close()
        self._running = self._request = self._landing = None
        self.region = self._first_region
        self._tell("crashes", "")

    def _tell(self, what: object, came: object) -> None:
        if self._log is not None:
            self._log(self.name, what, came)
