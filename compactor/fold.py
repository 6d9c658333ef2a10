"""The program `fold`: entries of the tail become one segment and a new checkpoint.

Rule 1: Begin, then the cutoff, then the Query, in this order: an entry that is on its way while the cutoff is fixed
must not be passed by a watermark it was not asked for.
Rule 2: Only complete entries are taken, lowest first: none at or below the new watermark is left behind, in whatever
item (ledger/lane/tail.py).
Rule 3: The tail is read once a visit, up to the first cutoff. A further commit takes on from what was read while the
watermark is the one that the commit before it left: what came since below that cutoff is a stray by rule 1. Else all
is read anew.
Rule 4: A commit comes soon after the Query that it rests on, by both clocks; else all is read anew. So a delta that has
been in the table for longer is passed by no watermark that it was above.
Rule 5: The deltas themselves are not touched, because readers that hold the older checkpoint and Regions that have not
received the new one still need them.
"""

from compactor.commit import begin, commit
from compactor.report import Tally
from ledger import tokens
from ledger.entries import TOKEN_BYTES, Entries
from ledger.lane.tail import Tail
from ledger.requests import Instant, Now, Program, in_time
from ledger.settings import Settings
from ledger.values import Checkpoint, Lane

QUERY_MS = 120_000
"""How old the Query that a commit rests on may be; named.py waits longer before it asks a second time."""

COMMITS_MAX = 1_000
"""Commits of one visit to a lane; the rest of a longer tail waits for the next."""


def fold(lane: Lane, tally: Tally, settings: Settings, *, commits_max: int = COMMITS_MAX) -> Program[Checkpoint | None]:
    """Fold the tail, `fold_max` entries a commit, until fewer than `fold_min` are old enough.

    The checkpoint it leaves; None when nothing was ever folded. Raises GaveUp, LaneDamaged, DamagedItem, OutcomeUnknown
    and the other TableErrors; what was committed stays.
    """
    tail: Tail | None = None
    asked = Instant(0, 0)  # before the tail was read
    left: str | None = None  # the watermark that the last commit left
    for commits in range(commits_max + 1):
        checkpoint = yield from begin(lane)
        watermark = checkpoint.watermark if checkpoint else None
        now: Instant = yield Now()
        cutoff_ms = now.wall_ms - settings.allowed_lateness_ms
        if checkpoint is not None:
            tally.ahead_ms = max(0, tokens.time_ms(checkpoint.watermark) - now.wall_ms)
        # A clock before 1970 or beyond what a ULID holds says nothing about lateness.
        if commits == commits_max or not 0 <= cutoff_ms <= tokens.TIME_MS_MAX:
            tally.unfolded = commits == commits_max
            break
        if tail is None or watermark != left:
            tail, asked = Tail(lane, watermark, tokens.last_of(cutoff_ms), consistent=True), now
        found = yield from tail.take(settings.fold_max)
        if len(found) < settings.fold_min:  # folding would cost more than it saves
            break
        if not in_time(asked, (yield Now()), QUERY_MS):
            tail = None
            continue
        left = tokens.from_bytes(found[-1][:TOKEN_BYTES])
        yield from commit(lane, checkpoint, Entries.of(found), hi=left, watermark=left, now_ms=now.wall_ms)
        tally.folded += len(found)
        tally.commits += 1
    return checkpoint
