"""`Ringer` and its program `ring`, which puts messages on the work queue for what came in a batch
of the stream.

Rule 1: `ring` puts a lane in the directory before the batch is answered. It does not read lanes
again that this process knows to be there.
Rule 4: `ring` names what came late at once, and never skips it.
Rule 5: `ring` reports a failure by its lane. An event source that sends the records again loses
nothing, and all of this may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cachetools import LRUCache

from ledger.core.errors import LedgerError
from ledger.core.requests import GetMany, Instant, Item, Now, PutMany, in_time
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.lane import directory
from ledger.lane.named import Named
from service.job_queue import Enqueue, Message
from service.jobs import KEYS_MAX, Evaluate, Job, Look, Settle
from service.observe import LANES_LOGGED, Watch
from service.ring.records import MARGIN_S, Batch, arrived
from service.runtime import Runtime, Steps
from service.sqs import DELAY_S_MAX

EVERY_S = 60
"""How often a lane rings, at most, in one process."""

EVALUATE_EVERY_S = 10
"""How often one process requests an evaluation of a counter's thresholds, at most."""

EVALUATE_MARGIN_S = 2
"""A message arrives so much after the last change that it stands for: a delay is in whole
seconds.
"""

KNOWN_MAX = 200_000
SENT_MAX = 200_000
"""Lanes and jobs that a process remembers: some 60 MB each.

A forgotten one costs a read or a message.
"""


NUMBERS = ("LanesRung", "RingsSpared", "LateDeltas", "LanesListed")


class Sent(NamedTuple):
    """A message: when it was put on the queue, and its delay in seconds."""

    at: Instant
    delay_s: int


@dataclass(slots=True)
class Memory:
    """What one process knows.

    listed: lanes that the directory has. sent: the last message of a job.
    """

    listed: MutableMapping[Lane, None] = field(default_factory=lambda: LRUCache(KNOWN_MAX))
    sent: MutableMapping[Job, Sent] = field(default_factory=lambda: LRUCache(SENT_MAX))


@dataclass(slots=True)
class Rung:
    """The result of a batch. numbers: by metric. failed: the error by lane."""

    numbers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NUMBERS, 0))
    failed: dict[Lane, LedgerError] = field(default_factory=dict)


def delay_s(settings: Settings, every_s: int, ahead_s: int = 0) -> int:
    """How long a look waits: until all that it stands for is old enough."""
    # Rule 2: a look waits until every item that it stands for is old enough to be folded, also one
    # whose token is ahead of its time. An evaluation needs nothing old, so it waits only until
    # what it stands for has come.
    return min(
        DELAY_S_MAX, every_s + ahead_s + MARGIN_S + -(-settings.allowed_lateness_ms // 1_000)
    )


def ring(
    batch: Batch, done: Rung, memory: Memory, settings: Settings, every_s: int = EVERY_S
) -> Steps:
    """Handle what a batch says. Raises no LedgerError: `done` has them."""
    yield from _list([lane for lane in batch.lanes if lane not in memory.listed], done, memory)
    now: Instant = yield Now()
    messages: list[Message] = []

    def want(job: Job, job_every_s: int, pause_s: int) -> None:
        # Rule 3: `ring` skips a job only while a message of the same job, which this process put
        # on the queue and SQS confirmed, is still on its way for long enough: by both clocks,
        # because a frozen process may find one of them stopped.
        sent = memory.sent.get(job)
        if sent is not None and in_time(
            sent.at, now, (job_every_s - max(0, pause_s - sent.delay_s)) * 1_000
        ):
            done.numbers["RingsSpared"] += 1
        else:
            messages.append(Message(job, pause_s))

    for lane, seen in batch.lanes.items():
        late = tuple(sorted(set(seen.late)))
        messages += [
            Message(Settle(lane, Named(late[n : n + KEYS_MAX])))
            for n in range(0, len(late), KEYS_MAX)
        ]
        done.numbers["LateDeltas"] += len(seen.late)
        if seen.ahead_s:
            want(Look(lane), every_s, delay_s(settings, every_s, seen.ahead_s))
        if seen.rung:
            want(Look(lane), every_s, delay_s(settings, every_s))
    for lane in batch.evaluated:
        evaluate_every_s = min(every_s, EVALUATE_EVERY_S)
        want(Evaluate(lane), evaluate_every_s, evaluate_every_s + EVALUATE_MARGIN_S)
    if not messages:
        return
    answers: tuple[LedgerError | None, ...] = yield Enqueue(tuple(messages))
    for message, failure in zip(messages, answers, strict=True):
        if failure is not None:
            done.failed[message.job.lane] = failure
            continue
        done.numbers["LanesRung"] += 1
        if not isinstance(message.job, Settle):
            memory.sent[message.job] = Sent(now, message.delay_s)


def _list(wanted: Sequence[Lane], done: Rung, memory: Memory) -> Steps:
    """Put the lanes that are not in the directory there."""
    if not wanted:
        return
    try:
        found: tuple[Item | None, ...] = yield GetMany(
            tuple(map(directory.key_of, wanted)), consistent=False
        )
    except LedgerError as error:
        done.failed |= dict.fromkeys(wanted, error)
        return
    new = [lane for lane, item in zip(wanted, found, strict=True) if item is None]
    memory.listed.update(
        (lane, None) for lane, item in zip(wanted, found, strict=True) if item is not None
    )
    if new:
        answers = yield PutMany(tuple(map(directory.item_of, new)))
        for lane, answer in zip(new, answers, strict=True):
            if isinstance(answer, LedgerError):
                done.failed[lane] = answer
            else:
                memory.listed[lane] = None
                done.numbers["LanesListed"] += answer is None


class Ringer:
    """Handles the batches of one process, and remembers what it did."""

    def __init__(
        self, settings: Settings, runtime: Runtime, watch: Watch, every_s: int = EVERY_S
    ) -> None:
        self._settings, self._runtime, self._watch, self._every_s = (
            settings,
            runtime,
            watch,
            every_s,
        )
        self._memory = Memory()

    def __call__(self, event: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
        """The partial batch response: the first record of the lanes that failed.

        It comes again with all after it.
        """
        batch = arrived(event.get("Records", ()), self._settings)
        done = Rung()
        self._runtime.run(ring(batch, done, self._memory, self._settings, self._every_s))
        self._watch.publish(done.numbers)
        if late := [str(lane) for lane, seen in batch.lanes.items() if seen.late]:
            shown: dict[str, Any] = {
                "late": done.numbers["LateDeltas"],
                "lanes": late[:LANES_LOGGED],
            }
            self._watch.logger.info("late changes", extra=shown)
        if not done.failed:
            return {"batchItemFailures": []}
        error, (_, sequence) = next(iter(done.failed.values())), batch.first_of(done.failed)
        shown = {"lanes": len(done.failed), "reason": str(error), "from": sequence}
        self._watch.logger.error(
            "the work queue did not take jobs of lanes, so their records come again", extra=shown
        )
        if not sequence:
            raise error
        return {"batchItemFailures": [{"itemIdentifier": sequence}]}
