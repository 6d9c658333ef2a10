"""`Worker`: a batch of the work queue, job by job, each from its beginning to its end.

Rule 1: A job sends what has to be done later before it is done. A job that stops or fails sends its
rest, which goes on behind what it did.
Rule 2: No failure of the table fails a message: the worker sends its job again, later and later. A
job that meets damage waits for a person in the DLQ. Only a job that could not be sent leaves its
message on the queue.
Rule 5: The worker serves the jobs of a lane one after the other, and lanes side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from compactor.known import KnownCovers
from ledger.core.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError, ReadTooSlow
from ledger.core.requests import Now
from ledger.core.running import through
from ledger.core.settings import Settings, plan_of
from ledger.core.values import Lane
from ledger.lane.shape import ShapeCheck
from service.compact.outcome import Outcome
from service.compact.result import Done
from service.compact.visits import look, settle, sweep
from service.job_queue import DeadLetter, Enqueue
from service.jobs import ORDER, VERIFY_S, Evaluate, Job, Look, Settle, Sweep, Verify
from service.messages import InvalidWork, job_of, message_of
from service.observe import Watch
from service.runtime import OutOfTime, Runtime, Steps, in_time
from service.sqs import DELAY_S_MAX

COMMITS_OF_VISIT = 20
"""Commits of fold, and of settle, in one visit: so a huge backlog takes turns with other lanes."""

TRY_AGAIN_S = 30
"""The wait after a first failure; it doubles with each further one, up to DELAY_S_MAX."""


def recount(job: Verify, done: Done, settings: Settings, commits_max: int) -> Steps:
    # Rule 7: the first verify and the first evaluation import their code: most processes have
    # none.
    from compactor.verify import verify

    try:
        done.check = yield from verify(job.lane, read_time_max_ms=settings.read_time_max_ms)
        done.outcome = Outcome.VERIFIED
    except (GaveUp, ReadTooSlow):
        # a commit landed meanwhile, or the tail is long
        done.outcome = Outcome.UNVERIFIED


def compare(job: Evaluate, done: Done, settings: Settings, commits_max: int) -> Steps:
    from service.thresholds.evaluate import evaluate

    yield from evaluate(job.lane.counter, settings, done.evaluated)
    done.outcome = Outcome.EVALUATED


HANDLERS: dict[type[Job], Callable[[Any, Done, Settings, int], Steps]] = {
    Look: look,
    Settle: settle,
    Sweep: sweep,
    Verify: recount,
    Evaluate: compare,
}


def serve(
    done: Done,
    settings: Settings,
    stop: Callable[[], bool],
    *,
    refusal: LedgerError | None = None,
    alone: bool = True,
    commits_max: int = COMMITS_OF_VISIT,
    known: KnownCovers | None = None,
) -> Steps:
    """Do a job. refusal: why this process may not. alone: no other job of its lane comes with it.
    known: the covers that this process remembers.

    Raises LedgerError if no queue confirmed the rest of the job.
    """
    job = done.job

    if refusal is not None:
        _fail(done, refusal)
    elif isinstance(job, Verify) and not alone:
        # Rule 4: a verify may take all the time there is, so the worker puts it off beside other
        # jobs of its lane.
        done.outcome = Outcome.PUT_OFF
        done.send(job, VERIFY_S)
    elif settings.periods and not plan_of(settings, job.lane.counter).is_kept(
        (yield Now()).wall_ms
    ):
        done.outcome = Outcome.RETIRED
    else:
        handle: Callable[[Any, Done, Settings, int], Steps] = (
            partial(settle, known=known) if isinstance(job, Settle) else HANDLERS[type(job)]
        )
        try:
            yield from through(handle(job, done, settings, commits_max), partial(in_time, stop))
        except OutOfTime:
            done.outcome = Outcome.STOPPED
            if not isinstance(job, Verify):
                _again(done, wait_s(job.tries - 1) if job.tries else 0)
        except (LaneDamaged, DamagedItem) as damage:
            done.outcome, done.error = Outcome.DAMAGED, damage
            yield DeadLetter(message_of(done.left))
        except LedgerError as failure:
            _fail(done, failure)
    if done.sent:
        answers: tuple[LedgerError | None, ...] = yield Enqueue(tuple(done.sent))
        for lost in filter(None, answers):
            raise lost


def _fail(done: Done, failure: LedgerError) -> None:
    """Send the job again, because of this failure."""
    gave_up = isinstance(failure, GaveUp)
    done.outcome, done.error = Outcome.GAVE_UP if gave_up else Outcome.FAILED, failure
    pause_s = wait_s(done.job.tries)
    # Rule 3: the worker does not send two again: a verify that did not fit its time, because it
    # would not fit the next time either, and a look at a lane that gave up until the wait was the
    # longest, because the next ring or sweep replaces it.
    if not (gave_up and isinstance(done.job, Look) and pause_s == DELAY_S_MAX):
        _again(done, pause_s)


def wait_s(tries: int) -> int:
    return min(DELAY_S_MAX, TRY_AGAIN_S << min(tries, 10))


def _again(done: Done, pause_s: int) -> None:
    done.send(replace(done.left, tries=done.job.tries + 1), pause_s)


def by_lane(jobs: Iterable[tuple[str, Job]]) -> list[list[Done]]:
    """The jobs of each lane, in the worker's order. jobs: each with the id of its message."""
    lanes: dict[Lane, dict[Job, Done]] = defaultdict(dict)
    for name, job in jobs:
        lanes[job.lane].setdefault(job, Done(job=job)).ids.add(name)
    return [
        sorted(lane.values(), key=lambda done: ORDER.index(type(done.job)))
        for lane in lanes.values()
    ]


