"""Finds all lanes, and those that need the compactor, by a scan of the whole table's keys.

Rule 1: A lane needs the compactor when its tail may be long enough to fold; or when it was ever
folded, and holds deltas (strays, or listed ones for clean) or lacks its checkpoint (the visit
reports that).
Rule 2: A scan is eventually consistent, so the next one finds what it misses. AWS charges it for
the whole table, though it takes the keys alone. It skips items that are not ours.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ledger.core import items
from ledger.core.errors import LedgerError
from ledger.core.requests import AlreadyThere, Instant, Key, KeyPage, Now, Program, PutMany, Scan
from ledger.core.settings import Settings, plan_of
from ledger.core.values import Lane
from ledger.gate import items as gates
from ledger.lane import directory
from ledger.lane.tail import Pages


@dataclass(slots=True)
class Holding:
    """What a lane holds, by its keys.

    deltas: how many; a pack counts as a fold of them. folded: it has an item of the compactor.
    whole: it has its checkpoint. gate: it has a gate. listed: it is in the directory.
    """

    deltas: int = 0
    folded: bool = False
    whole: bool = False
    gate: bool = False
    listed: bool = False


class Lanes(NamedTuple):
    """What a scan to compact found.

    needy: lanes of the settings' Region that need the compactor. unread: lanes of any Region that
    nobody reads. listed: lanes of the settings' Region that are in the directory now, and were not.
    unlisted: those that could not be listed.
    """

    needy: list[Lane]
    unread: list[Lane]
    listed: list[Lane]
    unlisted: dict[Lane, LedgerError]


def by_lane(keys: Iterable[Key]) -> Iterable[tuple[Lane, str, Key]]:
    """Yield (lane, "delta" or "fold", key) for the keys of lanes."""
    for key in keys:
        found = items.lane_of(key.pk)
        if found is not None:
            yield found[1], found[0], key


def every_lane(
    settings: Settings, wanted: Callable[[Lane], bool], *, fold_min: int = 1
) -> Program[dict[Lane, Holding]]:
    """The wanted lanes, in order, without those of periods that are kept no longer. Raises the
    TableErrors.
    """
    now: Instant = yield Now()

    def is_wanted(lane: Lane) -> bool:
        return wanted(lane) and plan_of(settings, lane.counter).is_kept(now.wall_ms)

    found: dict[Lane, Holding] = {}
    listed: set[Lane] = set()
    pages = Pages(Scan())
    while pages.more:
        page: KeyPage = yield from pages.read()
        for lane, kind, key in by_lane(page.keys):
            if is_wanted(lane):
                holding = found.setdefault(lane, Holding())
                if kind == "delta":  # a key does not say how many a pack holds
                    holding.deltas += fold_min if items.is_pack(key.sk) else 1
                holding.folded |= kind == "fold"
                holding.whole |= key == items.checkpoint_key(lane)
        for key in page.keys:
            if (limited := gates.lane_of(key)) is not None and is_wanted(limited):
                found.setdefault(limited, Holding()).gate = True
        listed.update(known for key in page.keys if (known := directory.lane_of(key)) is not None)
    for lane in found.keys() & listed:
        found[lane].listed = True
    return dict(sorted(found.items()))


def find_lanes(settings: Settings) -> Program[Lanes]:
    """Find the lanes, in order, except those of periods that cannot be read any more; and list
    those of the settings' Region. Raises the TableErrors of the scan."""

    def wanted(lane: Lane) -> bool:
        return lane.region == settings.region or not settings.reads(lane)

    found = yield from every_lane(settings, wanted, fold_min=settings.fold_min)
    needy = [
        lane
        for lane, held in found.items()
        if lane.region == settings.region
        and (held.deltas >= settings.fold_min or (held.folded and (held.deltas or not held.whole)))
    ]
    unread = [
        lane
        for lane, held in found.items()
        if (held.deltas or held.folded) and not settings.reads(lane)
    ]
    # those of gates too, because no commit ever lists these
    missing = [
        lane for lane, held in found.items() if lane.region == settings.region and not held.listed
    ]
    answers: tuple[AlreadyThere | LedgerError | None, ...] = ()
    if missing:
        answers = yield PutMany(tuple(directory.item_of(settings.known(lane)) for lane in missing))
    outcomes = list(zip(missing, answers, strict=True))
    listed = [lane for lane, answer in outcomes if answer is None]
    failed = {lane: answer for lane, answer in outcomes if isinstance(answer, LedgerError)}
    return Lanes(needy, unread, listed, failed)
