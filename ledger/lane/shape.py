"""The table's shape: the Regions, shards and limits that all its processes share, held against a process's own.

Rule 1: It is asked for strongly, in the process's own Region, before the first program of each Ledger, Reader and
Compactor.
Rule 2: What came of it is remembered, a failure is not.
Rule 3: A table without the item and a role that may not read it go on unchecked. Shards are equal. Every Region of the
shape is in `regions`, else a reader misses its lanes and a clean does not ask it, and `region` is one of the shape's.
Every limit of the shape is in `limits`, else a process would add deltas that no gate has decided.
Rule 4: `regions` and `limits` may name more, but a limit that the shape lacks is refused at the first use of its
prefix, since nobody else is held to it. Where a table has no shape, who uses a limit first writes it, if absent.
Rule 5: the shape only ever grows, by Regions and limits. A limit is never added for some counters of another, because
their gates have decided by that, nor for counters that have changes, which no gate would know (undecided.py).
"""

import json
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from typing import Literal

from ledger import items
from ledger.conditions import Absent
from ledger.dynamo import failures
from ledger.errors import NotAllowed, SettingsMismatch, TableError, TransactionConflict, shown
from ledger.lane.directory import NAMES_MAX, counters_below
from ledger.limit import Shape
from ledger.requests import Get, Instant, Item, Program, Put, Table, run
from ledger.settings import Settings
from ledger.values import longest

TRIES_MAX = 5
SHOWN_MAX = 200
LOG = logging.getLogger("ledger")


class ShapeCheck:
    """Asks a table once whether `settings` fit its shape, and has each limit at its first use.

    writes: of a process that adds, which writes the shape where there is none. Thread-safe without a lock, so that
    nobody waits for another: threads that come at once before the first answer ask once each.
    """

    def __init__(self, settings: Settings, *, writes: bool = False) -> None:
        self._settings, self._writes = settings, writes
        self._limits = {} if settings.unshared_limits else settings.limits
        self._shared: Collection[str] | None = None
        """The prefixes whose limits need not be asked for again; None: nothing was asked."""
        self.is_known = False
        """Whether nothing is left to ask for."""

    def ask(self, table: Table, now: Callable[[], Instant], *counters: str) -> None:
        """Run `program`."""
        run(self.program(*counters), table, now)

    def program(self, *counters: str) -> Program[None]:
        """The settings fit, and the shape has the limits of these counters.

        Raises SettingsMismatch, DamagedItem and the TableErrors: nothing was written; the next call asks again.
        """
        if self.is_known:
            return
        wanted = {prefix for each in counters if (prefix := longest(self._limits, each)) is not None}
        if self._shared is not None and wanted <= {*self._shared}:
            return
        shared: Collection[str] = self._limits
        try:
            shape = yield from check(self._settings)
            if shape is None and self._writes and wanted:
                shape = yield from _first(self._settings)
            elif shape is None and self._writes:
                shared = ()
            if shape is not None:
                shared = shape.limits
        except NotAllowed as refused:
            if not failures.denied(refused.__cause__):
                return  # no valid credentials: what follows says so; with some, it is asked again
        if lacking := sorted(wanted.difference(shared)):
            raise SettingsMismatch(_lacking(lacking, self._settings))
        self._shared, self.is_known = shared, self._limits.keys() <= {*shared}


def _first(settings: Settings) -> Program[Shape | None]:
    """The shape, written if absent, by who uses a limit first; None where it cannot be, which is logged once."""
    try:
        yield from check_new_limits(settings, None, everywhere=False)
        yield Put(items.shape_item(Shape(settings.regions, settings.shards, limits=settings.limits)), Absent())
    except (TableError, SettingsMismatch) as error:
        limits = shown(dict(settings.limits), SHOWN_MAX)
        LOG.warning(
            "the table has no shape, so nobody is held to limits=%s; `ledgerctl init` writes it. %s", limits, error
        )
        return None
    return (yield from check(settings))


def _lacking(prefixes: Sequence[str], settings: Settings) -> str:
    limits = {
        prefix: {name: each for name, each in asdict(limit).items() if each is not None}
        for prefix, limit in settings.limits.items()
    }
    return (
        f"The table's shape lacks limits[{' '.join(map(repr, prefixes))}]: a process without them is not refused, and "
        f"adds past them. Run `ledgerctl init` with LEDGER_LIMITS='{json.dumps(limits)}' and else this process's "
        "settings, or deploy with them. To use them all the same: Settings(unshared_limits=True), "
        "LEDGER_UNSHARED_LIMITS=true. Nothing was written."
    )


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


