"""For every command that takes many counters: which lanes there are, by the directory or by a scan;
and one call for each of them, some at a time.

Rule 1: A command reads the directory of every Region of the settings, from this Region's replica,
and says the cost.
Rule 2: `--scan` reads the whole table, so it sees lanes that no directory has, and names them.
Rule 3: A directory is not the table: every answer from it says what it may lack. Where none names a
lane, because no compactor ran yet, a command scans a small table by itself; of a larger one the
error begins with what to do.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from compactor.inspection import unread_beyond
from compactor.lanes import Holding, every_lane
from ledger.core.checks import check_counter
from ledger.core.cost import carried
from ledger.core.errors import GaveUp, LedgerError, TableError
from ledger.core.requests import Key, Program, Request, Scan
from ledger.core.running import through
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.lane import directory
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.failures import DATA, NO_ANSWER, Wrong
from reader.rules import Rules
from reader.top import BATCH

LISTS = "`ledgerctl compact` without names, in each Region, lists them."
NOT_LISTED = "; --scan also finds those that no directory lists yet"
NAMED_MAX, WORKERS = 5, 8
SCANNED_MAX = 4
"""Pages of a Scan, of a megabyte each, that a command reads by itself."""

Name = TypeVar("Name")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Found:
    """lanes: in order.

    holdings: what each lane holds, if a scan found them; None: the directory named them.
    """

    lanes: list[Lane]
    holdings: dict[Lane, Holding] | None = None

    @property
    def counters(self) -> list[str]:
        return sorted({lane.counter for lane in self.lanes})

    @property
    def limits(self) -> str:
        return NOT_LISTED if self.holdings is None else ""

    def unread(self, settings: Settings) -> list[Lane]:
        """Lanes that hold something, and that no reader of these settings reads. The directory does
        not say whether the lane of a limited counter holds deltas, which nobody reads, so only a
        scan finds these."""
        if self.holdings is None:
            held = [lane for lane in self.lanes if settings.limit_of(lane.counter) is None]
        else:
            held = [
                lane for lane, holding in self.holdings.items() if holding.deltas or holding.folded
            ]
        return [lane for lane in held if not settings.reads(lane)]


def found(call: Call, prefix: str = "", *, scan: bool = False, at_home: bool = False) -> Found:
    """The lanes of the counters that begin with `prefix`. at_home: read each Region's directory
    there, with what is not replicated yet, and scan nothing. Raises Wrong where no directory names
    a lane and no scan finds one, and the TableErrors."""
    if not scan:
        return _listed(call, prefix, at_home=at_home)
    holdings = call.run(every_lane(call.settings, lambda lane: lane.counter.startswith(prefix)))
    call.note(f"scanned the table for names: {show.cost(call.meter.take())}")
    if unlisted := [lane for lane, held in holdings.items() if not held.listed]:
        call.note(f"lanes that no directory has: {few_of(unlisted)}. {LISTS}", "yellow")
    return Found(list(holdings), holdings)


def chosen(
    call: Call, counters: Iterable[str] | None, prefix: str, *, scan: bool
) -> tuple[list[str], Found]:
    """The counters that were typed, each once; else all that are `found`. Raises Wrong for one that
    has no changes, not even in lanes that nobody reads. The command itself reports what cannot be
    read."""
    if not counters:
        every = found(call, prefix, scan=scan)
        return every.counters, every
    names = list(dict.fromkeys(counters))
    for name in _without_changes(call, names):
        with suppress(LedgerError):
            if any(
                call.run(unread_beyond(name, region, call.settings), region)
                for region in call.settings.regions
            ):
                continue
            remedy = (
                f"`ledgerctl list` names the counters there are. --prefix {name} takes all whose "
                f"names begin with {name}."
            )
            raise Wrong("NoSuchCounter", f"Nobody has added to {name!r}.", remedy)
    return names, Found([], {})


def _without_changes(call: Call, names: Sequence[str]) -> list[str]:
    """Those that can be read, and have no changes, by a read of a hundred together. Where one
    cannot be read, which ends that, each of the hundred is read alone."""
    rules = Rules(call.settings, 0, consistent=True, clock=call.surroundings.clock)

    def without(some: Sequence[str]) -> list[str]:
        found = call.on_table(rules.balances([*map(check_counter, some)]))
        return [name for name in some if not found[name].count]

    empty: list[str] = []
    for start in range(0, len(names), BATCH):
        some = names[start : start + BATCH]
        try:
            empty += without(some)
        except LedgerError:
            for name in some:
                with suppress(LedgerError):
                    empty += without([name])
    return empty


def few_of(lanes: Iterable[object]) -> str:
    """The first of them, and how many more there are."""
    every = [str(lane) for lane in lanes]
    return ", ".join(every[:NAMED_MAX]) + (
        f" and {len(every) - NAMED_MAX:,} more" if len(every) > NAMED_MAX else ""
    )


class _TooLarge(Exception):
    pass


def _scan_of_young(call: Call, prefix: str, no_lane: str) -> Found:
    """What a scan finds where no directory names a lane. no_lane: says that. Raises Wrong for a
    table that is larger than a few pages, and for one without lanes."""
    pages = 0

    def step(request: Request) -> Program[Any]:
        nonlocal pages
        pages += isinstance(request, Scan)
        if pages > SCANNED_MAX:
            raise _TooLarge
        return (yield request)

    try:
        holdings = call.run(through(every_lane(call.settings, lambda _: True), step))
    except _TooLarge:
        do = (
            "Add --scan, which reads the whole table; or first run `ledgerctl compact` without "
            "names in each Region."
        )
        raise Wrong(
            "EmptyDirectory", f"{do} {no_lane} no compactor has listed one yet.", code=DATA
        ) from None
    if not holdings:
        why = f"{no_lane} nobody has added yet."
        raise Wrong("EmptyDirectory", why, "`ledgerctl add` makes the first counter.", DATA)
    scanned = f"so this scanned the table. {LISTS} {show.cost(call.meter.take())}"
    call.note(f"{no_lane} no compactor has listed one yet; {scanned}", "yellow")
    holdings = {lane: held for lane, held in holdings.items() if lane.counter.startswith(prefix)}
    return Found(list(holdings), holdings)


def _listed(call: Call, prefix: str, *, at_home: bool) -> Found:
    # Rule 4: a command skips an item that names no lane, and names it. It skips periods that
    # nobody looks at any more.
    lanes: list[Lane] = []
    damaged: list[Key] = []
    empty: list[str] = []
    for region in call.settings.regions:
        listing = call.run(directory.listing(region, call.settings), region if at_home else None)
        lanes += listing.lanes
        damaged += listing.damaged
        empty += [] if listing.lanes or listing.retired else [region]
    no_lane = f"The directory of {' '.join(empty)} names no lane:"
    names_none = len(empty) == len(call.settings.regions)
    if names_none and not at_home and not damaged:
        return _scan_of_young(call, prefix, no_lane)
    call.note(
        f"read the directory of {' '.join(call.settings.regions)}: {show.cost(call.meter.take())}"
    )
    if damaged:
        keys = few_of(f"pk={key.pk!r} sk={key.sk!r}" for key in damaged)
        call.note(f"skipped items of the directory that name no lane: {keys}", "red")
    no_lane += " nobody has added yet, or no compactor has listed one."
    if names_none:
        raise Wrong(
            "EmptyDirectory", no_lane, f"--scan reads the whole table instead. {LISTS}", DATA
        )
    if empty:
        call.note(no_lane, "yellow")
    return Found(sorted(lane for lane in lanes if lane.counter.startswith(prefix)))


def each(call: Call, what: str, names: Sequence[Name], work: Callable[[Name], Done]) -> list[Done]:
    """The outcomes in order, some at a time; the first alone, because it reads the table's shape,
    once for all.

    what: the word for the names in the bar."""
    with call.progress(what, len(names)) as more, ThreadPoolExecutor(WORKERS) as workers:

        def counted(name: Name) -> Done:
            done = work(name)
            more()
            return done

        return [*map(counted, names[:1]), *workers.map(carried(counted), names[1:])]


def each_of(
    call: Call, what: str, names: Sequence[Name], work: Callable[[Name], Done]
) -> list[tuple[Name, Done | LedgerError]]:
    """The outcome or the error of each counter or lane, in order, some at a time.

    Raises the error if all fail.
    """

    def one(name: Name) -> tuple[Name, Done | LedgerError]:
        try:
            return name, work(name)
        except LedgerError as error:
            return name, error

    outcomes = each(call, what, names, one)
    errors = [outcome for _, outcome in outcomes if isinstance(outcome, LedgerError)]
    if errors and len(errors) == len(names):
        raise errors[0]
    return outcomes


def exit_code_of(failed: Sequence[LedgerError]) -> int:
    """3 where another try may help every one of them, else 1."""
    return (
        NO_ANSWER
        if failed and all(isinstance(error, TableError | GaveUp) for error in failed)
        else DATA
    )
