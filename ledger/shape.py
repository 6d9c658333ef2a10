"""The table's shape: the Regions, shards and limits that all its processes share, held against a process's own.

Rule 1: It is asked for strongly, in the process's own Region, before the first program of each Ledger, Reader and
Compactor.
Rule 2: What came of it is remembered, a failure is not.
Rule 3: A table without the item and a role that may not read it go on unchecked. Shards are equal. Every Region of the
shape is in `regions`, else a reader misses its lanes and a clean does not ask it, and `region` is one of the shape's.
Every limit of the shape is in `limits`, else a process would add deltas that no gate has decided.
Rule 4: `regions` and `limits` may name more: what is being added is in every process's settings first and in the shape
last. So the shape only ever grows, by Regions and limits; a limit never by one for some counters of another, because
their gates have decided by that, nor by one for counters that have changes, which no gate would know (undecided.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from ledger import failures, items
from ledger.conditions import Absent
from ledger.errors import NotAllowed, SettingsMismatch, TransactionConflict, shown
from ledger.requests import Get, Instant, Item, Program, Put, Table, run
from ledger.settings import Settings
from ledger.undecided import NAMES_MAX, counters_below
from ledger.values import Shape

TRIES_MAX = 5
SHOWN_MAX = 200


class ShapeCheck:
    """Asks a table once whether `settings` fit its shape.

    Thread-safe without a lock, so that nobody waits for another, also not in a child after a fork: threads that come at
    once before the first answer ask once each.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.is_known = False

    def ask(self, table: Table, now: Callable[[], Instant]) -> None:
        """Raises SettingsMismatch, DamagedItem and the TableErrors: nothing was written; the next call asks again."""
        run(self.program(), table, now)

    def program(self) -> Program[None]:
        """As `ask`."""
        if self.is_known:
            return
        try:
            yield from check(self._settings)
        except NotAllowed as refused:
            if not failures.denied(refused.__cause__):
                return  # no valid credentials: what follows says so; with some, it is asked again
        self.is_known = True


def check(settings: Settings) -> Program[Shape | None]:
    """The table's shape, or None where it has none. Raises SettingsMismatch, DamagedItem and the TableErrors."""
    item: Item | None = yield Get(items.SHAPE_KEY)
    if item is None:
        return None
    shape = items.shape_of(item)
    if wrong := mismatches(settings, shape):
        raise SettingsMismatch(f"{' '.join(wrong)} Nothing was written.")
    return shape


def write(settings: Settings) -> Program[Literal["kept", "written", "grown"]]:
    """Write the shape of `settings` where there is none, or add its Regions and limits to the one there.

    Raises SettingsMismatch where it would change shards or a limit, lose a Region or a limit, or limit counters that
    have changes in any Region; DamagedItem and the TableErrors, also those of a Region that cannot be asked for them.
    """
    for _ in range(TRIES_MAX):
        there: Item | None = yield Get(items.SHAPE_KEY)
        shape = items.shape_of(there) if there is not None else None
        yield from check_new_limits(settings, shape)
        if there is None or shape is None:
            first = Shape(settings.regions, settings.shards, limits=settings.limits)
            if (yield Put(items.shape_item(first), Absent())) is None:
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
    if shape is not None and (wrong := refusals(settings, shape)):
        raise SettingsMismatch(f"{' '.join(wrong)} The shape was left as it is.")
    new = settings.limits.keys() - (shape.limits.keys() if shape is not None else ())
    regions = shape.regions if shape is not None else settings.regions
    if new and (names := (yield from counters_below(new, settings, regions, everywhere=everywhere))):
        raise SettingsMismatch(
            f"limits[{' '.join(map(repr, sorted(new)))}]: the counters {' '.join(names[:NAMES_MAX])} have changes that "
            "no gate decided. A counter that has changes gets no limit: choose another name or prefix, and bring a "
            "value there with one change. The shape was left as it is."
        )


def mismatches(settings: Settings, shape: Shape) -> list[str]:
    """What of the settings contradicts the shape: sentences with both values and what to do."""
    return [*unlike(settings, shape), *_not_there(settings, shape)]


def refusals(settings: Settings, shape: Shape) -> list[str]:
    """Why the shape would not be written with these settings."""
    return [*unlike(settings, shape), *_narrower(settings, shape)]


def unlike(settings: Settings, shape: Shape) -> list[str]:
    """What of the settings no process may have, nor any later shape."""
    wrong = []
    if dict(settings.shards) != dict(shape.shards):
        wrong.append(
            f"The table has shards={_of(shape.shards)}, this process shards={_of(settings.shards)}: it would add where "
            "nobody reads. Start it with the table's (LEDGER_SHARDS); the number of a counter's shards never changes."
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


def _narrower(settings: Settings, shape: Shape) -> list[str]:
    """New limits for counters that may have gates, of a shorter prefix."""
    return [
        f"limits[{prefix!r}] would change the limit of counters that have limits[{old!r}]."
        for prefix in sorted(settings.limits.keys() - shape.limits.keys())
        for old in sorted(shape.limits)
        if prefix.startswith(old)
    ]


def _not_there(settings: Settings, shape: Shape) -> list[str]:
    if settings.region in shape.regions:
        return []
    return [
        f"The table has regions={shape.regions!r}, this process region={settings.region!r}: nobody need read what is "
        "added there. Name a Region of the table (AWS_REGION), or add this one first (ledgerctl init, make deploy)."
    ]


def _of(shards: Mapping[str, int]) -> str:
    return shown(dict(sorted(shards.items())), SHOWN_MAX)
