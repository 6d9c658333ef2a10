"""The table's shape: what Regions, shards, limits and periods all its processes share, held against a process's own.

Rule 1: It is asked for strongly, in the process's own Region, before the first program of each Ledger, Reader and
Compactor.
Rule 2: What came of it is remembered, a failure is not.
Rule 3: A table without the item and a role that may not read it go on unchecked. Shards are equal. Every Region of the
shape is in `regions`, else a reader misses its lanes and a clean does not ask it, and `region` is one of the shape's.
Every limit of the shape is in `limits`, else a process would add deltas that no gate has decided; and so are its
periods, else one would add what never retires, or read what has.
Rule 4: `regions`, `limits` and `periods` may name more, but a prefix that the shape lacks is refused at the first use
of it, since nobody else is held to it. Where a table has no shape, who uses a limit first writes it, if absent.
Rule 5: the shape only ever grows, by Regions, limits and periods. A limit is never added for some counters of another,
because their gates have decided by that, nor for counters that have changes, which no gate would know; and periods only
where there is no counter yet.
Rule 6: Shards grow by those of a period that begins in more than an hour: as `at` is five minutes ahead at most, nobody
can have written there. Processes get them first and the shape last, as with limits.
Rule 7: where the shape says that the table has multi-Region strong consistency, who adds is refused each counter that
has no limit, or a period. `ledgerctl init` notes it there, because only an operator's role may describe a table.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

from ledger import items
from ledger.conditions import Absent
from ledger.dynamo import failures
from ledger.errors import NotAllowed, SettingsMismatch, TableError, TransactionConflict, shown
from ledger.lane.directory import NAMES_MAX, counters_below
from ledger.lane.fits import SHOWN_MAX, lacking, mismatches, of_periods, too_late, unfit, unlike
from ledger.limit import Shape
from ledger.requests import Get, Instant, Item, Now, Program, Put, Table, run
from ledger.settings import Settings
from ledger.values import longest

TRIES_MAX = 5
KINDS = ("limits", "periods", "shards")
Rule = tuple[str, str]
"""Of which of these kinds, and the prefix."""
LOG = logging.getLogger("ledger")


class ShapeCheck:
    """Asks a table once whether `settings` fit its shape, and has each limit at its first use.

    writes: of a process that adds, which writes the shape where there is none. Thread-safe without a lock, so that
    nobody waits for another: threads that come at once before the first answer ask once each.
    """

    def __init__(self, settings: Settings, *, writes: bool = False) -> None:
        self._settings, self._writes = settings, writes
        rules = {"limits": settings.limits, "periods": settings.periods, "shards": of_periods(settings)}
        self._rules: Mapping[str, Collection[str]] = {} if settings.unshared_limits else rules
        self._shared: Collection[Rule] | None = None
        """What need not be asked for again; None: nothing was asked."""
        self.is_known = False
        """Whether nothing is left to ask for, or to refuse."""
        self.is_strong = False
        """Whether counters without a limit are refused."""

    def ask(self, table: Table, now: Callable[[], Instant], *counters: str) -> None:
        """Run `program`."""
        run(self.program(*counters), table, now)

    def program(self, *counters: str) -> Program[None]:
        """The settings fit, and the shape has the limits and periods of these counters.

        Raises SettingsMismatch, DamagedItem and the TableErrors: nothing was written; the next call asks again.
        """
        if self.is_known:
            return
        wanted = {
            (kind, prefix)
            for kind, prefixes in self._rules.items()
            for each in counters
            if (prefix := longest(prefixes, each)) is not None
        }
        if self._shared is None or not wanted <= {*self._shared}:
            yield from self._ask(wanted)
        if self.is_strong and (why := unfit(self._settings, counters)):
            raise SettingsMismatch(why)

    def _ask(self, wanted: set[Rule]) -> Program[None]:
        every = {(kind, prefix) for kind, prefixes in self._rules.items() for prefix in prefixes}
        shared: Collection[Rule] = every
        shape: Shape | None = None
        try:
            shape = yield from check(self._settings)
            if shape is None and self._writes and wanted:
                shape = yield from _first(self._settings)
            elif shape is None and self._writes:
                shared = ()
            if shape is not None:
                shared = {(kind, prefix) for kind in KINDS for prefix in getattr(shape, kind)}
        except NotAllowed as refused:
            if not failures.denied(refused.__cause__):
                return  # no valid credentials: what follows says so; with some, it is asked again
        if rules := sorted(wanted.difference(shared)):
            raise SettingsMismatch(lacking(rules, self._settings))
        self.is_strong = self._writes and shape is not None and shape.is_strong
        self._shared, self.is_known = shared, every <= {*shared} and not self.is_strong


def _first(settings: Settings) -> Program[Shape | None]:
    """The shape, written if absent, by who uses a limit first; None where it cannot be, which is logged once."""
    try:
        yield from check_growth(settings, None, everywhere=False)
        yield Put(items.shape_item(_shape_of(settings)), Absent())
    except (TableError, SettingsMismatch) as error:
        limits, periods = (shown(dict(each), SHOWN_MAX) for each in (settings.limits, settings.periods))
        held_to = f"limits={limits} and periods={periods}"
        LOG.warning("the table has no shape, so nobody is held to %s; `ledgerctl init` writes it. %s", held_to, error)
        return None
    return (yield from check(settings))


def _shape_of(settings: Settings) -> Shape:
    periods = {prefix: replace(keep, carry=0) for prefix, keep in settings.periods.items()}
    return Shape(settings.regions, settings.shards, limits=settings.limits, periods=periods)


def stored() -> Program[Shape | None]:
    """The table's shape, or None where it has none. Raises DamagedItem and the TableErrors."""
    item: Item | None = yield Get(items.SHAPE_KEY)
    return items.shape_of(item) if item is not None else None


