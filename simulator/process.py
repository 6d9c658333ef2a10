"""A process of a history runs programs of the shipped code, one request a step, with its own clocks
and faults.

Rule 1: A process sees the world only through the requests that its programs yield.
Rule 2: Its faults (a pause, a crash, a lost answer) happen between two of them.
Rule 3: A program's failure is raised in its script, as in real life.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from ledger.core.errors import LedgerError
from ledger.core.requests import Instant, Now, Pause, Request
from simulator.faults import Faults
from simulator.happening import happens, send
from simulator.world import Landing, World

PAUSES_STEPS = (20, 50, 100, 300, 1_000, 2_000)


@dataclass(frozen=True, slots=True)
class Sleep:
    """A request of a script: wait that many steps."""

    steps: int


@dataclass(frozen=True, slots=True)
class Move:
    """A request of a script: go on in another Region, as a message does that is delivered there."""

    region: str


Script = Generator[Request | Sleep | Move, Any, None]
Log = Callable[[str, object, object], None]
"""Takes (who, the request or the happening, its result)."""


class Process:
    """Runs `script()` in `region`, and again from its start after a crash."""

    def __init__(
        self,
        name: str,
        region: str,
        script: Callable[[], Script],
        world: World,
        faults: Faults,
        log: Log | None,
    ) -> None:
        self.name = name
        self.region = self._first_region = region
        self.done = False
        self.asleep_until = 0
        self.skew_ms = 0
        """How much its wall clock is ahead of true time."""
        self._stopped_ms = 0  # how much its monotonic clock missed while it was frozen
        self._script = script
        self._world = world
        self._faults = faults
        self._log = log
        self._running: Script | None = None
        self._request: Request | Sleep | Move | None = None
        self._landing: Landing | None = None

    @property
    def ready(self) -> bool:
        """Whether it can take a step: it is not over, not asleep, and its transaction has
        landed.
        """
        if self.done or self.asleep_until > self._world.step:
            return False
        return self._landing is None or not self._landing.left

    @property
    def is_local(self) -> bool:
        """Whether its next step touches nothing that others see or change: a start, or the end
        of a transaction.
        """
        return self._running is None or self._landing is not None

    @property
    def asks_the_time(self) -> bool:
        """Whether its next step reads the time."""
        return isinstance(self._request, Now)

    def step(self) -> None:
        """Send the request at which its script waits, and run the script up to the next one."""
        if self._running is None:
            self._running = self._script()
            self._go(None)
        elif self._landing is not None:
            self._landing = None
            self._go(None)
        else:
            self._send()
        faults, choices = self._faults, self._world.choices
        if faults.pause and choices.chance(faults.pause):
            self._stand_still(PAUSES_STEPS[choices.pick(len(PAUSES_STEPS))])

    def _stand_still(self, steps: int) -> None:
        self.asleep_until = max(self.asleep_until, self._world.step) + steps
        if self._faults.frozen:
            self._stopped_ms += steps * self._world.step_ms
        self._note("stands still", f"{steps} steps")

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
        if isinstance(request, Sleep | Pause):
            self.asleep_until = world.step + self._steps(request)
            return self._go(None)
        if isinstance(request, Move):
            self.region = request.region
            return self._go(None)
        assert request is not None
        if happens(world, self._faults.crash):
            return self.crash()
        answer = send(world, self.region, request, self._faults, self._note)
        if isinstance(answer, Landing):
            self._landing = answer
            return None
        return self._go(answer)

    def _steps(self, request: Sleep | Pause) -> int:
        if isinstance(request, Sleep):
            return request.steps
        return int(request.ms // self._world.step_ms)

    def crash(self) -> None:
        """End at once, and begin again from the start at the next step."""
        if self._running is not None:
            self._running.close()
        self._running = self._request = self._landing = None
        self.region = self._first_region
        self._note("crashes", "")

    def _note(self, what: object, result: object) -> None:
        if self._log is not None:
            self._log(self.name, what, result)
