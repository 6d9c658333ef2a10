"""Every minute: marks that are due -> claimed -> the work queue.

Rule 1: A lane is sent only by who claimed it, so two events at once send it once.
Rule 2: Claimed first, sent then: a crash between the two, or a message lost, leaves the lane due again after the lease.
Those that waited longest go first, so that a bound on lanes starves nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from ledger.errors import LedgerError
from ledger.paging import Pages
from ledger.requests import Instant, Now, Page, Query
from ledger.settings import Settings
from service import observe
from service.marks import LEASE_MS, Claim, Mark, buckets_of, mark_of
from service.runtime import Runtime, chunks
from service.work import MESSAGES_MAX, Send, Work

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

LANES_MAX = 5_000
"""Lanes that one run sends; the others wait a minute."""


@dataclass(slots=True)
class Planned:
    """Of one chunk: lanes claimed and sent; claimed but perhaps not sent; claimed by another run."""

    sent: int = 0
    unsent: int = 0
    taken: int = 0


def due_marks(region: str, most: int = LANES_MAX) -> Generator[Any, Any, list[Mark]]:
    """The marks that are due, the longest waiting first, at most so many; of the others it keeps few in memory."""
    now: Instant = yield Now()
    due: list[Mark] = []
    for pk in buckets_of(region):
        pages = Pages(Query(pk, consistent=False))
        while pages.more:
            page: Page = yield from pages.read()
            marks = (mark_of(item) for item in page.items)
            due += (mark for mark in marks if mark is not None and mark.is_due(now.wall_ms))
            if len(due) > 2 * most:
                due = _longest_waiting(due, most)
    return _longest_waiting(due, most)


def _longest_waiting(marks: list[Mark], most: int) -> list[Mark]:
    return nsmallest(most, marks, key=lambda mark: mark.wake_ms)


def send_due(marks: Sequence[Mark], stop: Callable[[], bool]) -> Generator[Any, Any, Planned]:
    """Claim up to ten marks and send their lanes, unless time is up. Never raises a LedgerError of a claim."""
    planned = Planned()
    claimed: list[Work] = []
    for mark in marks:
        if stop():
            break
        now: Instant = yield Now()
        try:
            ours: bool = yield Claim(mark, now.wall_ms + LEASE_MS)
        except LedgerError:  # claimed or not, the lane is due again, after the lease at the latest
            planned.unsent += 1
            continue
        if ours:
            claimed.append(Work(mark.lane, planned=True))
        else:
            planned.taken += 1
    if claimed:
        try:
            failed: tuple[Work, ...] = yield Send(tuple(claimed))
        except LedgerError:
            failed = tuple(claimed)
        planned.unsent += len(failed)
        planned.sent += len(claimed) - len(failed)
    return planned


class Planner:
    def __init__(self, settings: Settings, runtime: Runtime, log: Logger, metrics: observe.Metered) -> None:
        self._settings, self._runtime = settings, runtime
        self._log, self._metrics = log, metrics

    def __call__(self, stop: Callable[[], bool]) -> Planned:
        """One run. Raises the TableErrors of the Query, and RuntimeError when lanes were not sent, for the alarm."""
        marks = self._runtime.run(due_marks(self._settings.region))
        parts = self._runtime.run_each(send_due(chunk, stop) for chunk in chunks(marks, MESSAGES_MAX))
        total = Planned()
        for part in parts:
            if isinstance(part, LedgerError):
                raise part
            total.sent += part.sent
            total.unsent += part.unsent
            total.taken += part.taken
        observe.count(self._metrics, observe.LANES_PLANNED, total.sent)
        self._log.info("planned", extra={"due": len(marks), "sent": total.sent, "taken": total.taken})
        if total.unsent:
            raise RuntimeError(f"{total.unsent} lanes were not sent; they are due again after the lease")
        return total
