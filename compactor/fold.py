"""The program `fold` turns entries of the tail into a segment and a new checkpoint.

Rule 1: Begin, then the cutoff, then the Query, in this order: else a watermark could pass an entry
that came between them.
Rule 2: It takes only complete entries (ledger/lane/tail.py), lowest first: none at or below the new
watermark is left.
Rule 3: It leaves the deltas alone, because readers that hold the older checkpoint and Regions that
have not received the new one still need them.
"""

from compactor.commit import begin, commit
from compactor.report import Tally
from ledger.core import tokens
from ledger.core.entries import TOKEN_BYTES, Entries
from ledger.core.requests import Instant, Now, Program, in_time
from ledger.core.settings import Settings
from ledger.core.values import Checkpoint, Lane
from ledger.lane.tail import Tail

QUERY_MS = 120_000
"""How old the Query that a commit rests on may be; settle_named.py waits longer before it names
items a second time.
"""

COMMITS_MAX = 1_000
"""Commits of one visit to a lane; the rest of a longer tail waits for the next."""


def fold(
    lane: Lane, tally: Tally, settings: Settings, *, commits_max: int = COMMITS_MAX
) -> Program[Checkpoint | None]:
    """Fold the tail, `fold_max` entries a commit, until fewer than `fold_min` are old enough.

    It returns the checkpoint that it leaves; None when nothing was ever folded. Raises GaveUp,
    LaneDamaged, DamagedItem, OutcomeUnknown and the other TableErrors; earlier commits stay.
    """
    tail: Tail | None = None
    queried = Instant(0, 0)  # before the tail was read
    left: str | None = None  # the watermark that the last commit left
    for commits in range(commits_max + 1):
        checkpoint = yield from begin(lane)
        watermark = checkpoint.watermark if checkpoint else None
        now: Instant = yield Now()
        cutoff_ms = now.wall_ms - settings.allowed_lateness_ms
        if checkpoint is not None:
            tally.ahead_ms = max(0, tokens.time_ms(checkpoint.watermark) - now.wall_ms)
        # a clock before 1970 or beyond what a ULID holds says nothing about lateness
        if commits == commits_max or not 0 <= cutoff_ms <= tokens.TIME_MS_MAX:
            tally.unfolded = commits == commits_max
            break
        # Rule 4: a visit reads the tail once, up to its first cutoff, and goes on with these
        # entries while the watermark is the one that it left itself. By rule 1 an entry that came
        # since below that cutoff is a stray.
        if tail is None or watermark != left:
            tail, queried = Tail(lane, watermark, tokens.last_of(cutoff_ms), consistent=True), now
        found = yield from tail.take(settings.fold_max)
        if len(found) < settings.fold_min:  # folding would cost more than it saves
            break
        # Rule 5: by both clocks a commit comes soon after its Query, so no watermark passes a delta
        # above it that has been in the table for longer
        if not in_time(queried, (yield Now()), QUERY_MS):
            tail = None
            continue
        left = tokens.from_bytes(found[-1][:TOKEN_BYTES])
        yield from commit(
            lane, checkpoint, Entries.of(found), hi=left, watermark=left, now_ms=now.wall_ms
        )
        tally.folded += len(found)
        tally.commits += 1
    return checkpoint
