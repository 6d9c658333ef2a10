"""The programs of a reader's calls: `Reader` runs them, `AsyncReader` awaits them.

Rule 1: each checks what the caller passes before anything is sent, then reads the table's shape.
Rule 2: none reads a period whose items may have retired: nobody knows which of them are missing.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter

from ledger.core import clocks, tokens
from ledger.core.checks import check_counter, check_flag, check_time, plain_text, to_datetime
from ledger.core.errors import InvalidInput, shown
from ledger.core.period import Period, zone_of
from ledger.core.requests import Instant, Now, Program
from ledger.core.settings import Settings, check_settings
from ledger.core.values import Lane
from ledger.gate.gates import Gates
from ledger.gate.hold import Hold
from ledger.lane.shape import ShapeCheck
from reader.balance import (
    Balance,
    Change,
    CountersPage,
    Entry,
    HistoryPage,
    Place,
    Position,
    entries_of,
)
from reader.bounded import bounded
from reader.checks import above as above_of
from reader.checks import bound_ms, check_count, check_page, past_ms, prefix_of, seconds
from reader.counters_page import Wanted, counters_page
from reader.crossed import Crossed, crossed
from reader.decided import decided, decided_page
from reader.history import changes, history, page
from reader.periods import PeriodBalance, periods
from reader.read import balances
from reader.series import Series, bars, series
from reader.standing import Standing, open_holds, read_standings
from reader.steps import STEPS_MAX, borders, check_every
from reader.top import BEHIND_S, BY, Best, Row, Top, top

OF_SERIES = (
    "Ask for a shorter time, or for days, weeks or months of UTC, which a checkpoint "
    "has, or without a bound."
)
OF_LIMITED = "Of a counter with a limit it reads all that was ever decided, so ask without a bound."
OF_HISTORY = "Ask for fewer entries, for a shorter time, or without a bound."
AFTER_ALL = b"\xff" * 17  # follows the bytes of every token


class Calls:
    """Arguments as for Reader. units: how many read units a series, a value at an instant, a page
    of a history or of names may take, set by `bound`; None: as many as it needs."""

    def __init__(
        self, settings: Settings, ttl: float, consistent: bool, clock: clocks.Clock
    ) -> None:
        self.settings = check_settings(settings)
        self.ttl = seconds("ttl", ttl)
        self._consistent = check_flag("consistent", consistent)
        self.clock = clocks.checked(clock)
        self.now = clocks.instants(self.clock)
        self._shape = ShapeCheck(settings)
        self.units: int | None = None

    # -- balances
    # ----------------------------------------------------------------------------------------------

    def checked(self, counter: str, max_age: float, behind: float) -> tuple[str, float, int]:
        """The checked arguments: the counter, how many seconds a cached balance may be old, how
        many ms behind.
        """
        counter = check_counter(counter)
        behind_ms = int(seconds("behind", behind) * 1_000)
        return counter, 0 if behind_ms else min(seconds("max_age", max_age), self.ttl), behind_ms

    def names(self, counters: Iterable[str]) -> list[str]:
        """Each name once."""
        given: object = counters
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InvalidInput(
                f"values takes several names, such as a list of them, not {shown(given)}."
            )
        return list(dict.fromkeys(check_counter(counter) for counter in counters))

    def balances(self, counters: Sequence[str], behind_ms: int = 0) -> Program[dict[str, Balance]]:
        if self.settings.periods:
            self._check_kept(counters)
        yield from self._shape.program(*counters)
        return (
            yield from balances(
                counters, self.settings, consistent=self._consistent, behind_ms=behind_ms
            )
        )

    # -- histories
    # ----------------------------------------------------------------------------------------------

    def history(
        self, counter: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> Program[Iterator[Entry]]:
        counter = check_counter(counter)
        since_ms, until_ms = bound_ms("since", since), bound_ms("until", until)
        lanes, limit_ms = self.settings.lanes_of(counter), self.settings.read_time_max_ms
        yield from self._first(counter)
        found: list[Iterable[Change]] = []
        for lane in lanes:
            if self.settings.limit_of(counter) is not None:
                found.append((yield from decided(lane, consistent=self._consistent)))
            else:
                whole = yield from history(
                    lane, consistent=self._consistent, read_time_max_ms=limit_ms
                )
                found.append(changes(lane, *whole))
        every = heapq.merge(*found, key=itemgetter(0)) if len(found) > 1 else found[0]
        if (since_ms, until_ms) != (None, None):
            first = tokens.first_of(since_ms or 0)
            end = AFTER_ALL if until_ms is None else tokens.first_of(until_ms)
            every = (change for change in every if first <= change[0] < end)
        return entries_of(every)

    def history_page(
        self,
        counter: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        after: Position | None = None,
        limit: int = 100,
    ) -> Program[HistoryPage]:
        counter = check_counter(counter)
        check_page(limit, after, Position)
        since_ms, until_ms = bound_ms("since", since), bound_ms("until", until)
        lanes = self.settings.lanes_of(counter)
        if until_ms is not None and until_ms <= 0:
            return HistoryPage((), None)
        upto = None if until_ms is None else tokens.last_of(until_ms - 1)
        yield from self._first(counter)
        found = yield from bounded(
            self._entries(lanes, since_ms, after, upto, limit + 1), self.units, OF_HISTORY
        )
        found.sort(key=lambda entry: (entry.token, entry.region))
        last = found[limit - 1] if len(found) > limit else None
        return HistoryPage(
            tuple(found[:limit]), None if last is None else Position(last.token, last.region)
        )

    def _entries(
        self,
        lanes: Sequence[Lane],
        since_ms: int | None,
        after: Position | None,
        upto: str | None,
        most: int,
    ) -> Program[list[Entry]]:
        """The first entries of each lane that a page may have."""
        found: list[Entry] = []
        for lane in lanes:
            above = above_of(lane, since_ms, after)
            if above is None or upto is None or above < upto:
                found += yield from self._page(lane, above, upto, most)
        return found

    def _page(
        self, lane: Lane, above: str | None, upto: str | None, most: int
    ) -> Program[list[Entry]]:
        if self.settings.limit_of(lane.counter) is not None:
            return decided_page(lane, above, upto, most, consistent=self._consistent)
        limit_ms = self.settings.read_time_max_ms
        return page(lane, above, upto, most, consistent=self._consistent, read_time_max_ms=limit_ms)

    def top(
        self, prefix: str = "", n: int = 10, *, by: str = "value", behind: float = BEHIND_S
    ) -> Program[Top]:
        check_count("n", n)
        prefix, best = prefix_of(prefix), self._best(n, by, behind)
        yield from self._shape.program()
        return (yield from top(self.settings.regions, prefix, self._wanted(prefix), best))

    def largest(
        self, names: Sequence[str], n: int, *, by: str, behind: float = BEHIND_S
    ) -> Program[list[Row]]:
        """The rows of `top` among the counters with these names."""
        best = self._best(n, by, behind)
        yield from best.read(names)
        return best.rows

    def _best(self, n: int, by: str, behind: float) -> Best:
        order = plain_text(by)
        if order is None or order not in BY:
            raise InvalidInput(f"by is one of {', '.join(BY)}, not {shown(by)}.")
        behind_ms = int(seconds("behind", behind) * 1_000)
        # a tail that is left out would be counted as none
        return Best(
            n, order, partial(self.balances, behind_ms=0 if order == "pending" else behind_ms)
        )

    # -- series
    # ----------------------------------------------------------------------------------------------

    def series(
        self,
        counter: str,
        *,
        since: datetime,
        until: datetime | None = None,
        every: str | timedelta = "day",
        zone: str | None = None,
        limit: int = STEPS_MAX,
    ) -> Program[Series]:
        counter = check_counter(counter)  # a name is checked before anything else
        now: Instant = yield Now()
        # with the changes of now
        until_ms = now.wall_ms + 1 if until is None else check_time("until", until)
        since_ms = past_ms("since", since, now)
        if since_ms >= until_ms:
            raise InvalidInput("since is not before until.")
        if type(limit) is not int or not 1 <= limit <= STEPS_MAX:
            raise InvalidInput(f"limit is an int from 1 to {STEPS_MAX:,}, not {shown(limit)}.")
        place = zone_of(zone)
        found = borders(since_ms, until_ms, check_every(every), place, limit)
        yield from self._first(counter)
        steps = series(counter, found, place, self.settings, consistent=self._consistent)
        return (yield from bounded(steps, self.units, self._instead(counter)))

    def value_at(self, counter: str, instant: datetime) -> Program[int]:
        counter = check_counter(counter)
        now: Instant = yield Now()
        border_ms = past_ms("instant", instant, now)
        yield from self._first(counter)
        of_border = bars(counter, (border_ms,), self.settings, consistent=self._consistent)
        _, found = yield from bounded(of_border, self.units, self._instead(counter))
        return found.totals[0]

    def _instead(self, counter: str) -> str:
        return OF_SERIES if self.settings.limit_of(counter) is None else OF_LIMITED

    # -- names and limits
    # ----------------------------------------------------------------------------------------------

    def counters(
        self, prefix: str = "", *, after: Place | None = None, limit: int = 100
    ) -> Program[CountersPage]:
        check_page(limit, after, Place)
        prefix, regions = prefix_of(prefix), self.settings.regions
        lanes = self.settings.lanes_of(prefix) if prefix else ()
        whole = sorted(lanes, key=lambda lane: (lane.shard, lane.region != self.settings.region))
        yield from self._shape.program()
        wanted = self._wanted(prefix)
        return (
            yield from counters_page(
                regions, prefix, wanted, after, limit, whole=whole, units=self.units
            )
        )

    def _wanted(self, prefix: str) -> Wanted:
        now_ms = self.clock()
        return lambda counter: counter.startswith(prefix) and self.settings.is_kept(counter, now_ms)

    def standing(self, counter: str) -> Program[Standing]:
        counter = check_counter(counter)
        gates = Gates.limited(self.settings, counter, "standing")
        yield from self._first(counter)
        (found,) = yield from read_standings([gates], consistent=self._consistent)
        return found

    def periods(
        self, base: str, period: Period, last: int = 12
    ) -> Program[tuple[PeriodBalance, ...]]:
        given: object = period
        if not isinstance(given, Period):
            raise InvalidInput(f"period is a Period, such as Period('month'), not {shown(given)}.")
        base = check_counter(base)
        if self.settings.keep_of(base) is None:
            raise InvalidInput(
                f"No prefix of periods={shown([*self.settings.periods], 200)} fits {base}."
            )
        now_ms = self.clock()
        every = period.last(base, last, to_datetime(now_ms))
        names = [name for name in every if self.settings.is_kept(name, now_ms)]
        yield from self._shape.program(base)
        found = yield from periods(names, self.settings, consistent=self._consistent)
        return tuple(
            PeriodBalance(name, period.start(name), period.end(name), of.value, of.count, standing)
            for name, of in found.items()
            for standing in [of if isinstance(of, Standing) else None]
        )

    def crossed(self, counter: str) -> Program[tuple[Crossed, ...]]:
        counter = check_counter(counter)
        thresholds = self.settings.thresholds_of(counter)
        yield from self._first(counter)
        return (yield from crossed(counter, thresholds, self.settings)) if thresholds else ()

    def holds(self, counter: str) -> Program[list[Hold]]:
        counter = check_counter(counter)
        gates = Gates.limited(self.settings, counter, "holds")
        yield from self._first(counter)
        return [Hold(held) for held in (yield from open_holds(gates))]

    def _first(self, counter: str) -> Program[None]:
        """The checks before the first request about a counter.

        Raises PeriodOver and what the shape's check raises.
        """
        self._check_kept([counter])
        yield from self._shape.program(counter)

    def _check_kept(self, counters: Sequence[str]) -> None:
        now_ms = self.clock()
        for counter in counters:
            self.settings.check_kept(counter, now_ms)
