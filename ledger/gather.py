"""Group commit: while a put of a lane is in flight, further adds of that lane gather, and leave together in one pack.

Rule 1: Nobody waits for a timer: a change that finds nothing in flight is put at once, alone, as `add` does; who waits
leaves when that put returns.
Rule 2: First come, first sent: the first that waits leads, and takes with it whoever waits by then.
Rule 3: A put that is stuck holds nobody: who has waited WAIT_S leads itself, as long as fewer than IN_FLIGHT_MAX lead.
Where as many do, who waits is patient and has no timer. Whoever makes them fewer wakes all who are patient.
Rule 4: Every caller gets an outcome of its own, whatever befalls the one that led; who is interrupted, at whatever
line, leaves nothing in the queue. So what is taken out of it is noted first, and `_leave` may come from anywhere.
Rule 5: What a put costs is no more its leader's than anybody else's: each change that went in it has an equal share.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, SimpleQueue

from ledger.cost import NOTHING, Cost, Meter, here
from ledger.errors import LedgerError, OutcomeUnknown, Unavailable
from ledger.lane.add import PACK_CHANGES, Outcome, failed
from ledger.values import Delta, Lane, Receipt

WAIT_S = 0.05
"""How long a change waits for a put before it that does not return."""

IN_FLIGHT_MAX = 4
"""Puts of a lane in flight at once."""

WAITING_MAX = 4 * PACK_CHANGES
"""Changes of a lane that wait; who comes then waits for room, outside."""


@dataclass(slots=True, eq=False)
class Waiter:
    """A change that waits. batch: whom it leads, itself among them; empty while it leads nobody. cost: its share."""

    delta: Delta
    woken: SimpleQueue[None] = field(default_factory=SimpleQueue)
    batch: Sequence["Waiter"] = ()
    outcome: Outcome | None = None
    cost: Cost = NOTHING


@dataclass(slots=True)
class Queue:
    """The changes of a lane that wait, in their order, and those that lead: at least one while any wait. patient: those
    that wait for a wake-up alone; none while fewer than IN_FLIGHT_MAX lead.
    """

    lane: Lane
    waiting: deque[Waiter] = field(default_factory=deque)
    leaders: set[Waiter] = field(default_factory=set)
    patient: set[Waiter] = field(default_factory=set)

    def drop(self, gone: Sequence[Waiter]) -> None:
        left = {*gone}
        self.waiting = deque(each for each in self.waiting if each not in left)
        self.patient -= left

    def wake(self) -> None:
        """Who is patient waits for WAIT_S again, if it may lead then. A wake-up too many costs a look."""
        if len(self.leaders) < IN_FLIGHT_MAX:
            for waiter in self.patient:
                waiter.woken.put(None)
            self.patient.clear()


class Gatherer:
    """Sends changes for many threads. send(deltas) answers an outcome for each, in order."""

    def __init__(self, send: Callable[[Sequence[Delta]], Sequence[Outcome]]) -> None:
        self._send = send
        self._lock = threading.RLock()  # `with` it is C, and no signal comes between taking it and giving it back
        self._changed = threading.Condition(self._lock)
        self._queues: dict[Lane, Queue] = {}
        self._closed = False

    def add(self, delta: Delta) -> Receipt:
        """Record one change. Raises its LedgerError; Unavailable (nothing written) after `close`."""
        waiter = Waiter(delta)
        try:
            outcome = self._outcome(waiter)
        except BaseException:
            self._leave(waiter, gone=True)
            raise
        finally:
            here().add(waiter.cost)
        if isinstance(outcome, LedgerError):
            raise outcome
        return outcome

    def close(self) -> None:
        """Take no further changes; when it returns, every one that was taken has its outcome."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._queues)

    def _outcome(self, waiter: Waiter) -> Outcome:
        lane = waiter.delta.lane
        with self._lock:
            self._changed.wait_for(lambda: self._closed or self._has_room(lane))
            if self._closed:
                raise failed(Unavailable("The ledger is closed. Nothing was written."), waiter.delta)
            queue = self._queues.setdefault(lane, Queue(lane))
            queue.waiting.append(waiter)
            if not queue.leaders:
                self._give_turn(queue, waiter)
        while waiter.outcome is None:
            try:
                waiter.woken.get(timeout=self._patience_s(queue, waiter))
            except Empty:
                self._tire(queue, waiter)
            self._lead(queue, waiter)
        return waiter.outcome

    def _has_room(self, lane: Lane) -> bool:
        return lane not in self._queues or len(self._queues[lane].waiting) < WAITING_MAX

    def _give_turn(self, queue: Queue, waiter: Waiter) -> None:
        queue.leaders.add(waiter)
        waiter.woken.put(None)

    def _patience_s(self, queue: Queue, waiter: Waiter) -> float | None:
        """How long it waits for a wake-up before it leads itself. None: whoever sends it wakes it, or, while as many
        lead as may, whoever makes them fewer.
        """
        with self._lock:
            if waiter.outcome is not None or (waiter in queue.waiting and len(queue.leaders) < IN_FLIGHT_MAX):
                return WAIT_S
            if waiter in queue.waiting:
                queue.patient.add(waiter)
            return None

    def _tire(self, queue: Queue, waiter: Waiter) -> None:
        """Lead without being called, because the puts in flight take so long."""
        with self._lock:
            if len(queue.leaders) < IN_FLIGHT_MAX and waiter in queue.waiting:
                self._give_turn(queue, waiter)

    def _lead(self, queue: Queue, waiter: Waiter) -> None:
        """Send whoever waits, if it is the waiter's turn; who had a turn and is sent by another gives it back."""
        with self._lock:
            if waiter not in queue.leaders:
                return
            waiter.batch = tuple(islice(queue.waiting, PACK_CHANGES))
            queue.drop(waiter.batch)
            queue.leaders.difference_update(each for each in waiter.batch if each is not waiter)
            queue.wake()
            self._changed.notify_all()
        if waiter.batch:
            self._put(waiter.batch)
        self._leave(waiter)

    def _put(self, batch: Sequence[Waiter]) -> None:
        with Meter() as meter:
            try:
                outcomes = self._send([each.delta for each in batch])
            finally:
                share = meter.take().share(len(batch))
                for each in batch:
                    each.cost = share
        for each, outcome in zip(batch, outcomes, strict=True):
            each.outcome = outcome

    def _leave(self, waiter: Waiter, *, gone: bool = False) -> None:
        """Tell everybody whom the waiter led, and give the turn on if it was the waiter's. gone: it waits no more."""
        with self._lock:
            for each in waiter.batch:
                if each.outcome is None:
                    unknown = "The put was interrupted. Call again with the same key, or apply the delta."
                    each.outcome = failed(OutcomeUnknown(unknown), each.delta)
                each.woken.put(None)
            queue = self._queues.get(waiter.delta.lane)
            if queue is None:  # another sent the waiter, and was the last to leave
                return
            led = waiter in queue.leaders
            queue.drop([*waiter.batch, waiter] if gone else waiter.batch)
            waiter.batch = ()
            queue.leaders.discard(waiter)
            if queue.waiting and not queue.leaders.intersection(queue.waiting) and (led or not queue.leaders):
                self._give_turn(queue, queue.waiting[0])
            queue.wake()
            if not queue.leaders and not queue.waiting:
                del self._queues[queue.lane]
            self._changed.notify_all()
