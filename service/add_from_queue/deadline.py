"""The time that an invocation has left, and a ledger that begins no request when it is nearly over.

Rule 1: Lambda kills a function when its time is over, and then all messages of its batch come
again. So no request begins when less time is left than the longest call lasts. What was not sent
fails, and its message comes again.
Rule 2: It stops adding, then answering, a while before that, because what is decided and not
answered is not done, and because what is left of a message has to be sent.
Rule 3: However short its time-out, a function adds for some of it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ledger import Ledger
from ledger.core.errors import Again
from ledger.core.requests import At, DeleteMany, PutMany, Request, Together
from service.runtime import STOP_MS

MARGIN_OF, PART_OF = 3, 10
"""The margin is at most a third of an invocation's time. In the tenth before it, the function sends
what is left; in the tenth before that it answers."""


class NotInTime(Again):
    """The function's time was nearly over, so that it did not send a request of this change. The
    message comes again, and counts once."""

    def __init__(self) -> None:
        super().__init__(
            "The function's time was nearly over before this change was done. Its message comes "
            "again."
        )


class Deadline:
    """Of one invocation.

    Without a context of Lambda, as in a process that nobody kills, it is never near.
    """

    def __init__(self, context: object, *, answers: bool) -> None:
        self._left_ms: Callable[[], float] = getattr(
            context, "get_remaining_time_in_millis", lambda: float("inf")
        )
        all_ms = self._left_ms()
        self._margin_ms = min(STOP_MS, all_ms / MARGIN_OF)
        self._answered_ms = self._margin_ms + all_ms / PART_OF
        self._added_ms = self._answered_ms + (all_ms / PART_OF if answers else 0)

    def ends_adding(self) -> bool:
        """Whether too little is left to begin a request of the table."""
        return self._left_ms() < self._added_ms

    def ends_answering(self) -> bool:
        """Whether too little is left to send an outcome."""
        return self._left_ms() < self._answered_ms

    def is_near(self) -> bool:
        """Whether too little is left to begin any call."""
        return self._left_ms() < self._margin_ms


class _InTime:
    """A table that is asked nothing once `is_over()`."""

    def __init__(self, table: Any, is_over: Callable[[], bool]) -> None:
        self._table, self._is_over = table, is_over
        self.one_at_a_time = getattr(table, "one_at_a_time", False)

    def answer(self, request: Request, /) -> Any:
        return _refused(request) if self._is_over() else self._table.answer(request)


def _refused(request: Request) -> tuple[NotInTime, ...]:
    """The answer to a request that is not sent.

    Raises NotInTime, if it is no request of several parts.
    """
    match request:
        case At(_, inner):
            return _refused(inner)
        case PutMany(parts) | DeleteMany(parts) | Together(parts):
            return tuple(NotInTime() for _ in parts)
    raise NotInTime


def in_time(ledger: Ledger, is_over: Callable[[], bool]) -> Ledger:
    """The same ledger for an invocation: with all that it knows, but its requests raise
    NotInTime once `is_over()`.
    """
    ours = copy.copy(ledger)
    ours._table = _InTime(ledger._table, is_over)
    return ours
