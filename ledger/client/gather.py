"""Group commit: while a put is in flight, further adds gather, and then leave together in one
request.

Rule 1: Nobody waits for a timer: a change that finds nothing in flight is put at once, alone; those
that wait leave when that put returns.
Rule 2: First come, first sent: the first that waits leads, and takes with it all that wait by then.
Rule 3: A put that is stuck holds nobody: the first that waits leads after WAIT_S, as long as fewer
than IN_FLIGHT_MAX puts are in flight. The first alone has a timer, so however many wait, one thread
wakes up for nothing.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, SimpleQueue

from ledger.core.cost import NOTHING, Cost, Meter, here
from ledger.core.errors import LedgerError, OutcomeUnknown, Unavailable
from ledger.core.values import Delta, Lane, Receipt
from ledger.lane.add import PACK_CHANGES, Outcome, failed

WAIT_S = 0.05  # how long a change waits for a put before it that does not return
IN_FLIGHT_MAX = 4  # puts of a queue at once
# changes of a queue that wait; a further one waits for room, outside
WAITING_MAX = 4 * PACK_CHANGES
LANES_MAX = 25  # lanes of one request


@dataclass(slots=True, eq=False)
class Waiter:
    """A change that waits. queue: the limited lane that has its own, None for the shared one.
    woken: True where it may lead. batch: those that it leads, itself too. cost: its share."""

    delta: Delta
    queue: Lane | None = None
    woken: SimpleQueue[bool] = field(default_factory=SimpleQueue)
    batch: Sequence["Waiter"] = ()
    outcome: Outcome | None = None
    cost: Cost = NOTHING


@dataclass(slots=True)
class Queue:
    """Changes that wait, in their order, and those that lead a put in flight."""

    name: Lane | None
    waiting: deque[Waiter] = field(default_factory=deque)
    leaders: set[Waiter] = field(default_factory=set)

    def is_first(self, waiter: Waiter) -> bool:
        return bool(self.waiting) and self.waiting[0] is waiter

    def first_batch(self) -> Sequence[Waiter]:
        """The first changes that fit one request, in their order."""
        lanes: set[Lane] = set()
        batch: list[Waiter] = []
        for waiter in islice(self.waiting, PACK_CHANGES):
            lanes.add(waiter.delta.lane)
            if len(lanes) > LANES_MAX:
                break
            batch.append(waiter)
        return tuple(batch)

    def drop(self, gone: Sequence[Waiter]) -> None:
        leaving = {*gone}
        self.waiting = deque(waiter for waiter in self.waiting if waiter not in leaving)

    def wake_first(self, *, leads: bool) -> None:
        """Wake the first that waits. A wake-up too many costs a look."""
        if self.waiting:
            self.waiting[0].woken.put(leads)


class Gatherer:
    """Sends changes for many threads.

    send(deltas): the outcomes. is_limited(lane): whether it travels alone.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Delta]], Sequence[Outcome]],
        is_limited: Callable[[Lane], bool],
    ) -> None:
        self._send, self._is_limited = send, is_limited
        # `with` it is C, and no signal comes between taking it and giving it back
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._queues: dict[Lane | None, Queue] = {}
        self._closed = False

    def add(self, delta: Delta) -> Receipt:
        """Record one change.

        Raises its LedgerError; Unavailable (nothing written) after `close`.
        """
        # Rule 5: lanes without a limit share a queue: each request takes the changes of as many
        # lanes as it has places for. A limited lane has a queue of its own, because its gate
        # decides its changes together.
        waiter = Waiter(delta, delta.lane if self._is_limited(delta.lane) else None)
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
        """Refuse further changes; when it returns, each change that was taken has its outcome."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._queues)

    def _outcome(self, waiter: Waiter) -> Outcome:
        with self._lock:
            self._changed.wait_for(lambda: self._closed or self._has_room(waiter.queue))
            if self._closed:
                closed = Unavailable(
                    "The ledger is closed. Nothing was written. Pass this error's delta to `apply` "
                    "of an open ledger."
                )
                raise failed(closed, waiter.delta)
            queue = self._queues.setdefault(waiter.queue, Queue(waiter.queue))
            queue.waiting.append(waiter)
            leads = queue.is_first(waiter) and not queue.leaders
        while waiter.outcome is None:
            if leads or self._woken(queue, waiter):
                self._lead(queue, waiter)
            leads = False
        return waiter.outcome

    def _has_room(self, name: Lane | None) -> bool:
        return name not in self._queues or len(self._queues[name].waiting) < WAITING_MAX

    def _woken(self, queue: Queue, waiter: Waiter) -> bool:
        """Wait until somebody wakes the waiter; the first one waits for WAIT_S at most.

        Whether it may lead then.
        """
        with self._lock:
            timeout = WAIT_S if queue.is_first(waiter) else None
        try:
            return waiter.woken.get(timeout=timeout)
        except Empty:
            return True

    def _lead(self, queue: Queue, waiter: Waiter) -> None:
        """Put the changes that wait, if the waiter is the first of them and few puts are in
        flight.
        """
        with self._lock:
            if not queue.is_first(waiter) or len(queue.leaders) >= IN_FLIGHT_MAX:
                return
            # Rule 4: every caller gets an outcome of its own, whatever happens to the leader. A
            # caller that is interrupted, at any line, leaves nothing in the queue. So the leader
            # notes its batch before it takes it out, and `_leave` may come from anywhere.
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
                outcomes = self._send([waiter.delta for waiter in batch])
            finally:
                # Rule 6: each change of a put has an equal share of its cost, the leader's too
                share = meter.take().share(len(batch))
                for waiter in batch:
                    waiter.cost = share
        for waiter, outcome in zip(batch, outcomes, strict=True):
            waiter.outcome = outcome

    def _leave(self, gone: Sequence[Waiter], waiter: Waiter) -> None:
        """Wake all that the waiter led, and the first that waits, which may lead now.

        gone: those that wait no more.
        """
        with self._lock:
            for led in waiter.batch:
                if led.outcome is None:
                    unknown = OutcomeUnknown(
                        "The put was interrupted. It may or may not have been applied."
                    )
                    led.outcome = failed(unknown, led.delta)
                led.woken.put(False)
            queue = self._queues.get(waiter.queue)
            if queue is None:  # another sent the waiter, and was the last to leave
                return
            queue.drop(gone)
            queue.leaders.discard(waiter)
            queue.wake_first(leads=True)
            if not queue.leaders and not queue.waiting:
                del self._queues[queue.name]
            self._changed.notify_all()
