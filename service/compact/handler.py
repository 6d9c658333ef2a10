"""The work queue -> visits, with what they did as metrics and one log line each.

Rule 1: A message fails alone.
Rule 2: One that cannot be read, or whose lane is damaged, fails until it is in the DLQ.
Rule 3: All else that fails is tried again by the queue, and after the lease by plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from ledger.errors import DamagedItem
from ledger.settings import Settings
from ledger.shape import ShapeCheck
from service import observe
from service.compact.visit import Done, handle
from service.runtime import Runtime
from service.work import InvalidWork, Work

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger


class Worker:
    def __init__(self, settings: Settings, runtime: Runtime, log: Logger, metrics: observe.Metered) -> None:
        self._settings, self._runtime = settings, runtime
        self._log, self._metrics = log, metrics
        self._shape = ShapeCheck(settings)

    def __call__(self, event: Mapping[str, Any], stop: Callable[[], bool]) -> Any:
        """The partial batch response for an SQS event."""
        processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
        return process_partial_response(
            event=dict(event), record_handler=lambda record: self.work(record.body, stop), processor=processor
        )

    def work(self, body: str, stop: Callable[[], bool]) -> Done:
        """One message. Raises what makes it a failed item of the batch."""
        try:
            work = Work.from_json(body, self._settings.region)
        except InvalidWork as error:
            self._log.error("a work message is not valid", extra={"reason": str(error)})
            raise
        done = Done()
        try:
            self._shape.ask(self._runtime, self._runtime.now)
            self._runtime.run(handle(work, done, self._settings, stop))
        except Exception as error:
            self._tell(work, done, error)
            raise
        self._tell(work, done)
        return done

    def _tell(self, work: Work, done: Done, error: Exception | None = None) -> None:
        metrics = self._metrics
        read = self._settings.reads(work.lane)
        visited = not work.verify and done.outcome != "served"
        counts = {
            observe.LANES_VISITED: int(visited),
            observe.LANES_GAVE_UP: int(done.outcome == "gave up"),
            observe.LANES_DAMAGED: int(done.outcome == "damaged"),
            observe.LANES_UNREAD: int(not read),
            observe.DELTAS_FOLDED: done.folded,
            observe.STRAYS_SETTLED: done.settled,
            observe.DELTAS_CLEANED: done.cleaned,
            observe.DELTAS_CONFLICTING: len(done.conflicts),
            observe.CLEANS_POSTPONED: int(bool(done.postponed_by)),
        }
        if done.check is not None:
            counts[observe.VERIFY_DIFFERENCES] = len(done.check.differences)
        for name, value in counts.items():
            observe.count(metrics, name, value)
        if done.tail is not None:
            observe.count(metrics, observe.TAIL_DELTAS, done.tail)
        if done.lag_ms is not None:
            observe.milliseconds(metrics, observe.FOLD_LAG_MS, done.lag_ms)
        if visited:
            observe.milliseconds(metrics, observe.WATERMARK_AHEAD_MS, done.ahead_ms)
        known = ("outcome", "folded", "settled", "cleaned", "commits", "next_ms")
        fields: dict[str, Any] = {"lane": str(work.lane)} | {name: getattr(done, name) for name in known}
        more = {
            "postponed_by": done.postponed_by,
            "watermark_ahead_ms": done.ahead_ms,
            "conflicts": done.conflicts[:10],
        }
        fields |= {name: value for name, value in more.items() if value}
        if not read:
            self._log.error("a lane that nobody reads", extra={"lane": str(work.lane)})
        differences = done.check.differences if done.check is not None else ()
        if differences:  # their texts hold amounts
            self._log.error("verify found differences", extra={**fields, "differences": len(differences)})
            self._log.debug("differences", extra={"lane": str(work.lane), "texts": differences})
        elif error is not None:
            # What is wrong with a damaged item may hold amounts; its key does not.
            reason = f"pk={error.pk!r}, sk={error.sk!r}" if isinstance(error, DamagedItem) else str(error)
            self._log.error("a visit failed", extra={**fields, "error": type(error).__name__, "reason": reason})
        else:
            self._log.info("verified" if work.verify else "visit", extra=fields)
