"""One run of the backstop, with what it found as metrics and a log line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ledger.settings import Settings
from ledger.shape import ShapeCheck
from service import observe
from service.find.scan import Findings, find
from service.runtime import Runtime

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

LANES_LOGGED = 10


class Finder:
    """verify_one_in: a lane in so many is verified in each pass; 0 for none. draw() returns a number in [0, 1)."""

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        log: Logger,
        metrics: observe.Metered,
        *,
        verify_one_in: int,
        draw: Callable[[], float],
    ) -> None:
        self._settings, self._runtime = settings, runtime
        self._log, self._metrics = log, metrics
        self._shape = ShapeCheck(settings)
        self._pick = lambda: verify_one_in > 0 and draw() * verify_one_in < 1

    def __call__(self, stop: Callable[[], bool]) -> Findings:
        findings = Findings()
        try:
            self._shape.ask(self._runtime, self._runtime.now)
            self._runtime.run(find(findings, self._settings, self._pick, stop))
        finally:
            observe.count(self._metrics, observe.LANES_FORGOTTEN, len(findings.forgotten))
            unread = findings.unread | findings.gates.unasked
            observe.count(self._metrics, observe.LANES_UNREAD, len(unread))
            if unread:
                told = [str(lane) for lane in sorted(unread)[:LANES_LOGGED]]
                self._log.error("lanes that nobody reads", extra={"unread": len(unread), "lanes": told})
            if findings.gates.largest:  # a metric costs money, also where nothing has a limit
                observe.count(self._metrics, observe.HOLDS_OVERDUE, findings.gates.overdue)
                observe.size(self._metrics, observe.GATE_BYTES, findings.gates.largest)
            fields = {
                "pages": findings.pages,
                "forgotten": len(findings.forgotten),
                "lanes": [str(lane) for lane in findings.forgotten[:LANES_LOGGED]],
                "holds_overdue": findings.gates.overdue,
                "gate_bytes": findings.gates.largest,
                "to_verify": findings.picked,
                "unsent": findings.unsent,
                "ended": findings.ended,
            }
            self._log.info("searched", extra=fields)
        return findings
