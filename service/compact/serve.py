"""A job of the work queue, from its beginning to whatever end it comes to.

Rule 1: What has to be done later is sent before the job is done with. Whoever is stopped or fails sends what is left,
so the job goes on behind what was done.
Rule 2: No failure of the table fails a message: its job is sent again, later and later. A job that meets damage waits
for a person in the DLQ. Only a job that could not be sent leaves its message on the queue.
Rule 3: Two are not sent again: a verify that did not fit its time, because it would not fit the next time either, and a
look at a lane that gave up until the wait was the longest, because the next ring or the sweep stands for it.
Rule 4: A verify may take all the time there is: beside other jobs of its lane it is put off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compactor.verify import verify
from ledger.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError, ReadTooSlow
from ledger.settings import Settings
from ledger.values import Lane
from service.compact.result import Done
from service.compact.visits import look, settle, sweep
from service.job_queue import DeadLetter, Enqueue
from service.jobs import ORDER, VERIFY_S, Evaluate, Job, Look, Settle, Sweep, Verify
from service.messages import message_of
from service.runtime import OutOfTime, Steps, until
from service.sqs import DELAY_S_MAX
from service.thresholds.evaluate import evaluate

COMMITS_OF_VISIT = 20
"""Commits of fold, and of settle, in one visit: a huge backlog gets its turns as every other lane does."""

TRY_AGAIN_S = 30
"""After a first failure; twice as long after each further one, up to DELAY_S_MAX."""


def recount(job: Verify, done: Done, settings: Settings, commits_max: int) -> Steps:
    try:
        done.check = yield from verify(job.lane, read_time_max_ms=settings.read_time_max_ms)
        done.outcome = "verified"
    except (GaveUp, ReadTooSlow):  # a commit was landing, or the tail is long: another pass of the sweep picks it
        done.outcome = "gave up"


def compare(job: Evaluate, done: Done, settings: Settings, commits_max: int) -> Steps:
    yield from evaluate(job.lane.counter, settings, done.evaluated)
    done.outcome = "evaluated"


HANDLERS: dict[type[Job], Callable[[Any, Done, Settings, int], Steps]] = {
    Look: look,
    Settle: settle,
    Sweep: sweep,
    Verify: recount,
    Evaluate: compare,
}


def serve(
    job: Job,
    done: Done,
    settings: Settings,
    stop: Callable[[], bool],
    *,
    refusal: LedgerError | None = None,
    alone: bool = True,
    commits_max: int = COMMITS_OF_VISIT,
) -> Steps:
    """Do a job. refusal: why this process may not. alone: no other job of its lane comes with it.

    Raises LedgerError if what is left could not be put on a queue.
    """
    if refusal is not None:
        _fail(job, done, refusal)
    elif isinstance(job, Verify) and not alone:
        done.outcome = "put off"
        done.send(job, VERIFY_S)
    else:
        try:
            yield from until(HANDLERS[type(job)](job, done, settings, commits_max), stop)
        except OutOfTime:
            done.outcome = "stopped"
            if not isinstance(job, Verify):
                _again(job, done, wait_s(job.tries - 1) if job.tries else 0)
        except (LaneDamaged, DamagedItem) as damage:
            done.outcome, done.error = "damaged", damage
            yield DeadLetter(message_of(done.left_of(job)))
        except LedgerError as failure:
            _fail(job, done, failure)
    if done.sent:
        answers: tuple[LedgerError | None, ...] = yield Enqueue(tuple(done.sent))
        for lost in filter(None, answers):
            raise lost


def _fail(job: Job, done: Done, failure: LedgerError) -> None:
    """Have the job done again, because of this failure."""
    done.outcome, done.error = "gave up" if isinstance(failure, GaveUp) else "failed", failure
    pause_s = wait_s(job.tries)
    if not (done.outcome == "gave up" and isinstance(job, Look) and pause_s == DELAY_S_MAX):
        _again(job, done, pause_s)


def wait_s(tries: int) -> int:
    return min(DELAY_S_MAX, TRY_AGAIN_S << min(tries, 10))


def _again(job: Job, done: Done, pause_s: int) -> None:
    done.send(replace(done.left_of(job), tries=job.tries + 1), pause_s)


@dataclass(slots=True)
class Task:
    """A job of a batch, with the ids of the messages that ask for it, and what became of it."""

    job: Job
    ids: set[str] = field(default_factory=set)
    done: Done = field(default_factory=Done)


def tasks_of(jobs: Iterable[tuple[str, Job]]) -> list[list[Task]]:
    """The tasks of each lane, in the order in which they are served. jobs: each with the id of its message."""
    lanes: dict[Lane, dict[Job, Task]] = defaultdict(dict)
    for name, job in jobs:
        lanes[job.lane].setdefault(job, Task(job)).ids.add(name)
    return [sorted(tasks.values(), key=lambda task: ORDER.index(type(task.job))) for tasks in lanes.values()]


def serve_lane(
    tasks: Sequence[Task],
    settings: Settings,
    stop: Callable[[], bool],
    *,
    refusal: LedgerError | None = None,
    commits_max: int = COMMITS_OF_VISIT,
) -> Steps:
    """Serve the jobs of one lane, one after the other; what becomes of one is nothing to the next. refusal: why none of
    them may be served by this process."""
    for task in tasks:
        job, done, alone = task.job, task.done, len(tasks) == 1
        try:
            yield from serve(job, done, settings, stop, refusal=refusal, alone=alone, commits_max=commits_max)
        except Exception as error:  # also a defect: it fails the messages of its job alone
            done.lost = error
