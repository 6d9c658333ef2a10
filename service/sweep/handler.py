"""One run of the sweep, with what it saw as metrics and a log line."""

from __future__ import annotations

from collections.abc import Callable

from ledger.lane.shape import ShapeCheck
from ledger.settings import Settings
from service.observe import LANES_LOGGED, Watch
from service.runtime import Runtime
from service.sweep.sweep import HOURS, Swept, sweep


class Sweeper:
    """verify_one_in: a lane in so many is verified in each pass; 0 for none. draw() returns a number in [0, 1).

    hours: of a pass.
    """

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        watch: Watch,
        *,
        verify_one_in: int,
        draw: Callable[[], float],
        hours: float = HOURS,
    ) -> None:
        self._settings, self._runtime, self._watch, self._hours = settings, runtime, watch, hours
        self._shape = ShapeCheck(settings)
        self._pick = lambda: verify_one_in > 0 and draw() * verify_one_in < 1

    def __call__(self, stop: Callable[[], bool]) -> Swept:
        swept = Swept()
        try:
            self._shape.ask(self._runtime, self._runtime.now)
            self._runtime.run(sweep(swept, self._settings, self._pick, stop, hours=self._hours))
        finally:
            self._report(swept)
        return swept

    def _report(self, swept: Swept) -> None:
        log = self._watch.logger
        numbers = {"LanesSwept": swept.lanes, "SweepLagMs": swept.behind_ms}
        numbers |= {"LanesUnread": len(swept.unread), "LanesDamaged": len(swept.damaged)}
        if swept.gate_bytes:  # a metric costs money, also where nothing has a limit
            numbers |= {"HoldsOverdue": swept.holds_overdue, "GateBytes": swept.gate_bytes}
        self._watch.publish(numbers)
        if swept.unread:
            lanes = [str(lane) for lane in sorted(swept.unread)[:LANES_LOGGED]]
            log.error("lanes that nobody reads", extra={"unread": len(swept.unread), "lanes": lanes})
        if swept.damaged:
            keys = [f"pk={key.pk!r}, sk={key.sk!r}" for key in swept.damaged[:LANES_LOGGED]]
            log.error("directory items that name no lane", extra={"items": len(swept.damaged), "keys": keys})
        fields = {"lanes": swept.lanes, "to_verify": swept.verified, "ended": swept.ended, "behind_ms": swept.behind_ms}
        limits = {"holds_overdue": swept.holds_overdue, "gate_bytes": swept.gate_bytes}
        log.info("swept", extra=fields | limits)
