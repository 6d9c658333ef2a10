"""The programs `read`, for the sum of lanes, true at every moment, and `balances`, for several
counters together.

Rule 1: for every lane the program reads the checkpoint before the tail, never after, so that the
tail counts an entry folded in between, and nobody misses it.
Rule 2: the tail is everything strictly above the watermark, all pages.
Rule 3: a read that took longer than `read_time_max_ms` by either clock does not count, because by
then clean may have deleted a folded delta: it starts again from the checkpoint.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ledger.core import items, tokens
from ledger.core.checks import to_datetime
from ledger.core.entries import Entries
from ledger.core.errors import NotYetReplicated, ReadTooSlow
from ledger.core.requests import GetMany, Instant, Now, Page, Program, Together, in_time
from ledger.core.running import answered
from ledger.core.settings import Settings, plans_of
from ledger.core.values import Checkpoint, Lane
from ledger.gate.copies import read_copies
from ledger.gate.gates import Gates
from ledger.lane.tail import TailSum
from reader.balance import Balance

STARTS_MAX = 5
Found = TypeVar("Found")


def restart(
    what: object,
    attempt: Callable[[Instant], Program[tuple[Found | None, bool]]],
    read_time_max_ms: int,
) -> Program[tuple[Instant, Found]]:
    """Run attempts until one is whole: when that one began, and what it found. An attempt that took
    too long does not count. Nor does one that found a checkpoint without its segments: a replica
    does not hold them all yet.

    attempt(began) returns what it found, or None when segments are missing, and whether its time is
    bounded. Raises ReadTooSlow, NotYetReplicated and what an attempt raises.
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
        f"{what}: this Region does not hold every segment that its checkpoint counts yet. Nothing "
        "was written. Call again later."
    )


@dataclass(frozen=True, slots=True)
class LaneSum:
    """The sum of a lane: the checkpoint's and the tail's. pending: the entries of the tail.

    oldest_ms: the time of the tail's lowest token, or None. until_ms: the watermark's time, where
    the tail was left out.
    """

    lane: Lane
    value: int
    count: int
    pending: int = 0
    oldest_ms: int | None = None
    until_ms: int | None = None


def read(
    lanes: Sequence[Lane], *, consistent: bool, read_time_max_ms: int, behind_ms: int = 0
) -> Program[tuple[Instant, list[LaneSum]]]:
    """The sums of `lanes` and the instant at which the read began.

    Raises DamagedItem, ReadTooSlow, Unavailable and the other TableErrors.
    """

    def attempt(began: Instant) -> Program[tuple[list[LaneSum], bool]]:
        found = yield GetMany(tuple(items.checkpoint_key(lane) for lane in lanes), consistent)
        checkpoints = [
            None if item is None else items.checkpoint_of(lane, item)
            for lane, item in zip(lanes, found, strict=True)
        ]
        # Rule 4: such a checkpoint has every change that was requested until then and came in time.
        left_out = [behind_ms > 0 and _is_young(c, began.wall_ms - behind_ms) for c in checkpoints]
        tails = [
            TailSum(lane, checkpoint.watermark if checkpoint else None, consistent=consistent)
            for lane, checkpoint in zip(lanes, checkpoints, strict=True)
        ]
        yield from read_all([tail for tail, out in zip(tails, left_out, strict=True) if not out])
        sums: list[LaneSum] = []
        for lane, checkpoint, tail, out in zip(lanes, checkpoints, tails, left_out, strict=True):
            total, count = (checkpoint.total, checkpoint.count) if checkpoint else (0, 0)
            until_ms = tokens.time_ms(checkpoint.watermark) if checkpoint and out else None
            sums.append(
                LaneSum(
                    lane,
                    total + tail.total,
                    count + tail.count,
                    tail.count,
                    tail.oldest_ms,
                    until_ms,
                )
            )
        return sums, True

    return restart(lanes[0].counter, attempt, read_time_max_ms)


def _is_young(checkpoint: Checkpoint | None, since_ms: int) -> bool:
    return checkpoint is not None and tokens.time_ms(checkpoint.watermark) >= since_ms


def read_all(tails: Sequence[TailSum], use: Callable[[Entries], object] = len) -> Program[None]:
    """Read tails to their ends, and call `use` with new entries.

    It reads the pages of all lanes together.
    """
    left = list(tails)
    while left:
        pages: tuple[Page, ...] = answered((yield Together(tuple(tail.next for tail in left))))
        for tail, page in zip(left, pages, strict=True):
            for entries in tail.take(page):
                use(entries)
        left = [tail for tail in left if tail.more]


def balances(
    counters: Sequence[str], settings: Settings, *, consistent: bool, behind_ms: int = 0
) -> Program[dict[str, Balance]]:
    """Raises DamagedItem, LimitMismatch, ReadTooSlow, Unavailable and the other TableErrors."""
    plans = [*map(plans_of(settings), counters)]
    plain = [plan.counter for plan in plans if plan.limit is None]
    limited = [plan.counter for plan in plans if plan.limit is not None]
    parts: dict[str, list[LaneSum]] = {}
    began_ms, is_closed = dict.fromkeys(counters, 0), dict.fromkeys(counters, True)
    if limited:  # from their gates alone: one request for any number of them
        began: Instant = yield Now()
        gates = [Gates.limited(settings, counter, "read") for counter in limited]
        seen = yield from read_copies(gates, consistent=consistent)
        for counter, copies in zip(limited, seen, strict=True):
            parts[counter] = [LaneSum(gate.lane, gate.value, gate.number) for gate in copies.gates]
            began_ms[counter], is_closed[counter] = began.wall_ms, copies.is_closed
    if plain:
        lanes = [lane for plan in plans if plan.limit is None for lane in plan.lanes()]
        limit_ms = settings.read_time_max_ms
        began, lane_sums = yield from read(
            lanes, consistent=consistent, read_time_max_ms=limit_ms, behind_ms=behind_ms
        )
        began_ms |= dict.fromkeys(plain, began.wall_ms)
        for part in lane_sums:
            parts.setdefault(part.lane.counter, []).append(part)
    found: dict[str, Balance] = {}
    for counter, sums in parts.items():
        by_region = dict.fromkeys(settings.regions, 0)
        for part in sums:
            by_region[part.lane.region] += part.value
        oldest_ms = min(
            (part.oldest_ms for part in sums if part.oldest_ms is not None), default=None
        )
        found[counter] = Balance(
            value=sum(by_region.values()),
            count=sum(part.count for part in sums),
            as_of=to_datetime(
                min([began_ms[counter], *(p.until_ms for p in sums if p.until_ms is not None)])
            ),
            pending=sum(part.pending for part in sums),
            by_region=by_region,
            oldest_pending=None if oldest_ms is None else to_datetime(oldest_ms),
            closed=is_closed[counter],
        )
    return found
