"""A world with what the service stands on: each Region's stream, work queue and event bus.

Rule 1: A stream has a record of each new item (of thresholds: of each that is written), also of one
that came by replication, in the order in which its Region stored them, with a time that is rounded
down to the second.
Rule 2: The queue is a standard one: a message is received in any order, at least once, perhaps
again after a time-out, never before its delay is over.
Rule 3: What befalls a message or an event (its answer lost, put or not; received twice) is picked
from the world's choices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ledger.core.errors import LedgerError, OutcomeUnknown
from ledger.core.requests import Item, Key
from service.job_queue import DeadLetter, Enqueue, Message
from service.messages import message_of
from service.thresholds.event_bus import Publish
from simulator.cells import Stamp
from simulator.choices import Choices
from simulator.world import World

VISIBILITY_MS = 720_000


@dataclass(slots=True)
class Record:
    """An item in a stream: when it was stored, and from which step on it can be read.

    new: it was not there before.
    """

    made_ms: int
    step: int
    key: Key
    item: Item
    new: bool


@dataclass(slots=True)
class Queued:
    body: str
    from_ms: int


@dataclass(slots=True)
class Post:
    """A Region's stream, queue and event bus. position: of the records that were handled."""

    records: list[Record] = field(default_factory=list)
    position: int = 0
    queue: list[Queued] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


class ServedWorld(World):
    """lost, doubled: how often messages are, per thousand. stream_late: steps that a record may
    wait at most.
    shows_changes: whether the streams have records of items that were there before.
    """

    lost = doubled = stream_late = 0
    purged = False
    shows_changes = False

    def __init__(self, regions: Sequence[str], choices: Choices, **given: Any) -> None:
        super().__init__(regions, choices, **given)
        self.posts = {region: Post() for region in regions}

    def answer(self, region: str, request: Any) -> Any:
        match request:
            case Enqueue(messages):
                return tuple(self._put(region, message) for message in messages)
            case DeadLetter():
                return None
            case Publish():
                if error := self._lost(partial(self.posts[region].events.append, request.detail)):
                    raise error
                return None
        return super().answer(region, request)

    def _put(self, region: str, message: Message) -> LedgerError | None:
        queued = Queued(message_of(message.job), self.now_ms + message.delay_s * 1_000)
        return self._lost(partial(self.posts[region].queue.append, queued))

    def _lost(self, put: Callable[[], None]) -> LedgerError | None:
        """It is put; or its answer is lost, and it is put or not."""
        lost = self.lost > 0 and self.choices.chance(self.lost)
        if not lost or self.choices.pick(2):
            put()
        return (
            OutcomeUnknown("The answer was lost: the write may or may not have been applied.")
            if lost
            else None
        )

    def _store(self, region: str, key: Key, item: Item | None, stamp: Stamp) -> None:
        new = item is not None and self.replicas[region].item(key) is None
        super()._store(region, key, item, stamp)
        if item is not None and (new or self.shows_changes):
            late = self.choices.pick(self.stream_late + 1) if self.stream_late else 0
            post = self.posts[region]
            step = max([self.step + late, *(each.step for each in post.records[-1:])])
            post.records.append(Record(self.now_ms // 1_000 * 1_000, step, key, item, new))

    def read_stream(self, region: str, most: int) -> list[Record]:
        post = self.posts[region]
        return [each for each in post.records[post.position :][:most] if each.step <= self.step]

    def receive(self, region: str, most: int) -> list[Queued]:
        """Some messages whose time has come, in any order.

        They can be received again after the visibility time-out.
        """
        there = [each for each in self.posts[region].queue if each.from_ms <= self.now_ms]
        taken: list[Queued] = []
        while there and len(taken) < most:
            message = there.pop(self.choices.pick(len(there)))
            doubled = self.doubled and self.choices.chance(self.doubled)
            if not doubled:
                message.from_ms = self.now_ms + VISIBILITY_MS
            taken.append(message)
        return taken

    def delete(self, region: str, messages: Sequence[Queued]) -> None:
        queue = self.posts[region].queue
        for message in messages:
            # a doubled one stays for its second receive
            if message.from_ms > self.now_ms and message in queue:
                queue.remove(message)

    def purge(self, region: str) -> None:
        self.purged = True
        self.posts[region].queue.clear()

    def next_ms(self, region: str) -> int | None:
        return min((each.from_ms for each in self.posts[region].queue), default=None)
