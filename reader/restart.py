"""The program `restart`: a read again from its checkpoint, until one is whole.

Rule 1: a read that took longer than `read_time_max_ms` by either clock is none, because by then a folded delta may be
cleaned; the clocks are asked before its first request and after its last.
Rule 2: a read that met a checkpoint without its segments is none: a replica does not hold them all yet.
"""

from collections.abc import Callable
from typing import TypeVar

from ledger.errors import NotYetReplicated, ReadTooSlow
from ledger.requests import Instant, Now, Program, in_time

STARTS_MAX = 5
Found = TypeVar("Found")


def restart(
    what: object, attempt: Callable[[Instant], Program[tuple[Found | None, bool]]], read_time_max_ms: int
) -> Program[tuple[Instant, Found]]:
    """When the read began that was whole, and what it found.

    attempt(began) answers what it found, or None when segments are missing, and whether its time is bounded.
    Raises ReadTooSlow, NotYetReplicated and what an attempt raises.
    """
    for _ in range(STARTS_MAX):
        began: Instant = yield Now()
        found, bounded = yield from attempt(began)
        ended: Instant = yield Now()
        late = bounded and not in_time(began, ended, read_time_max_ms)
        if found is not None and not late:
            return began, found
    if late:
        raise ReadTooSlow(
            f"{what}: {STARTS_MAX} reads in a row took longer than {read_time_max_ms} ms. "
            "Nothing was written. Let the compactor run, then read again."
        )
    raise NotYetReplicated(
        f"{what}: this Region does not hold every segment that its checkpoint counts. Ask again later."
    )
