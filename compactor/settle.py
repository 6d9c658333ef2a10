"""The program `settle` puts strays into the sum.

Rule 1: A stray is an entry at or below the watermark that no segment lists, also in a pack that
reaches above it.
Rule 2: It finds candidates cheaply, with eventually consistent reads, and confirms them
expensively: begin, then the covering segments strongly, in this order.
Rule 3: A commit files the strays of one range under its own hi and leaves the watermark where it
is.
"""

from collections.abc import Sequence

from compactor.commit import begin, commit
from compactor.known import KnownCovers
from compactor.listing import Below, cover
from compactor.report import Tally
from ledger.core import tokens
from ledger.core.entries import TOKEN_BYTES, Entries
from ledger.core.errors import GaveUp, LaneDamaged
from ledger.core.requests import Instant, Now, Program
from ledger.core.values import Checkpoint, Lane

COMMITS_MAX = 1_000_000
"""The bound of a loop that would otherwise have none: every range with strays takes a commit of
its own.
"""


def settle(
    lane: Lane,
    tally: Tally,
    watermark: str,
    *,
    fold_max: int,
    commits_max: int = COMMITS_MAX,
    since: str | None = None,
) -> Program[None]:
    """Settle every stray at or below `watermark`. `tally.unsettled` says whether `commits_max`
    stopped it.

    since: a sort key; it skips items at or below that, and notes in `tally.since` how far it came.
    Raises GaveUp, LaneDamaged, DamagedItem, OutcomeUnknown and the other TableErrors; earlier
    commits stay.
    """
    last = tally.commits + commits_max
    below = Below(lane, watermark, consistent=False, since=since)
    while below.more:
        strays = (yield from below.read()).unlisted
        yield from settle_these(
            lane, tally, strays, fold_max=fold_max, commits_max=last - tally.commits
        )
        if tally.unsettled:
            break
        tally.since = below.upto or tally.since


def settle_these(
    lane: Lane,
    tally: Tally,
    candidates: Sequence[bytes],
    *,
    fold_max: int,
    commits_max: int = COMMITS_MAX,
    begun: Checkpoint | None = None,
    known: KnownCovers | None = None,
) -> Program[None]:
    """Settle the candidates, entries at or below the watermark, that are strays. Of a token that
    comes twice it settles the first.

    begun: the answer of `begin`, if that came before all that the candidates rest on. known: the
    covers that this process remembers. Raises what `settle` raises.
    """
    last = tally.commits + commits_max
    first = {entry[:TOKEN_BYTES]: entry for entry in reversed(candidates)}
    candidates = [first[token] for token in sorted(first)]
    while candidates:
        if tally.commits >= last:
            tally.unsettled = True
            return
        candidates = yield from _settle_range(lane, tally, candidates, fold_max, begun, known)
        begun = None  # the first commit ends what it began


def _settle_range(
    lane: Lane,
    tally: Tally,
    candidates: Sequence[bytes],
    fold_max: int,
    begun: Checkpoint | None,
    known: KnownCovers | None,
) -> Program[list[bytes]]:
    """Confirm the candidates under the first one's cover and commit at most `fold_max` of them;
    return those left.
    """
    checkpoint = begun or (yield from begin(lane))
    if checkpoint is None:
        raise GaveUp(
            f"{lane}: the checkpoint is gone. Nothing was written. Find out what removed it, then "
            "rebuild the lane."
        )
    now: Instant = yield Now()
    if known is None:
        found = yield from cover(lane, candidates, consistent=True)
    else:
        found = yield from known.cover(lane, candidates, checkpoint.version, now)
    if found.hi is None:
        token = tokens.from_bytes(candidates[0][:TOKEN_BYTES])
        raise LaneDamaged(
            f"{lane}: the delta {token} is below the watermark, but no segment covers it. "
            "Nothing was written. Look at the lane, then rebuild it."
        )
    strays = found.unlisted
    if strays:
        taken = Entries.of(strays[:fold_max])
        yield from commit(
            lane, checkpoint, taken, hi=found.hi, watermark=checkpoint.watermark, now_ms=now.wall_ms
        )
        tally.settled += len(taken)
        tally.commits += 1
    return [*strays[fold_max:], *candidates[len(found.entries) :]]