def check(settings: Settings) -> Program[Shape | None]:
    """The table's shape, which the settings fit. Raises SettingsMismatch, too."""
    shape = yield from stored()
    if shape is not None and (wrong := mismatches(settings, shape)):
        raise SettingsMismatch(f"{' '.join(wrong)} Nothing was written.")
    return shape


def write(settings: Settings, is_strong: bool | None = None) -> Program[Literal["kept", "written", "grown"]]:
    """Write the shape of `settings` where there is none, or add its Regions, limits, periods and shards of periods that
    are still to come to the one there. is_strong: whether the table has multi-Region strong consistency, if known.

    Raises SettingsMismatch where it would change or lose anything else, limit counters that have changes in any Region,
    or give counters periods that are there; DamagedItem and the TableErrors, also those of a Region that cannot be
    asked for them.
    """
    of_settings = replace(_shape_of(settings), is_strong=bool(is_strong))
    for _ in range(TRIES_MAX):
        there: Item | None = yield Get(items.SHAPE_KEY)
        shape = items.shape_of(there) if there is not None else None
        yield from check_growth(settings, shape)
        if there is None or shape is None:
            if (yield Put(items.shape_item(of_settings), Absent())) is None:
                return "written"
            continue
        regions = (*shape.regions, *(region for region in settings.regions if region not in shape.regions))
        strong = shape.is_strong if is_strong is None else is_strong
        grown = replace(of_settings, regions=regions, version=shape.version + 1, is_strong=strong)
        if replace(grown, version=shape.version) == shape:
            return "kept"
        if (yield Put(items.shape_item(grown, there), items.version_is(shape.version))) is None:
            return "grown"
    raise TransactionConflict(f"Others kept writing the shape, {TRIES_MAX} times. Nothing was written. Call again.")


def check_growth(settings: Settings, shape: Shape | None, *, everywhere: bool = True) -> Program[None]:
    """Raises SettingsMismatch where the shape would not be written with these settings, and what `write` does."""
    limits, periods, regions = {*settings.limits}, {*settings.periods}, settings.regions
    if shape is not None:
        limits, periods, regions = limits.difference(shape.limits), periods.difference(shape.periods), shape.regions
        narrower = [  # they may have gates already, or items that retire, by the shorter prefix
            f"{kind}[{prefix!r}] would change the {kind} of counters that have {kind}[{old!r}]."
            for kind, new, olds in (("limits", limits, shape.limits), ("periods", periods, shape.periods))
            for prefix in sorted(new)
            for old in sorted(olds)
            if prefix.startswith(old)
        ]
        now: Instant = yield Now()
        if wrong := [*unlike(settings, shape), *narrower, *too_late(settings, shape, now.wall_ms)]:
            raise SettingsMismatch(f"{' '.join(wrong)} The shape was left as it is.")
    names = (yield from counters_below(limits, settings.limits, settings, regions, everywhere)) if limits else []
    if names:
        raise SettingsMismatch(
            f"limits[{' '.join(map(repr, sorted(limits)))}]: the counters {' '.join(names[:NAMES_MAX])} have changes "
            "that no gate decided. A counter that has changes gets no limit: choose another name or prefix, and bring "
            "a value there with one change. Nothing was written; the shape was left as it is."
        )
    if periods:
        names = yield from counters_below(periods, settings.periods, settings, regions, everywhere, anything=True)
    if names:
        raise SettingsMismatch(
            f"periods[{' '.join(map(repr, sorted(periods)))}]: there are the counters {' '.join(names[:NAMES_MAX])}, "
            "whose items never retire, and which would take no changes without a period. Choose another prefix. "
            "Nothing was written; the shape was left as it is."
        )


def is_strong(table: Mapping[str, Any]) -> bool:
    """Whether a table, as DescribeTable shows it, has multi-Region strong consistency (rule 7)."""
    return table.get("MultiRegionConsistency") == "STRONG"
