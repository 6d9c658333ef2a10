"""The program `read`: the sum of some lanes, true at every moment.

Rule 1: for every lane the checkpoint is read before its tail, never after, so that an entry folded in between is
counted by the tail and not missed.
Rule 2: the tail is everything strictly above the watermark, all pages.
Rule 3: a read that took too long starts again from the checkpoint (restart.py).
Rule 4: a lane whose watermark is at most `behind_ms` old may do without its tail: its checkpoint has every change that
was asked for until then and came in time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger import items, tokens
from ledger.lane.tail import TailSum
from ledger.requests import GetMany, Instant, Page, Program, Together, answered
from ledger.values import Checkpoint, Lane
from reader.restart import restart


@dataclass(frozen=True, slots=True)
class LaneSum:
    """What a lane holds: the checkpoint's sum, and the tail's on top. pending: the entries of the tail.

    oldest_ms: the time of the tail's lowest token, None without a tail. until_ms: the watermark's time, where the tail
    was left out.
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
            None if item is None else items.checkpoint_of(lane, item) for lane, item in zip(lanes, found, strict=True)
        ]
        left_out = [behind_ms > 0 and _is_young(c, began.wall_ms - behind_ms) for c in checkpoints]
        tails = [
            TailSum(lane, checkpoint.watermark if checkpoint else None, consistent=consistent)
            for lane, checkpoint in zip(lanes, checkpoints, strict=True)
        ]
        yield from _read_all([tail for tail, out in zip(tails, left_out, strict=True) if not out])
        sums: list[LaneSum] = []
        for lane, checkpoint, tail, out in zip(lanes, checkpoints, tails, left_out, strict=True):
            total, count = (checkpoint.total, checkpoint.count) if checkpoint else (0, 0)
            until_ms = tokens.time_ms(checkpoint.watermark) if checkpoint and out else None
            sums.append(LaneSum(lane, total + tail.total, count + tail.count, tail.count, tail.oldest_ms, until_ms))
        return sums, True

    return restart(lanes[0].counter, attempt, read_time_max_ms)


def _is_young(checkpoint: Checkpoint | None, since_ms: int) -> bool:
    return checkpoint is not None and tokens.time_ms(checkpoint.watermark) >= since_ms


def _read_all(tails: Sequence[TailSum]) -> Program[None]:
    """The pages of all lanes are asked for together."""
    left = list(tails)
    while left:
        pages: tuple[Page, ...] = answered((yield Together(tuple(tail.next for tail in left))))
        for tail, page in zip(left, pages, strict=True):
            tail.take(page)
        left = [tail for tail in left if tail.more]
