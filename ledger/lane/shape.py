"""The table's shape: the Regions, shards, limits and periods of all its processes, compared with a
process's own.

Rule 1: it is read strongly, in the process's own Region, before the first program of each Ledger,
Reader and Compactor. A process remembers that its settings fit; it does not remember a failure.
Rule 2: `regions`, `limits` and `periods` may name more than the shape, but the first use of a
prefix that the shape lacks is refused, because no other process is bound by it.
Rule 3: the shape only ever grows, by Regions, limits, periods, and shards of a period to come.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

from ledger.core import items
from ledger.core.conditions import Absent
from ledger.core.errors import NotAllowed, SettingsMismatch, TableError, TransactionConflict, shown
from ledger.core.limit import Shape
from ledger.core.plan import longest
from ledger.core.requests import Get, Instant, Item, Now, Program, Put, Table
from ledger.core.running import run
from ledger.core.settings import Settings
from ledger.lane.directory import NAMES_MAX, counters_below, keys_of_small_table
from ledger.lane.fits import SHOWN_MAX, lacking, mismatches, too_late, unlike, why_not_strong

TRIES_MAX = 5
KINDS = ("limits", "periods", "shards")
Rule = tuple[str, str]
"""A kind and a prefix."""
LOG = logging.getLogger("ledger")


class ShapeCheck:
    """Checks once whether `settings` fit the table's shape, and at the first use of a rule whether
    the shape has it.

    writes: whether the process adds, and so writes the shape where there is none. It is thread-safe
    without a lock, so that no thread waits for another: threads that come at once before the first
    answer read the shape once each.
    """

    def __init__(self, settings: Settings, *, writes: bool = False) -> None:
        self._settings, self._writes = settings, writes
        rules = {"limits": settings.limits, "periods": settings.periods, "shards": settings.shards}
        self._rules: Mapping[str, Collection[str]] = {} if settings.unshared_limits else rules
        self._shared: Collection[Rule] | None = None
        """The rules that need no further read; None: nothing was read."""
        self.is_known = False
        """Whether nothing is left to read, or to refuse."""
        self.is_strong = False
        """Whether it refuses each counter that has no limit, or a period: the shape says that the
        table has multi-Region strong consistency. `ledgerctl init` notes that, because only an
        operator's role may describe a table.
        """

    def ask(self, table: Table, now: Callable[[], Instant], *counters: str) -> None:
        """Run `program`."""
        run(self.program(*counters), table, now)

    def program(self, *counters: str) -> Program[None]:
        """Check that the settings fit, and that the shape has the limits, periods and shards of
        these counters.

        Raises SettingsMismatch, DamagedItem and the TableErrors: nothing was written; the next call
        reads it again.
        """
        if self.is_known:
            return
        wanted = {
            (kind, prefix)
            for kind, prefixes in self._rules.items()
            for counter in counters
            if (prefix := longest(prefixes, counter)) is not None
        }
        if self._shared is None or not wanted <= {*self._shared}:
            yield from self._ask(wanted)
        if self.is_strong and (why := why_not_strong(self._settings, counters)):
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
        except NotAllowed as refused:  # a role that may not read the shape goes on unchecked
            if not refused.is_denied:
                # no valid credentials: the next request says so; with some, the shape is read again
                return
        if rules := sorted(wanted.difference(shared)):
            raise SettingsMismatch(lacking(rules, self._settings))
        self.is_strong = self._writes and shape is not None and shape.is_strong
        self._shared, self.is_known = shared, every <= {*shared} and not self.is_strong


def _first(settings: Settings) -> Program[Shape | None]:
    """Write the shape, if absent, at the first use of a limit, a period or shards; the shape.

    Without it a retry by a process with other shards would count again. None where that fails,
    which it logs.
    """
    try:
        yield from check_growth(settings, None, everywhere=False)
        yield Put(items.shape_item(_shape_of(settings)), Absent())
    except (TableError, SettingsMismatch) as error:
        ours = ", ".join(
            f"{kind}={shown(dict(getattr(settings, kind)), SHOWN_MAX)}" for kind in KINDS
        )
        LOG.warning(
            "the table has no shape, so nothing refuses a process without %s; `ledgerctl init` "
            "writes it. This process could not write it: %s",
            ours,
            error,
        )
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
    """The table's shape. Raises SettingsMismatch where the settings do not fit it.

    Shards are equal. Every Region of the shape is in `regions`, else a reader misses its lanes and
    a clean does not ask it, and `region` is one of the shape's. Every limit of the shape is in
    `limits`, else a process would add deltas that no gate has decided; and so are its periods, else
    one would add what never retires, or read what has.
    """
    shape = yield from stored()
    if shape is not None and (wrong := mismatches(settings, shape)):
        raise SettingsMismatch(f"{' '.join(wrong)} Nothing was written.")
    return shape


def write(
    settings: Settings, is_strong: bool | None = None
) -> Program[Literal["kept", "written", "grown"]]:
    """Write the shape of `settings` where there is none, or add its Regions, limits, periods and
    shards of periods that are still to come to the one there. is_strong: whether the table has
    multi-Region strong consistency, if known.

    Raises SettingsMismatch where it would change or lose anything else, limit counters that have
    changes in any Region, or give periods to counters that are there; DamagedItem and the
    TableErrors, also of a Region that does not answer.
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
        regions = (
            *shape.regions,
            *(region for region in settings.regions if region not in shape.regions),
        )
        strong = shape.is_strong if is_strong is None else is_strong
        grown = replace(of_settings, regions=regions, version=shape.version + 1, is_strong=strong)
        if replace(grown, version=shape.version) == shape:
            return "kept"
        if (yield Put(items.shape_item(grown, there), items.version_is(shape.version))) is None:
            return "grown"
    raise TransactionConflict(
        f"Others kept writing the shape, {TRIES_MAX} times. Nothing was written. Call again."
    )


