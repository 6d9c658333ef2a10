"""The program `visit` is one pass of a compactor over one lane: clean, fold, settle.

Rule 1: The clean comes first. By now the last visit's commit has reached the other Regions; right
after a commit of its own it would wait for them, at every visit of a busy lane.
Rule 2: A clean only saves storage, so its failure postpones nothing else. Damage that it found is
raised when the lane is folded and settled.
Rule 3: A whole visit looks for strays among all entries at or below the watermark. Any other
settles those that the clean found: it is for a service whose messages name strays.
"""

from typing import Any

from compactor.clean import clean
from compactor.fold import fold
from compactor.report import Tally
from compactor.settle import settle, settle_these
from ledger.core.errors import DamagedItem, LedgerError
from ledger.core.requests import Now, Program
from ledger.core.settings import Settings, plan_of
from ledger.core.values import Lane


def visit(
    lane: Lane,
    tally: Tally,
    settings: Settings,
    *,
    commits_max: int | None = None,
    whole: bool = True,
    since: str | None = None,
) -> Program[None]:
    """Clean, fold and settle one lane. Raises what fold and settle raise, and DamagedItem; the
    tally has what it did.

    since: a token; a whole visit looks for no strays in items below it. commits_max: bounds the
    commits of fold and those of settle, each on its own, so that neither starves the other.
    """
    lane = settings.known(lane)
    # the table deletes the items of a period that is over in any order, which is no damage
    if settings.periods and not plan_of(settings, lane.counter).is_kept((yield Now()).wall_ms):
        return
    bound: dict[str, Any] = {} if commits_max is None else {"commits_max": commits_max}
    met: list[bytes] = []  # entries that the clean met, and no segment lists
    damage: DamagedItem | None = None
    if settings.clean:
        try:
            met = yield from clean(lane, tally, settings)
        except LedgerError as failure:
            tally.postponed_by.append(str(failure))
            damage = failure if isinstance(failure, DamagedItem) else None
    checkpoint = yield from fold(lane, tally, settings, **bound)
    # without a checkpoint nothing was ever folded, so there are no strays
    if checkpoint is not None and whole:
        yield from settle(
            lane, tally, checkpoint.watermark, fold_max=settings.fold_max, since=since, **bound
        )
    else:
        yield from settle_these(lane, tally, met, fold_max=settings.fold_max, **bound)
    if damage is not None:
        raise damage
