"""A batch of the work queue, job by job, with what was done as metrics and one log line each.

Rule 1: The jobs of a lane are served one after the other, and lanes side by side.
Rule 2: A message that asks for no job in a lane of this Region is put on the DLQ; it stops no other.
Rule 3: A message fails only if what is left of it could not be put on a queue, or by a defect: then it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from ledger.errors import LedgerError
from ledger.lane.shape import ShapeCheck
from ledger.settings import Settings
from service.compact.result import Done
from service.compact.serve import by_lane, serve_lane
from service.job_queue import DeadLetter
from service.jobs import Job
from service.messages import InvalidWork, jobs_of
from service.observe import Watch
from service.runtime import Runtime


class Worker:
    def __init__(self, settings: Settings, runtime: Runtime, watch: Watch) -> None:
        self._settings, self._runtime, self._watch = settings, runtime, watch
        self._shape = ShapeCheck(settings)

    def __call__(self, event: Mapping[str, Any], stop: Callable[[], bool]) -> dict[str, list[dict[str, str]]]:
        """The partial batch response for an SQS event."""
        lost: set[str] = set()
        jobs: list[tuple[str, Job]] = []
        for record in event["Records"]:
            try:
                jobs += [(record["messageId"], job) for job in jobs_of(record["body"], self._settings)]
            except InvalidWork as error:
                if not self._set_aside(record["body"], error):
                    lost.add(record["messageId"])
        lanes, refusal = by_lane(jobs), None
        try:
            self._shape.ask(self._runtime, self._runtime.now)
        except LedgerError as error:
            refusal = error
        self._runtime.run_each(serve_lane(lane, self._settings, stop, refusal=refusal) for lane in lanes)
        for done in chain.from_iterable(lanes):
            self._report(done)
            lost |= done.ids if done.lost is not None else set()
        names = (record["messageId"] for record in event["Records"])
        return {"batchItemFailures": [{"itemIdentifier": name} for name in names if name in lost]}

    def _set_aside(self, body: str, error: InvalidWork) -> bool:
        """Put a message on the DLQ. Whether it is there."""
        self._watch.logger.error("a work message is not valid", extra={"reason": str(error)})
        self._watch.publish({"WorkInvalid": 1})
        try:
            self._runtime.answer(DeadLetter(body))
        except LedgerError:
            return False
        return True

    def _report(self, done: Done) -> None:
        log, fields = self._watch.logger, done.fields()
        self._watch.publish(done.metrics(self._settings))
        if done.is_unread(self._settings):
            log.error("a lane that nobody reads", extra={"lane": fields["lane"]})
        if done.check is not None and done.check.differences:  # their texts hold amounts
            log.error("verify found differences", extra=fields | {"differences": len(done.check.differences)})
            log.debug("differences", extra={"lane": fields["lane"], "texts": done.check.differences})
        level, text = done.line()
        getattr(log, level)(text, extra=fields)