def check_growth(
    settings: Settings, shape: Shape | None, *, everywhere: bool = True
) -> Program[None]:
    """Raises SettingsMismatch where a shape with these settings may not be written (Rule 3), and
    what `write` raises.
    """
    limits, periods, regions = {*settings.limits}, {*settings.periods}, settings.regions
    if shape is not None:
        limits, periods, regions = (
            limits.difference(shape.limits),
            periods.difference(shape.periods),
            shape.regions,
        )
        narrower = _narrower(shape, limits, periods)
        now: Instant = yield Now()
        if wrong := [*unlike(settings, shape), *narrower, *too_late(settings, shape, now.wall_ms)]:
            raise SettingsMismatch(f"{' '.join(wrong)} The shape was left as it is.")
    names: list[str] = []
    # Most tables without a shape are small: one page of a Scan shows all that 256 Queries would.
    looks_here = not everywhere and bool(limits or periods)
    keys = (yield from keys_of_small_table()) if looks_here else None
    if limits:  # no gate would know the changes of a counter that has some
        names = yield from counters_below(
            limits, settings.limits, settings, regions, everywhere, keys=keys
        )
    if names:
        raise SettingsMismatch(
            f"limits[{' '.join(map(repr, sorted(limits)))}]: the counters "
            f"{' '.join(names[:NAMES_MAX])} have changes that no gate decided, and a counter that "
            "has changes gets no limit. Nothing was written; the shape was left as it is. Choose "
            "another name or prefix, and add each value there as one change."
        )
    if periods:
        names = yield from counters_below(
            periods, settings.periods, settings, regions, everywhere, keys=keys, anything=True
        )
    if names:
        raise SettingsMismatch(
            f"periods[{' '.join(map(repr, sorted(periods)))}]: there are the counters "
            f"{' '.join(names[:NAMES_MAX])} without a period: they would take no more changes, and "
            "the table would never delete their items. Nothing was written; the shape was left as "
            "it is. Choose another prefix."
        )


def _narrower(shape: Shape, limits: set[str], periods: set[str]) -> list[str]:
    """Why new prefixes may not come below those of a shape: counters there may have gates already,
    or items that retire, by the shorter prefix.
    """
    return [
        f"{kind}[{prefix!r}] would change the {kind} of counters that have {kind}[{old!r}]."
        for kind, new, olds in (
            ("limits", limits, shape.limits),
            ("periods", periods, shape.periods),
        )
        for prefix in sorted(new)
        for old in sorted(olds)
        if prefix.startswith(old)
    ]


def is_strong(table: Mapping[str, Any]) -> bool:
    """Whether a table, as DescribeTable shows it, has multi-Region strong consistency."""
    return table.get("MultiRegionConsistency") == "STRONG"
