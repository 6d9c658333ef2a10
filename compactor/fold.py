"""The program `fold`: deltas of the tail become one segment and a new checkpoint.

Rule 1: Begin, then the cutoff, then the Query, in this order: a delta that is on its way while the cutoff is fixed must
not be passed by a watermark it was not asked for.
Rule 2: The deltas themselves are not touched, because readers that hold the older checkpoint and Regions that have not
received the new one still need them.
"""

from compactor.commit import begin, commit
from compactor.report import Tally
from ledger import items, tokens
from ledger.paging import every_item
from ledger.requests import Instant, Now, Program
from ledger.values import Checkpoint, Lane

COMMITS_MAX = 1_000
"""Commits of one visit to a lane; the rest of a longer tail waits for the next."""


def fold(
    lane: Lane,
    tally: Tally,
    *,
    allowed_lateness_ms: int,
    fold_min: int,
    fold_max: int,
    commits_max: int = COMMITS_MAX,
) -> Program[Checkpoint | None]:
    """Fold the tail, `fold_max` deltas a commit, until fewer than `fold_min` are old enough.

    The checkpoint it leaves; None when nothing was ever folded. Raises GaveUp, LaneDamaged, DamagedItem, OutcomeUnknown
    and the other TableErrors; what was committed stays.
    """
    for commits in range(commits_max + 1):
        checkpoint = yield from begin(lane)
        now: Instant = yield Now()
        cutoff_ms = now.wall_ms - allowed_lateness_ms
        if checkpoint is not None:
            tally.ahead_ms = max(0, tokens.time_ms(checkpoint.watermark) - now.wall_ms)
        # A clock before 1970 or beyond what a ULID holds says nothing about lateness.
        if commits == commits_max or not 0 <= cutoff_ms <= tokens.TIME_MS_MAX:
            break
        found = yield from every_item(
            items.delta_pk(lane),
            checkpoint.watermark if checkpoint else None,
            tokens.last_of(cutoff_ms),
            most=fold_max,
            consistent=True,
        )
        if len(found) < fold_min:  # folding would cost more than it saves
            break
        deltas = [items.delta_of(lane, item) for item in found]
        highest = deltas[-1].token
        yield from commit(lane, checkpoint, deltas, hi=highest, watermark=highest, now_ms=now.wall_ms)
        tally.folded += len(deltas)
        tally.commits += 1
    return checkpoint