def serve_lane(
    lane: Sequence[Done],
    settings: Settings,
    stop: Callable[[], bool],
    *,
    refusal: LedgerError | None = None,
    commits_max: int = COMMITS_OF_VISIT,
    known: KnownCovers | None = None,
) -> Steps:
    """Serve the jobs of one lane, one after the other; the end of one does not change the next.
    refusal: why this process may serve none of them."""
    for done in lane:
        try:
            yield from serve(
                done,
                settings,
                stop,
                refusal=refusal,
                alone=len(lane) == 1,
                commits_max=commits_max,
                known=known,
            )
        except Exception as error:  # also a defect: it fails the messages of its job alone
            done.lost = error


class Worker:
    def __init__(self, settings: Settings, runtime: Runtime, watch: Watch) -> None:
        self._settings, self._runtime, self._watch = settings, runtime, watch
        self._shape = ShapeCheck(settings)
        self._known = KnownCovers()

    def __call__(
        self, event: Mapping[str, Any], stop: Callable[[], bool]
    ) -> dict[str, list[dict[str, str]]]:
        """The partial batch response for an SQS event."""
        lost: set[str] = set()
        jobs: list[tuple[str, Job]] = []
        for record in event["Records"]:
            try:
                jobs.append((record["messageId"], job_of(record["body"], self._settings)))
            except InvalidWork as error:
                # Rule 6: the worker puts a message that requests no job in a lane of this Region
                # on the DLQ; it stops no other. A defect fails the messages of its job alone.
                if not self._set_aside(record["body"], error):
                    lost.add(record["messageId"])
        lanes, refusal = by_lane(jobs), None
        try:
            self._shape.ask(self._runtime, self._runtime.now)
        except LedgerError as error:
            refusal = error
        self._runtime.run_each(
            serve_lane(lane, self._settings, stop, refusal=refusal, known=self._known)
            for lane in lanes
        )
        for done in chain.from_iterable(lanes):
            self._report(done)
            lost |= done.ids if done.lost is not None else set()
        names = (record["messageId"] for record in event["Records"])
        return {"batchItemFailures": [{"itemIdentifier": name} for name in names if name in lost]}

    def _set_aside(self, body: str, error: InvalidWork) -> bool:
        """Put a message on the DLQ. Whether it is there."""
        self._watch.logger.error(
            "a work message is not valid, so it goes to the dead-letter queue",
            extra={"reason": str(error)},
        )
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
            log.error(
                "verify found differences",
                extra=fields | {"differences": len(done.check.differences)},
            )
            log.debug(
                "differences", extra={"lane": fields["lane"], "texts": done.check.differences}
            )
        level, text = done.line()
        getattr(log, level)(text, extra=fields)
        if (error := done.lost or done.error) is not None:  # it may hold amounts
            log.debug("why", extra={"lane": fields["lane"], "why": str(error)})
