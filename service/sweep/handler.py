"""One run of the sweep, with what it saw as metrics and a log line."""

from __future__ import annotations

from collections.abc import Callable

from ledger.lane.shape import ShapeCheck
from ledger.settings import Settings
from service import observe
from service.observe import Watch
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
        log, gates = self._watch.logger, swept.gates
        unread = sorted({*swept.unread, *gates.unasked})
        numbers = {
            observe.LANES_SWEPT: swept.lanes,
            observe.LANES_UNREAD: len(unread),
            observe.LANES_DAMAGED: len(swept.damaged),
            observe.SWEEP_LAG_MS: swept.behind_ms,
        }
        if gates.largest:  # a metric costs money, also where nothing has a limit
            numbers |= {observe.HOLDS_OVERDUE: gates.overdue, observe.GATE_BYTES: gates.largest}
        self._watch.publish(numbers)
        if unread:
            lanes = [str(lane) for lane in unread[: observe.LANES_LOGGED]]
            log.error("lanes that nobody reads", extra={"unread": len(unread), "lanes": lanes})
        if swept.damaged:
            keys = [f"pk={key.pk!r}, sk={key.sk!r}" for key in swept.damaged[: observe.LANES_LOGGED]]
            log.error("directory items that name no lane", extra={"items": len(swept.damaged), "keys": keys})
        fields = {"lanes": swept.lanes, "to_verify": swept.verified, "ended": swept.ended, "behind_ms": swept.behind_ms}
        limits = {"holds_overdue": gates.overdue, "gate_bytes": gates.largest}
        log.info("swept", extra=fields | limits)
