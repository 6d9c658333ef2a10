"""One run of the sweep, with what it saw as metrics and a log line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ledger.lane.shape import ShapeCheck
from ledger.settings import Settings
from service import observe
from service.runtime import Runtime
from service.sweep.sweep import HOURS, Swept, sweep

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger


class Sweeper:
    """verify_one_in: a lane in so many is verified in each pass; 0 for none. draw() returns a number in [0, 1).

    hours: of a pass.
    """

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        log: Logger,
        metrics: observe.Metered,
        *,
        verify_one_in: int,
        draw: Callable[[], float],
        hours: float = HOURS,
    ) -> None:
        self._settings, self._runtime, self._hours = settings, runtime, hours
        self._log, self._metrics = log, metrics
        self._shape = ShapeCheck(settings)
        self._pick = lambda: verify_one_in > 0 and draw() * verify_one_in < 1

    def __call__(self, stop: Callable[[], bool]) -> Swept:
        swept = Swept()
        try:
            self._shape.ask(self._runtime, self._runtime.now)
            self._runtime.run(sweep(swept, self._settings, self._pick, stop, hours=self._hours))
        finally:
            self._tell(swept)
        return swept

    def _tell(self, swept: Swept) -> None:
        unread = sorted({*swept.unread, *swept.gates.unasked})
        observe.count(self._metrics, observe.LANES_SWEPT, swept.lanes)
        observe.count(self._metrics, observe.LANES_UNREAD, len(unread))
        observe.count(self._metrics, observe.LANES_DAMAGED, len(swept.damaged))
        observe.milliseconds(self._metrics, observe.SWEEP_LAG_MS, swept.behind_ms)
        if swept.gates.largest:  # a metric costs money, also where nothing has a limit
            observe.count(self._metrics, observe.HOLDS_OVERDUE, swept.gates.overdue)
            observe.size(self._metrics, observe.GATE_BYTES, swept.gates.largest)
        if unread:
            told = [str(lane) for lane in unread[: observe.LANES_LOGGED]]
            self._log.error("lanes that nobody reads", extra={"unread": len(unread), "lanes": told})
        if swept.damaged:
            keys = [f"pk={key.pk!r}, sk={key.sk!r}" for key in swept.damaged[: observe.LANES_LOGGED]]
            self._log.error("directory items that name no lane", extra={"items": len(swept.damaged), "keys": keys})
        fields = {"lanes": swept.lanes, "to_verify": swept.verified, "ended": swept.ended, "behind_ms": swept.behind_ms}
        limits = {"holds_overdue": swept.gates.overdue, "gate_bytes": swept.gates.largest}
        self._log.info("swept", extra=fields | limits)
