"""The program `ring`: what came in a batch of the stream becomes messages of the work queue.

Rule 1: A lane is in the directory before its batch is answered; lanes that this process knows to be there are not asked
for again.
Rule 2: A ring is delayed until every item that it stands for is old enough to be folded, also one whose token is ahead
of its time.
Rule 3: A ring is spared only while a message that this process put on the queue, and saw confirmed, is on its way for
long enough: by both clocks, because a process that was frozen may find one of them stopped. Nothing else drops a ring.
Rule 4: What came late is named, at once, and never spared.
Rule 5: What asks for an evaluation of thresholds is delayed and spared by the same two rules, in a shorter time, since
nothing has to grow old: a message is served after everything that was spared because of it had come.
Rule 6: What failed is told by its lane; an event source that sends the records again loses nothing, and all of this may
be repeated.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cachetools import LRUCache

from compactor.named import Named
from ledger.errors import LedgerError
from ledger.lane import directory
from ledger.requests import GetMany, Instant, Item, Now, PutMany, in_time
from ledger.settings import Settings
from ledger.values import Lane
from service.ring.records import MARGIN_S, Batch
from service.work import DELAY_S_MAX, Message, Send, Work

EVERY_S = 60
"""How often a lane rings, at most, in one process."""

ASK_EVERY_S = 10
"""How often a counter's thresholds are evaluated, at most, because of one process."""

ASK_MARGIN_S = 2
"""By which a message outlasts what is spared because of it: a delay is in whole seconds."""

KNOWN_MAX = 200_000
RUNG_MAX = 200_000
"""Lanes that a process remembers: some 60 MB each. One that is forgotten costs a read or a message."""


class Sent(NamedTuple):
    """A message that was to be put at `at`, and its delay."""

    at: Instant
    delay_s: int


@dataclass(slots=True)
class Memory:
    """What one process knows. listed: lanes that the directory has. rung: the last message of a lane. asked: when the
    last one was to be put that asks for an evaluation."""

    listed: MutableMapping[Lane, None] = field(default_factory=lambda: LRUCache(KNOWN_MAX))
    rung: MutableMapping[Lane, Sent] = field(default_factory=lambda: LRUCache(RUNG_MAX))
    asked: MutableMapping[Lane, Instant] = field(default_factory=lambda: LRUCache(RUNG_MAX))


@dataclass(slots=True)
class Rung:
    """What became of a batch. failed: by lane, why."""

    listed: int = 0
    rung: int = 0
    spared: int = 0
    late: int = 0
    failed: dict[Lane, LedgerError] = field(default_factory=dict)


def delay_s(settings: Settings, every_s: int, ahead_s: int = 0) -> int:
    """How long a ring waits: until what is spared because of it is old enough."""
    return min(DELAY_S_MAX, every_s + ahead_s + MARGIN_S + -(-settings.allowed_lateness_ms // 1_000))


def ring(
    batch: Batch, done: Rung, memory: Memory, settings: Settings, every_s: int = EVERY_S
) -> Generator[Any, Any, None]:
    """Handle what a batch says. Raises no LedgerError: they are in `done`."""
    yield from _list([lane for lane in batch.lanes if lane not in memory.listed], done, memory)
    now: Instant = yield Now()
    messages: list[Message] = []
    for lane, seen in batch.lanes.items():
        if seen.late:
            named = Work(lane, late=Named(tuple(sorted(set(seen.late)))), fold=False)
            messages += map(Message, named.apart())
            done.late += len(seen.late)
        for ahead_s in seen.rings_ahead_s:
            delay = delay_s(settings, every_s, ahead_s)
            sent = memory.rung.get(lane)
            if sent is not None and in_time(sent.at, now, (every_s - max(0, delay - sent.delay_s)) * 1_000):
                done.spared += 1
                continue
            messages.append(Message(Work(lane), delay))
    asked_every_s = min(every_s, ASK_EVERY_S)
    for lane in batch.counters:
        asked = memory.asked.get(lane)
        if asked is not None and in_time(asked, now, asked_every_s * 1_000):
            done.spared += 1
            continue
        messages.append(Message(Work(lane, fold=False, thresholds=True), asked_every_s + ASK_MARGIN_S))
    if not messages:
        return
    answers: tuple[LedgerError | None, ...] = yield Send(tuple(messages))
    for message, failure in zip(messages, answers, strict=True):
        lane = message.work.lane
        if failure is not None:
            done.failed[lane] = failure
            continue
        done.rung += 1
        if message.work.fold:
            memory.rung[lane] = Sent(now, message.delay_s)
        if message.work.thresholds:
            memory.asked[lane] = now


def _list(lanes: Iterable[Lane], done: Rung, memory: Memory) -> Generator[Any, Any, None]:
    """Put the lanes into the directory that are not there."""
    wanted = list(lanes)
    if not wanted:
        return
    try:
        found: tuple[Item | None, ...] = yield GetMany(tuple(map(directory.key_of, wanted)), consistent=False)
    except LedgerError as error:
        done.failed |= dict.fromkeys(wanted, error)
        return
    new = [lane for lane, item in zip(wanted, found, strict=True) if item is None]
    memory.listed.update((lane, None) for lane, item in zip(wanted, found, strict=True) if item is not None)
    if new:
        answers = yield PutMany(tuple(map(directory.item_of, new)))
        for lane, answer in zip(new, answers, strict=True):
            if isinstance(answer, LedgerError):
                done.failed[lane] = answer
            else:
                memory.listed[lane] = None
                done.listed += answer is None
