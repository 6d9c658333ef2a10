"""Group commit: while a put is in flight, further adds gather, and leave together in one request.

Rule 1: Nobody waits for a timer: a change that finds nothing in flight is put at once, alone, as `add` does; who waits
leaves when that put returns.
Rule 2: First come, first sent: the first that waits leads, and takes with it whoever waits by then.
Rule 3: A put that is stuck holds nobody: the first that waits leads after WAIT_S, as long as fewer than IN_FLIGHT_MAX
puts are in flight. The first alone has a timer, so however many wait, one thread wakes up for nothing.
Rule 4: Every caller gets an outcome of its own, whatever befalls the one that led; who is interrupted, at whatever
line, leaves nothing in the queue. So what is taken out of it is noted first, and `_leave` may come from anywhere.
Rule 5: Lanes without a limit share a queue: each request takes the changes of up to so many lanes as it has places for.
A limited lane has a queue of its own, because its gate decides its changes together.
Rule 6: What a put costs is no more its leader's than anybody else's: each change that went in it has an equal share.
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

WAIT_S = 0.05  # how long a change waits for a put before it that does not return
IN_FLIGHT_MAX = 4  # puts of a queue at once
WAITING_MAX = 4 * PACK_CHANGES  # changes of a queue that wait; who comes then waits for room, outside
LANES_MAX = 25  # lanes of one request


@dataclass(slots=True, eq=False)
class Waiter:
    """A change that waits. woken: True where it may lead. batch: whom it leads, itself too. cost: its share."""

    delta: Delta
    woken: SimpleQueue[bool] = field(default_factory=SimpleQueue)
    batch: Sequence["Waiter"] = ()
    outcome: Outcome | None = None
    cost: Cost = NOTHING


@dataclass(slots=True)
class Queue:
    """The changes of some lanes that wait, in their order, and those that lead a put in flight."""

    name: Lane | None
    waiting: deque[Waiter] = field(default_factory=deque)
    leaders: set[Waiter] = field(default_factory=set)

    def is_first(self, waiter: Waiter) -> bool:
        return bool(self.waiting) and self.waiting[0] is waiter

    def first_batch(self) -> Sequence[Waiter]:
        """Those that fit one request, in their order."""
        lanes: set[Lane] = set()
        batch: list[Waiter] = []
        for waiter in islice(self.waiting, PACK_CHANGES):
            lanes.add(waiter.delta.lane)
            if len(lanes) > LANES_MAX:
                break
            batch.append(waiter)
        return tuple(batch)

    def drop(self, gone: Sequence[Waiter]) -> None:
        left = {*gone}
        self.waiting = deque(each for each in self.waiting if each not in left)

    def wake_first(self, *, leads: bool) -> None:
        """A wake-up too many costs a look."""
        if self.waiting:
            self.waiting[0].woken.put(leads)


class Gatherer:
    """Sends changes for many threads. send(deltas) answers an outcome for each, in order. is_limited(lane): whether
    its changes travel alone."""

    def __init__(
        self, send: Callable[[Sequence[Delta]], Sequence[Outcome]], is_limited: Callable[[Lane], bool]
    ) -> None:
        self._send, self._is_limited = send, is_limited
        self._lock = threading.RLock()  # `with` it is C, and no signal comes between taking it and giving it back
        self._changed = threading.Condition(self._lock)
        self._queues: dict[Lane | None, Queue] = {}
        self._closed = False

    def add(self, delta: Delta) -> Receipt:
        """Record one change. Raises its LedgerError; Unavailable (nothing written) after `close`."""
        waiter = Waiter(delta)
        try:
            outcome = self._outcome(waiter)
        except BaseException:
            self._leave([waiter, *waiter.batch], waiter)
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
        name = self._queue_of(waiter)
        with self._lock:
            self._changed.wait_for(lambda: self._closed or self._has_room(name))
            if self._closed:
                raise failed(Unavailable("The ledger is closed. Nothing was written."), waiter.delta)
            queue = self._queues.setdefault(name, Queue(name))
            queue.waiting.append(waiter)
            leads = queue.is_first(waiter) and not queue.leaders
        while waiter.outcome is None:
            if leads or self._woken(queue, waiter):
                self._lead(queue, waiter)
            leads = False
        return waiter.outcome

    def _queue_of(self, waiter: Waiter) -> Lane | None:
        lane = waiter.delta.lane
        return lane if self._is_limited(lane) else None

    def _has_room(self, name: Lane | None) -> bool:
        return name not in self._queues or len(self._queues[name].waiting) < WAITING_MAX

    def _woken(self, queue: Queue, waiter: Waiter) -> bool:
        """Wait until somebody wakes the waiter, or, of the first, until its time is over. Whether it may lead then."""
        with self._lock:
            timeout = WAIT_S if queue.is_first(waiter) else None
        try:
            return waiter.woken.get(timeout=timeout)
        except Empty:
            return True

    def _lead(self, queue: Queue, waiter: Waiter) -> None:
        """Put the changes that wait, if the waiter is the first of them and few puts are in flight."""
        with self._lock:
            if not queue.is_first(waiter) or len(queue.leaders) >= IN_FLIGHT_MAX:
                return
            waiter.batch = queue.first_batch()
            queue.leaders.add(waiter)
            queue.drop(waiter.batch)
            queue.wake_first(leads=False)  # it has the timer now
            self._changed.notify_all()
        self._put(waiter.batch)
        self._leave(waiter.batch, waiter)

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

    def _leave(self, gone: Sequence[Waiter], waiter: Waiter) -> None:
        """Wake everybody whom the waiter led, and the first that waits, which may lead now. gone: who waits no more."""
        with self._lock:
            for each in waiter.batch:
                if each.outcome is None:
                    unknown = "The put was interrupted. Call again with the same key, or apply the delta."
                    each.outcome = failed(OutcomeUnknown(unknown), each.delta)
                each.woken.put(False)
            queue = self._queues.get(self._queue_of(waiter))
            if queue is None:  # another sent the waiter, and was the last to leave
                return
            queue.drop(gone)
            queue.leaders.discard(waiter)
            queue.wake_first(leads=True)
            if not queue.leaders and not queue.waiting:
                del self._queues[queue.name]
            self._changed.notify_all()
