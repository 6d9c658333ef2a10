"""A batch of the work queue, lane by lane, with what was done as metrics and one log line each.

Rule 1: The messages of a lane are one visit, and lanes are visited side by side.
Rule 2: A message that names no lane of this Region is put on the DLQ; it stops no other.
Rule 3: A message fails only if what is left of it could not be put on a queue, or by a defect: then it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from ledger.errors import DamagedItem, LedgerError
from ledger.lane.shape import ShapeCheck
from ledger.settings import Settings
from service import observe
from service.compact.serve import Done, serve, try_again
from service.runtime import Runtime, Steps
from service.work import Bury, InvalidWork, Work

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger


@dataclass(slots=True)
class Task:
    """A lane's messages of one batch, and what became of them."""

    works: list[Work] = field(default_factory=list)
    done: Done = field(default_factory=Done)

    @property
    def work(self) -> Work:
        return reduce(Work.__or__, self.works)


class Worker:
    def __init__(self, settings: Settings, runtime: Runtime, log: Logger, metrics: observe.Metered) -> None:
        self._settings, self._runtime = settings, runtime
        self._log, self._metrics = log, metrics
        self._shape = ShapeCheck(settings)

    def __call__(self, event: Mapping[str, Any], stop: Callable[[], bool]) -> Any:
        """The partial batch response for an SQS event."""
        lost: dict[str, Exception] = {}

        def handle(record: SQSRecord) -> None:
            if record.message_id in lost:
                raise lost[record.message_id]

        records = event.get("Records")
        if isinstance(records, list):
            lost = self._work(records, stop)
        processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
        return process_partial_response(event=dict(event), record_handler=handle, processor=processor)

    def _work(self, records: list[dict[str, Any]], stop: Callable[[], bool]) -> dict[str, Exception]:
        """Do what the messages ask for; those that stay on the queue, by their ids, with why."""
        tasks: dict[Any, Task] = {}
        lost: dict[str, Exception] = {}
        of: dict[str, Any] = {}
        for record in records:
            try:
                work = Work.from_json(record["body"], self._settings.region)
            except InvalidWork as error:
                if failure := self._bury(record["body"], error):
                    lost[record["messageId"]] = failure
                continue
            tasks.setdefault(work.lane, Task()).works.append(work)
            of[record["messageId"]] = work.lane
        mismatch = self._asked()
        answers = self._runtime.run_each(self._program(task, mismatch, stop) for task in tasks.values())
        unsent = {lane: each for lane, each in zip(tasks, answers, strict=True) if isinstance(each, Exception)}
        for lane, task in tasks.items():
            self._tell(task.work, task.done, unsent.get(lane))
        return lost | {message_id: unsent[lane] for message_id, lane in of.items() if lane in unsent}

    def _program(self, task: Task, mismatch: LedgerError | None, stop: Callable[[], bool]) -> Steps:
        if mismatch is not None:
            return try_again(task.work, task.done, mismatch)
        return serve(task.work, task.done, self._settings, stop)

    def _asked(self) -> LedgerError | None:
        """Why this process must not visit any lane now; None: it may."""
        try:
            self._shape.ask(self._runtime, self._runtime.now)
        except LedgerError as error:
            return error
        return None

    def _bury(self, body: str, error: InvalidWork) -> LedgerError | None:
        """Put a message on the DLQ; the failure, if it may not be there."""
        self._log.error("a work message is not valid", extra={"reason": str(error)})
        observe.count(self._metrics, observe.WORK_INVALID, 1)
        try:
            self._runtime.answer(Bury(body))
        except LedgerError as failure:
            return failure
        return None

    def _tell(self, work: Work, done: Done, unsent: Exception | None) -> None:
        metrics, visited = self._metrics, done.visited
        error = unsent or done.error
        read = done.empty is not False or self._settings.reads(work.lane)
        counts = {
            observe.LANES_VISITED: int(visited),
            observe.LANES_LOOKED: int(not visited),
            observe.LANES_GAVE_UP: int(done.outcome == "gave up"),
            observe.LANES_FAILED: int(done.outcome == "failed" or unsent is not None),
            observe.LANES_DAMAGED: int(done.outcome == "damaged"),
            observe.LANES_UNREAD: int(not read),
            observe.LANES_FORGOTTEN: int(done.forgotten),
            observe.DELTAS_FOLDED: done.folded,
            observe.STRAYS_SETTLED: done.settled,
            observe.DELTAS_CLEANED: done.cleaned,
            observe.DELTAS_CONFLICTING: len(done.conflicts),
            observe.CLEANS_POSTPONED: int(bool(done.postponed_by)),
            observe.VERIFIES_DROPPED: int(done.unverified),
        }
        if done.check is not None:
            counts[observe.VERIFY_DIFFERENCES] = len(done.check.differences)
        if self._settings.tells:
            counts |= {observe.CROSSINGS_TOLD: done.evaluated.told, observe.CROSSINGS_UNTOLD: done.evaluated.untold}
        for name, value in counts.items():
            observe.count(metrics, name, value)
        if done.tail is not None:
            observe.count(metrics, observe.TAIL_DELTAS, done.tail)
        if done.outcome == "stopped" and not done.unverified:
            observe.count(metrics, observe.STOPPED_TRIES, work.tries + 1)
        if visited or done.ahead_ms:
            observe.milliseconds(metrics, observe.WATERMARK_AHEAD_MS, done.ahead_ms)
        known = ("outcome", "folded", "settled", "cleaned", "commits")
        fields: dict[str, Any] = {"lane": str(work.lane)} | {name: getattr(done, name) for name in known}
        more = {
            "postponed_by": done.postponed_by,
            "watermark_ahead_ms": done.ahead_ms,
            "conflicts": done.conflicts[:10],
            "again": len(done.sent),
            "crossings": done.evaluated.told,
            "tries": work.tries,
        }
        fields |= {name: value for name, value in more.items() if value}
        if not read:
            self._log.error("a lane that nobody reads", extra={"lane": str(work.lane)})
        differences = done.check.differences if done.check is not None else ()
        if differences:  # their texts hold amounts
            self._log.error("verify found differences", extra={**fields, "differences": len(differences)})
            self._log.debug("differences", extra={"lane": str(work.lane), "texts": differences})
        if error is not None:
            # What is wrong with a damaged item may hold amounts; its key does not.
            reason = f"pk={error.pk!r}, sk={error.sk!r}" if isinstance(error, DamagedItem) else str(error)
            level = "warning" if done.outcome == "gave up" else "error"
            told = {**fields, "error": type(error).__name__, "reason": reason}
            getattr(self._log, level)("a visit did not come to its end", extra=told)
        elif done.outcome == "stopped":
            self._log.warning("a visit did not fit its time", extra={**fields, "dropped": done.unverified})
        elif visited or work.late or work.again or work.verify or done.evaluated.told:
            self._log.info("visit" if visited else done.outcome, extra=fields)
        else:
            self._log.debug("looked", extra=fields)
