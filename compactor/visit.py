"""The program `visit`: one pass of a compactor over one lane: fold, settle, clean, in this order or clean first.

Rules: the order decides nothing but when deltas are deleted (the model has every order). Right after a commit the other
Regions have not received it, and the clean waits for them; a lane that is folded at every visit needs its clean first,
when the commit of the visit before has arrived, or it is never cleaned.
"""

from __future__ import annotations

from compactor.clean import clean
from compactor.fold import fold
from compactor.report import Tally
from compactor.settle import settle
from ledger.requests import Program
from ledger.settings import Settings
from ledger.values import Lane


def visit(
    lane: Lane, tally: Tally, settings: Settings, *, commits_max: int | None = None, clean_first: bool = False
) -> Program[None]:
    """Fold, settle and clean one lane. Raises what they raise; the tally has what was done until then.

    `commits_max` bounds the commits of fold and those of settle, each on its own, so that neither starves the other.
    """
    bound = {} if commits_max is None else {"commits_max": commits_max}
    if settings.clean and clean_first:
        yield from clean(lane, tally, settings.regions, keep_ms=settings.keep_ms)
    checkpoint = yield from fold(
        lane,
        tally,
        allowed_lateness_ms=settings.allowed_lateness_ms,
        fold_min=settings.fold_min,
        fold_max=settings.fold_max,
        **bound,
    )
    if checkpoint is None:  # nothing was ever folded: no strays, nothing to clean
        return
    yield from settle(lane, tally, checkpoint.watermark, fold_max=settings.fold_max, **bound)
    if settings.clean and not clean_first:
        yield from clean(lane, tally, settings.regions, keep_ms=settings.keep_ms)
