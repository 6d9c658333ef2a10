"""A world with what the service stands on: each Region's stream, work queue, dead-letter queue and event bus.

Rule 1: A stream has a record of each new item (of thresholds: of each that is written), also of one that came by
replication, in the order in which its Region stored them, with a time that is rounded down to the second.
Rule 2: The queue is a standard one: a message is received in any order, at least once, perhaps again after a time-out,
never before its delay is over.
Rule 3: What befalls a message or an event (its answer lost, put or not; received twice) is picked from the world's
choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.errors import LedgerError, OutcomeUnknown
from ledger.requests import Item, Key
from service.job_queue import DeadLetter, Enqueue, Message
from service.messages import message_of
from service.thresholds.event_bus import Publish
from simulator.choices import Choices
from simulator.world import Stamp, World

VISIBILITY_MS = 720_000


@dataclass(slots=True)
class Record:
    """An item in a stream: when it was stored, and from which step on it can be read. new: it was not there before."""

    made_ms: int
    step: int
    key: Key
    item: Item
    new: bool = True


@dataclass(slots=True)
class Queued:
    """A message: its body, and from when on it can be received."""

    body: str
    from_ms: int


@dataclass(slots=True)
class Mishaps:
    """How often what befalls messages and records, per thousand. stream_late: steps that a record may wait at most."""

    lost: int = 0
    doubled: int = 0
    stream_late: int = 0


@dataclass(slots=True)
class Post:
    """A Region's stream, queues and event bus. position: of the records that were handled."""

    records: list[Record] = field(default_factory=list)
    position: int = 0
    queue: list[Queued] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


class ServedWorld(World):
    def __init__(self, regions: Sequence[str], choices: Choices, mishaps: Mishaps, **given: Any) -> None:
        super().__init__(regions, choices, **given)
        self.mishaps = mishaps
        self.posts = {region: Post() for region in regions}
        self.purged = False
        self.shows_changes = False
        """Whether the streams have records of items that were there before."""

    def answer(self, region: str, request: Any) -> Any:
        match request:
            case Enqueue(messages):
                return tuple(self._put(region, message) for message in messages)
            case DeadLetter(body):
                self.posts[region].dead.append(body)
                return None
            case Publish():
                lost = self._is_lost()
                if not lost or self.choices.pick(2):
                    self.posts[region].events.append(request.detail)
                if lost:
                    raise OutcomeUnknown("The answer of the event bus was lost.")
                return None
        return super().answer(region, request)

    def _put(self, region: str, message: Message) -> LedgerError | None:
        lost = self._is_lost()
        if not lost or self.choices.pick(2):
            queued = Queued(message_of(message.job), self.now_ms + message.delay_s * 1_000)
            self.posts[region].queue.append(queued)
        return OutcomeUnknown("The answer of the queue was lost.") if lost else None

    def _is_lost(self) -> bool:
        return self.mishaps.lost > 0 and self.choices.chance(self.mishaps.lost)

    def _store(self, region: str, key: Key, item: Item | None, stamp: Stamp) -> None:
        new = item is not None and self.replicas[region].item(key) is None
        super()._store(region, key, item, stamp)
        if item is not None and (new or self.shows_changes):
            late = self.choices.pick(self.mishaps.stream_late + 1) if self.mishaps.stream_late else 0
            post = self.posts[region]
            step = max(self.step + late, post.records[-1].step if post.records else 0)
            post.records.append(Record(self.now_ms // 1_000 * 1_000, step, key, item, new))

    def read_stream(self, region: str, most: int) -> list[Record]:
        """The next records that can be read."""
        post = self.posts[region]
        return [each for each in post.records[post.position :][:most] if each.step <= self.step]

    def receive(self, region: str, most: int) -> list[Queued]:
        """Some messages whose time has come, in any order. They can be received again after the visibility time-out."""
        there = [each for each in self.posts[region].queue if each.from_ms <= self.now_ms]
        taken: list[Queued] = []
        while there and len(taken) < most:
            message = there.pop(self.choices.pick(len(there)))
            doubled = self.mishaps.doubled and self.choices.chance(self.mishaps.doubled)
            if not doubled:
                message.from_ms = self.now_ms + VISIBILITY_MS
            taken.append(message)
        return taken

    def delete(self, region: str, messages: Sequence[Queued]) -> None:
        queue = self.posts[region].queue
        for message in messages:
            if message.from_ms > self.now_ms and message in queue:  # a doubled one stays for its second receive
                queue.remove(message)

    def purge(self, region: str) -> None:
        """Everything on its queue is lost."""
        self.purged = True
        self.posts[region].queue.clear()

    def next_ms(self, region: str) -> int | None:
        """When the next message can be received."""
        return min((each.from_ms for each in self.posts[region].queue), default=None)
