"""The program `visit`: one pass of a compactor over one lane: clean, fold, settle.

Rule 1: The clean comes first, when the commit of the visit before has reached the other Regions: right after a commit
it would wait for them, at every visit of a lane that is busy. What fails in it postpones it and nothing else, because
it only saves storage.
Rule 2: Damage is raised all the same, after the lane was folded and settled.
Rule 3: A whole visit looks for strays among all that is at or below the watermark. Any other settles those that the
clean met: it is for who is told of strays by name.
Rule 4: A period whose items may have retired is passed by: the table deletes them in any order, which is no damage.
"""

from compactor.clean import clean
from compactor.fold import fold
from compactor.report import Tally
from compactor.settle import settle, settle_these
from ledger.errors import DamagedItem, LedgerError
from ledger.requests import Now, Program
from ledger.settings import Settings
from ledger.values import Lane


def visit(
    lane: Lane,
    tally: Tally,
    settings: Settings,
    *,
    commits_max: int | None = None,
    whole: bool = True,
    since: str | None = None,
) -> Program[None]:
    """Clean, fold and settle one lane. Raises what fold and settle raise, and DamagedItem; the tally has what was done.

    since: a token; a whole visit seeks no strays in items below it.
    `commits_max` bounds the commits of fold and those of settle, each on its own, so that neither starves the other.
    """
    lane = settings.known(lane)
    if settings.periods and not settings.is_kept(lane.counter, (yield Now()).wall_ms):
        return
    bound = {} if commits_max is None else {"commits_max": commits_max}
    met: list[bytes] = []  # what the clean met that is listed nowhere
    damage: DamagedItem | None = None
    if settings.clean:
        try:
            met = yield from clean(lane, tally, settings)
        except LedgerError as failure:
            tally.postponed_by.append(str(failure))
            damage = failure if isinstance(failure, DamagedItem) else None
    checkpoint = yield from fold(lane, tally, settings, **bound)
    if checkpoint is not None and whole:  # without a checkpoint nothing was ever folded, and there are no strays
        yield from settle(lane, tally, checkpoint.watermark, fold_max=settings.fold_max, since=since, **bound)
    else:
        yield from settle_these(lane, tally, met, fold_max=settings.fold_max, **bound)
    if damage is not None:
        raise damage
