"""`Reader`: what others call to know a counter."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from ledger import clocks, tokens
from ledger.by_region import table_of
from ledger.checks import check_counter, check_time, to_ms
from ledger.errors import InvalidInput, shown
from ledger.forks import PerProcess
from ledger.gate.gates import Gates
from ledger.gate.hold import Hold
from ledger.requests import Program, Result, Table, run
from ledger.settings import Settings, check_settings
from ledger.shape import ShapeCheck
from ledger.values import Lane
from reader.balance import Balance, CountersPage, Entry, HistoryPage, Place, Position
from reader.balances import balances
from reader.cache import Cache, own
from reader.counters_page import counters_page
from reader.decided import decided, decided_page
from reader.history import entries, history
from reader.history_page import page
from reader.open_holds import open_holds
from reader.standing import Standing, read_gates, standing_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

SECONDS_MAX = 10**9
PAGE_ENTRIES_MAX = 1_000


class Reader:
    """Reads counters in this Region. Thread-safe; make one a process and keep it.

    ttl: how many seconds `value` and `values` may answer from the cache. consistent: whether reads are strongly
    consistent in this Region (twice the read units); False may lag by what a replica node lags, and is a true sum too.
    client, clock and table as for Ledger.
    """

    def __init__(
        self,
        settings: Settings,
        ttl: float = 5.0,
        *,
        consistent: bool = True,
        client: DynamoDBClient | None = None,
        clock: clocks.Clock = clocks.wall_clock,
        table: Table | None = None,
    ) -> None:
        self.settings = check_settings(settings)
        self.ttl = _seconds("ttl", ttl)
        if type(consistent) is not bool:
            raise InvalidInput(f"consistent={shown(consistent)} is not True or False.")
        self._consistent = consistent
        self._table = table_of(settings, table=table, client=client)
        self._clock = clocks.checked(clock)
        self._now = clocks.instants(self._clock)
        self._shape = ShapeCheck(settings)
        self._cache = PerProcess(lambda: Cache(self.ttl, self._clock, self._balance))

    def value(self, counter: str) -> int:
        """The counter's value, at most `ttl` seconds old. A counter that nobody wrote is 0.

        Raises InvalidCounter, SettingsMismatch, DamagedItem, ReadTooSlow, Unavailable and the other TableErrors.
        """
        return self.read(counter, max_age=self.ttl).value

    def values(self, counters: Iterable[str]) -> dict[str, int]:
        """The values of several counters, at most `ttl` seconds old, those not in the cache read together."""
        given: object = counters
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InvalidInput(f"values takes several names, such as a list of them, not {shown(given)}.")
        names = list(dict.fromkeys(check_counter(counter) for counter in counters))
        known = self._cache.value.young(names)
        missing = [name for name in names if name not in known]
        known |= self._load_and_keep(missing)
        return {name: known[name].value for name in names}

    def read(self, counter: str, max_age: float = 0, *, behind: float = 0) -> Balance:
        """The counter's balance, at most `max_age` seconds old; 0 reads the table.

        The cache keeps nothing for longer than `ttl`, so a `max_age` above it is as good as `ttl`, without an error.

        behind: how many seconds the table's answer may be behind. Lanes that were folded up to at most so long ago are
        answered by their checkpoint alone: one request and a read unit a lane (half, if not `consistent`), however many
        changes a second there are. The balance holds every change asked for before `as_of`, but for those that came
        later than the allowed lateness and are not settled yet; lanes that were folded further may hold later ones too.
        Such an answer is neither taken from the cache nor kept in it.

        Raises as `value` does.
        """
        counter = check_counter(counter)
        if behind_s := _seconds("behind", behind):
            return self._load([counter], int(behind_s * 1_000))[counter]
        most = min(_seconds("max_age", max_age), self.ttl)
        balance = self._cache.value.balance(counter, most) if most else None
        return own(self._load_and_keep([counter])[counter]) if balance is None else balance

    def history(self, counter: str, *, since: datetime | None = None, until: datetime | None = None) -> Iterator[Entry]:
        """Every change that is in the value, in the order of time; a stray is there after the next settle.

        since (included) and until (excluded) are aware datetimes.
        Holds 24 bytes a change in memory. Raises InvalidInput, DamagedItem, NotYetReplicated (this Region's replica
        lacks a segment: ask again), ReadTooSlow and the TableErrors, all before the first entry.
        """
        since_ms, until_ms = _bound_ms("since", since), _bound_ms("until", until)
        lanes = [self._entries(lane) for lane in self.settings.lanes_of(counter)]
        merged = heapq.merge(*lanes, key=lambda entry: entry.token)
        return (
            entry
            for entry in merged
            if (since_ms is None or to_ms(entry.at) >= since_ms) and (until_ms is None or to_ms(entry.at) < until_ms)
        )

    def history_page(
        self,
        counter: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        after: Position | None = None,
        limit: int = 100,
    ) -> HistoryPage:
        """The next `limit` entries of `history` above `after`; of each lane some segments are read, and of a tail the
        page and what packs may hold in between: about ten seconds of it, whatever the limit.

        Every segment of a range of time that the page touches is read, one for each settle it has seen; no more than
        the page and 1 MB of them is held in memory.
        Each page is read at its own time: a stray that is settled below `after` meanwhile is in no later page. In a
        Region that is not the home of a lane, a page may lack entries whose segment has not been replicated yet.
        Raises as `history` does.
        """
        _check_limit(limit)
        given: object = after
        if given is not None and not isinstance(given, Position):
            raise InvalidInput(f"after is the next of an earlier page, not {shown(given)}.")
        since_ms, until_ms = _bound_ms("since", since), _bound_ms("until", until)
        lanes = self.settings.lanes_of(counter)
        if until_ms is not None and until_ms <= 0:
            return HistoryPage((), None)
        upto = None if until_ms is None else tokens.last_of(until_ms - 1)
        found: list[Entry] = []
        for lane in lanes:
            above = _above(lane, since_ms, after)
            if above is not None and upto is not None and above >= upto:
                continue
            found += self._run(self._page(lane, above, upto, limit + 1))
        found.sort(key=lambda entry: (entry.token, entry.region))
        entries = tuple(found[:limit])
        last = Position(entries[-1].token, entries[-1].region) if len(found) > limit else None
        return HistoryPage(entries, last)

    def counters(self, prefix: str = "", *, after: Place | None = None, limit: int = 100) -> CountersPage:
        """The next `limit` names of counters that begin with `prefix`, behind `after`, by the directory of lanes.

        In the order of the directory's buckets, which is not that of names. A page reads 64 of the 256 buckets at most,
        in every Region (half a read unit each), so it may have fewer names, or none: go on until `next` is None. A
        counter is there some seconds after its first change; those of a table that is older than its directory once
        `ledgerctl adopt` was run.
        Raises InvalidInput, SettingsMismatch, DamagedItem and the TableErrors.
        """
        _check_limit(limit)
        given: object = prefix
        prefix = "" if isinstance(given, str) and not str.__len__(given) else check_counter(given)
        given = after
        if given is not None and not isinstance(given, Place):
            raise InvalidInput(f"after is the next of an earlier page, not {shown(given)}.")
        return self._run(counters_page(self.settings.regions, prefix, after, limit))

    def standing(self, counter: str) -> Standing:
        """Where a limited counter stands: its value, its limit, what of it is left, held and on its way. One request.

        Raises InvalidInput (a counter without a limit), LimitMismatch and what `value` raises.
        """
        gates = Gates.limited(self.settings, counter, "standing")
        began, (copies,) = self._run(read_gates([gates], consistent=self._consistent))
        return standing_of(gates, copies, began)

    def holds(self, counter: str) -> list[Hold]:
        """The holds of a limited counter that nobody has ended yet, those that end first, first: read at the home of
        each lane, a request and one for each that was filed. For operators: it grows with the number of holds.

        Raises InvalidInput (a counter without a limit), LimitMismatch, DamagedItem and the TableErrors.
        """
        return [Hold(held) for held in self._run(open_holds(Gates.limited(self.settings, counter, "holds")))]

    def _entries(self, lane: Lane) -> Iterable[Entry]:
        if self.settings.limit_of(lane.counter) is not None:
            return self._run(decided(lane, consistent=self._consistent))
        limit_ms = self.settings.read_time_max_ms
        return entries(lane, *self._run(history(lane, consistent=self._consistent, read_time_max_ms=limit_ms)))

    def _page(self, lane: Lane, above: str | None, upto: str | None, most: int) -> Program[list[Entry]]:
        if self.settings.limit_of(lane.counter) is not None:
            return decided_page(lane, above, upto, most, consistent=self._consistent)
        limit_ms = self.settings.read_time_max_ms
        return page(lane, above, upto, most, consistent=self._consistent, read_time_max_ms=limit_ms)

    def _run(self, program: Program[Result]) -> Result:
        self._shape.ask(self._table, self._now)
        return run(program, self._table, self._now)

    def _balance(self, counter: str) -> Balance:
        return self._load([counter])[counter]

    def _load_and_keep(self, counters: list[str]) -> dict[str, Balance]:
        balances = self._load(counters) if counters else {}
        self._cache.value.keep(balances)
        return balances

    def _load(self, counters: list[str], behind_ms: int = 0) -> dict[str, Balance]:
        return self._run(balances(counters, self.settings, consistent=self._consistent, behind_ms=behind_ms))


def _check_limit(limit: object) -> None:
    if type(limit) is not int or not 1 <= limit <= PAGE_ENTRIES_MAX:
        raise InvalidInput(f"limit is an int from 1 to {PAGE_ENTRIES_MAX:,}, not {shown(limit)}.")


def _seconds(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= SECONDS_MAX:
        return float(value)
    raise InvalidInput(f"{name} is a number of seconds from 0 to 10**9, not {shown(value)}.")


def _above(lane: Lane, since_ms: int | None, after: Position | None) -> str | None:
    """The token above which the wanted entries of a lane begin. The same token in two Regions is two entries."""
    bounds: list[str | None] = []
    if since_ms is not None and since_ms > 0:
        bounds.append(tokens.last_of(since_ms - 1))
    if after is not None:
        bounds.append(after.token if lane.region <= after.region else tokens.before(after.token))
    return max(filter(None, bounds), default=None)


def _bound_ms(name: str, at: object) -> int | None:
    return None if at is None else check_time(name, at)