def write(settings: Settings) -> Program[Literal["kept", "written", "grown"]]:
    """Write the shape of `settings` where there is none, or add its Regions and limits to the one there.

    Raises SettingsMismatch where it would change shards or a limit, lose a Region or a limit, or limit counters that
    have changes in any Region; DamagedItem and the TableErrors, also those of a Region that cannot be asked for them.
    """
    of_settings = Shape(settings.regions, settings.shards, limits=settings.limits)
    for _ in range(TRIES_MAX):
        there: Item | None = yield Get(items.SHAPE_KEY)
        shape = items.shape_of(there) if there is not None else None
        yield from check_new_limits(settings, shape)
        if there is None or shape is None:
            if (yield Put(items.shape_item(of_settings), Absent())) is None:
                return "written"
            continue
        regions = (*shape.regions, *(region for region in settings.regions if region not in shape.regions))
        grown = replace(shape, regions=regions, limits=settings.limits, version=shape.version + 1)
        if replace(grown, version=shape.version) == shape:
            return "kept"
        if (yield Put(items.shape_item(grown, there), items.version_is(shape.version))) is None:
            return "grown"
    raise TransactionConflict(f"Others kept writing the shape, {TRIES_MAX} times. Nothing was written. Call again.")


def check_new_limits(settings: Settings, shape: Shape | None, *, everywhere: bool = True) -> Program[None]:
    """Raises SettingsMismatch where the shape would not be written with these settings, and what `write` does."""
    new, regions = {*settings.limits}, settings.regions
    if shape is not None:
        new, regions = new.difference(shape.limits), shape.regions
        narrower = [  # they may have gates already, of the shorter prefix
            f"limits[{prefix!r}] would change the limit of counters that have limits[{old!r}]."
            for prefix in sorted(new)
            for old in sorted(shape.limits)
            if prefix.startswith(old)
        ]
        if wrong := [*unlike(settings, shape), *narrower]:
            raise SettingsMismatch(f"{' '.join(wrong)} The shape was left as it is.")
    if new and (names := (yield from counters_below(new, settings, regions, everywhere=everywhere))):
        raise SettingsMismatch(
            f"limits[{' '.join(map(repr, sorted(new)))}]: the counters {' '.join(names[:NAMES_MAX])} have changes that "
            "no gate decided. A counter that has changes gets no limit: choose another name or prefix, and bring a "
            "value there with one change. Nothing was written; the shape was left as it is."
        )


def mismatches(settings: Settings, shape: Shape) -> list[str]:
    """What of the settings contradicts the shape: sentences with both values and what to do."""
    wrong = unlike(settings, shape)
    if settings.region not in shape.regions:
        wrong.append(
            f"The table has regions={shape.regions!r}, this process region={settings.region!r}: nobody need read what "
            "is added there. Name a Region of the table (AWS_REGION), or add this one first (ledgerctl init, make "
            "deploy)."
        )
    return wrong


def unlike(settings: Settings, shape: Shape) -> list[str]:
    """What of the settings no process may have, nor any later shape."""
    wrong = []
    if dict(settings.shards) != dict(shape.shards):
        theirs, ours = (shown(dict(sorted(each.shards.items())), SHOWN_MAX) for each in (shape, settings))
        wrong.append(
            f"The table has shards={theirs}, this process shards={ours}: it would add where nobody reads. Start it "
            "with the table's (LEDGER_SHARDS); the number of a counter's shards never changes."
        )
    lacking = [region for region in shape.regions if region not in settings.regions]
    if lacking:
        wrong.append(
            f"The table has regions={shape.regions!r}, this process regions={settings.regions!r}: it would not see "
            f"what is added in {' '.join(lacking)}. Name every Region of the table (LEDGER_REGIONS)."
        )
    for prefix, limit in sorted(shape.limits.items()):
        if settings.limits.get(prefix) != limit:
            wrong.append(
                f"The table has limits[{prefix!r}]={limit}, this process {settings.limits.get(prefix)}: it would write "
                "what no gate decides, or decide otherwise. Start it with the table's (LEDGER_LIMITS). A prefix keeps "
                "its limit; that of a counter is changed by set_limit."
            )
    return wrong
