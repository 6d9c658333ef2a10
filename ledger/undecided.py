"""Changes that no gate decided, of counters that have a limit or are to have one: deltas, and checkpoints of deltas.

Rule 1: A replica shows what has arrived in it. Who opens a gate looks at its own, and asks no other Region: one that
is down stops no opening. Who adds a limit asks the directory of each Region at its endpoint: one that is down stops it.
Rule 2: A lane in a directory may have a gate and nothing else, so its lane is asked for changes.
"""

from collections.abc import Collection, Iterable, Sequence

from ledger import items
from ledger.directory import listed
from ledger.errors import LedgerError, TableError, TableMissing
from ledger.lanes import longest
from ledger.requests import GetMany, Item, Page, Program, Query, Together
from ledger.settings import Settings
from ledger.through import at
from ledger.values import Lane

NAMES_MAX = 10
"""Counters that are named; there may be more."""

LANES_AT_ONCE = 50


def with_changes(lanes: Sequence[Lane], *, consistent: bool = True) -> Program[list[Lane]]:
    """Those of the lanes that hold a delta or a checkpoint, in one round trip. Raises the TableErrors."""
    tails = (Query(items.delta_pk(lane), limit=1, consistent=consistent) for lane in lanes)
    answers = yield Together((GetMany(tuple(map(items.checkpoint_key, lanes)), consistent), *tails))
    for answer in answers:
        if isinstance(answer, LedgerError):
            raise answer
    checkpoints: tuple[Item | None, ...] = answers[0]
    pages: tuple[Page, ...] = answers[1:]
    found = zip(lanes, checkpoints, pages, strict=True)
    return [lane for lane, checkpoint, page in found if checkpoint is not None or page.items]


def counters_below(
    prefixes: Collection[str], settings: Settings, regions: Iterable[str], *, everywhere: bool
) -> Program[list[str]]:
    """Counters with changes that have a limit of the settings by one of the prefixes; the first few of each Region.

    everywhere: each Region is asked at its endpoint; else what has arrived here of each. Raises the TableErrors.
    """
    names = set[str]()
    for region in regions:
        program = _in_region(prefixes, settings, region)
        try:
            names |= yield from at(region, program) if everywhere and region != settings.region else program
        except TableMissing:
            continue  # a Region whose replica is still to be made
        except TableError as error:
            raise type(error)(
                f"{region} was not asked which counters it has, and a limit is added when every Region answers: {error}"
            ) from error
    return sorted(names)


def _in_region(prefixes: Collection[str], settings: Settings, region: str) -> Program[set[str]]:
    lanes = [each for each in (yield from listed(region)) if longest(settings.limits, each.counter) in prefixes]
    names = set[str]()
    for start in range(0, len(lanes), LANES_AT_ONCE):
        names |= {lane.counter for lane in (yield from with_changes(lanes[start : start + LANES_AT_ONCE]))}
        if len(names) >= NAMES_MAX:
            break
    return names
