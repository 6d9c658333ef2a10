"""Group commit: while a put of a lane is in flight, further adds of that lane gather, and leave together in one pack.

Rule 1: Nobody waits for a timer: a change that finds nothing in flight is put at once, alone, as `add` does; who waits
leaves when that put returns.
Rule 2: First come, first sent: the first that waits leads, and takes with it whoever waits by then.
Rule 3: A put that is stuck holds nobody: who has waited WAIT_S leads itself, as long as few puts are in flight.
Rule 4: Every caller gets an outcome of its own, whatever befalls the one that led.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ledger.errors import LedgerError, OutcomeUnknown, Unavailable
from ledger.packing import PACK_CHANGES, Outcome, failed
from ledger.values import Delta, Lane, Receipt

WAIT_S = 0.05
"""How long a change waits for a put before it that does not return."""

IN_FLIGHT_MAX = 4
"""Puts of a lane in flight at once."""

WAITING_MAX = 4 * PACK_CHANGES
"""Changes of a lane that wait; who comes then waits for room, outside."""


@dataclass(slots=True, eq=False)
class Waiter:
    """A change that waits. leads: it is its turn to send, and one of the puts in flight is kept for it."""

    delta: Delta
    woken: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    outcome: Outcome | None = None


@dataclass(slots=True)
class Queue:
    """The changes of a lane that wait, in their order, and the puts in flight: at least one while any wait."""

    lane: Lane
    waiting: deque[Waiter] = field(default_factory=deque)
    in_flight: int = 0


class Gatherer:
    """Sends changes for many threads. send(deltas) answers an outcome for each, in order."""

    def __init__(self, send: Callable[[Sequence[Delta]], Sequence[Outcome]]) -> None:
        self._send = send
        self._changed = threading.Condition()
        self._queues: dict[Lane, Queue] = {}
        self._closed = False

    def add(self, delta: Delta) -> Receipt:
        """Record one change. Raises its LedgerError; Unavailable (nothing written) after `close`."""
        waiter = Waiter(delta)
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_room(delta.lane))
            if self._closed:
                raise failed(Unavailable("The ledger is closed. Nothing was written."), delta)
            queue = self._queues.setdefault(delta.lane, Queue(delta.lane))
            queue.waiting.append(waiter)
            if queue.in_flight == 0:
                self._give_turn(queue, waiter)
        while waiter.outcome is None:
            if not waiter.woken.wait(WAIT_S):
                self._tire(queue, waiter)
            self._lead(queue, waiter)
        if isinstance(waiter.outcome, LedgerError):
            raise waiter.outcome
        return waiter.outcome

    def close(self) -> None:
        """Take no further changes; when it returns, every one that was taken has its outcome."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._queues)

    def _has_room(self, lane: Lane) -> bool:
        return lane not in self._queues or len(self._queues[lane].waiting) < WAITING_MAX

    def _give_turn(self, queue: Queue, waiter: Waiter) -> None:
        queue.in_flight += 1
        waiter.leads = True
        waiter.woken.set()

    def _tire(self, queue: Queue, waiter: Waiter) -> None:
        """Lead without being called, because the puts in flight take so long."""
        with self._changed:
            if not waiter.leads and waiter in queue.waiting and queue.in_flight < IN_FLIGHT_MAX:
                self._give_turn(queue, waiter)

    def _lead(self, queue: Queue, waiter: Waiter) -> None:
        """Send whoever waits, if it is the waiter's turn; who had a turn and is sent by another gives it back."""
        with self._changed:
            waiter.woken.clear()
            if not waiter.leads:
                return
            waiter.leads = False
            batch = [queue.waiting.popleft() for _ in range(min(PACK_CHANGES, len(queue.waiting)))]
            queue.in_flight -= sum(each.leads for each in batch)
            for each in batch:
                each.leads = False
            self._changed.notify_all()
        outcomes: Sequence[Outcome] = ()
        try:
            if batch:
                outcomes = self._send([each.delta for each in batch])
        finally:
            self._end(queue, batch, outcomes)

    def _end(self, queue: Queue, batch: Sequence[Waiter], outcomes: Sequence[Outcome]) -> None:
        """Tell everybody, and give the turn to the first that waits."""
        unknown = OutcomeUnknown("The put was interrupted. Call again with the same key, or apply the delta.")
        for number, each in enumerate(batch):
            each.outcome = outcomes[number] if outcomes else failed(unknown, each.delta)
            each.woken.set()
        with self._changed:
            queue.in_flight -= 1
            if queue.waiting and not queue.waiting[0].leads:
                self._give_turn(queue, queue.waiting[0])
            if not queue.in_flight:
                del self._queues[queue.lane]
                self._changed.notify_all()
