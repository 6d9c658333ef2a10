"""`Reader`: reads counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from ledger.client.holds import Hold
from ledger.core import clocks
from ledger.core.checks import check_counter
from ledger.core.clocks import PerProcess
from ledger.core.observing import READ, Observe, Observer, observed
from ledger.core.period import Period
from ledger.core.requests import Program, Result, Table
from ledger.core.running import answerer, drive
from ledger.core.settings import ClientName, Settings
from ledger.tables.dynamo import table_of
from ledger.tables.failures import DynamoDBClient
from reader.balance import Balance, CountersPage, Entry, HistoryPage, Place, Position
from reader.cache import Began, Cache
from reader.counters_page import counters
from reader.crossed import Crossed, crossed
from reader.histories import history, history_page
from reader.periods import PeriodBalance, periods
from reader.rules import Rules, names_of
from reader.series import Series, series, value_at
from reader.standing import Standing, holds, standing
from reader.steps import STEPS_MAX
from reader.top import BEHIND_S, Top, top


class Reader:
    """Reads counters in this Region. It is thread-safe: make one in each process and keep it.

    ttl: for how many seconds `value` and `values` may answer from the cache. consistent: whether
    reads are strongly consistent in this Region (twice the read units); with False a read may miss
    the newest changes, but counts each change that it sees exactly once, too. client, clock, table
    and observe as for Ledger.
    """

    def __init__(
        self,
        settings: Settings,
        ttl: float = 5.0,
        *,
        consistent: bool = True,
        client: DynamoDBClient | ClientName | None = None,
        clock: clocks.Clock = clocks.wall_clock,
        table: Table | None = None,
        observe: Observe | None = None,
    ) -> None:
        self._rules = Rules(settings, ttl, consistent, clock)
        self.settings, self.ttl = settings, self._rules.ttl
        answers = table_of(settings, table=table, client=client)
        self._answer = answerer(answers, self._rules.now)
        self._observer = Observer(observe)
        self._cache = PerProcess(lambda: Cache(self._rules.now))

    @observed("reader.value", READ)
    def value(self, counter: str) -> int:
        """The counter's value, at most `ttl` seconds old; 0 for a counter that nobody wrote.

        Raises InvalidCounter, SettingsMismatch, DamagedItem, ReadTooSlow, Unavailable and the other
        TableErrors.
        """
        return self._read(check_counter(counter), self.ttl, 0).value

    @observed("reader.values", READ)
    def values(self, counters: Iterable[str]) -> dict[str, int]:
        """The values of several counters, at most `ttl` seconds old.

        It reads those outside of the cache together.
        """
        names = names_of(counters)
        known = self._cache.value.young(names, self.ttl)
        lacking = [name for name in names if name not in known]
        known |= self._load(lacking) if lacking else {}
        return {name: known[name].value for name in names}

    @observed("reader.read", READ)
    def read(self, counter: str, max_age: float = 0, *, behind: float = 0) -> Balance:
        """The counter's balance, at most `max_age` seconds old; 0 reads the table.

        The cache keeps nothing for longer than `ttl`, so a `max_age` above that means `ttl`,
        without an error.

        behind: how many seconds the table's answer may be behind. If the checkpoint of a lane has
        the changes up to at most so long ago, it reads that alone: one request and a read unit a
        lane (half, if not `consistent`), however many changes a second there are. The balance has
        every change requested before `as_of`, except those that came later than the allowed
        lateness and are not settled yet. A checkpoint that reaches beyond `as_of` adds later
        changes. The cache neither gives nor keeps such an answer.

        Such a balance is not a value of the past: read that with `value_at`.

        Raises as `value` does.
        """
        return self._read(*self._rules.checked(counter, max_age, behind))

    def _read(self, counter: str, most_s: float, behind_ms: int) -> Balance:
        if most_s:
            return self._cache.value.balance(
                counter, most_s, lambda: self._load([counter])[counter]
            )
        return self._load([counter], behind_ms)[counter]

    def _load(self, counters: list[str], behind_ms: int = 0) -> dict[str, Balance]:
        cache = self._cache.value
        began = Began(next(cache.numbers), self._rules.now())
        found = drive(self._rules.balances(counters, behind_ms), self._answer)
        if not behind_ms:
            cache.keep(found, began)
        return found

    @observed("reader.history", READ)
    def history(
        self, counter: str, *, since: datetime | None = None, until: datetime | None = None
    ) -> Iterator[Entry]:
        """Every change in the value, in the order of time; a stray is there after the next settle.

        since (included) and until (excluded) are aware datetimes. It holds 24 bytes a change in
        memory. Raises InvalidInput, DamagedItem, NotYetReplicated (this Region's replica lacks a
        segment: call again), ReadTooSlow and the TableErrors, all before the first entry.
        """
        return self._run(history(self._rules, counter, since=since, until=until))

    @observed("reader.history_page", READ)
    def history_page(
        self,
        counter: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        after: Position | None = None,
        limit: int = 100,
    ) -> HistoryPage:
        """The next `limit` entries of `history` above `after`. For each lane it reads a part of the
        segments. Of a tail it reads the page and the changes of about ten seconds beyond it,
        whatever the limit is, because packs may hold entries in between.

        A range of time has a segment more for each settle in it, and a page reads all segments of
        each range that it touches. It holds no more than the page and 1 MB of segments in memory.
        Each page is read at its own time: if a stray is settled below `after` meanwhile, no later
        page has it. In a Region that is not the home of a lane, and with consistent=False at home
        too, a page may lack entries whose segment has not arrived yet. Raises as `history` does.
        """
        return self._run(
            history_page(self._rules, counter, since=since, until=until, after=after, limit=limit)
        )

    @observed("reader.series", READ)
    def series(
        self,
        counter: str,
        *,
        since: datetime,
        until: datetime | None = None,
        every: str | timedelta = "day",
        zone: str | None = None,
        limit: int = STEPS_MAX,
    ) -> Series:
        """The changes in each step of time, and the value at its end. The steps cover the time from
        `since` to `until` (now), so the first may begin before `since`, and the last may end after
        `until`.

        `until` may lie in the future, so that a chart of today goes on to midnight. Steps that
        begin after the series' `as_of` have no changes, except those of a clock that is ahead;
        their value is the current one.

        every: "hour", "day", "week" (from Monday), "month" or a timedelta. zone: the IANA name of
        the zone whose days these are, default UTC; hours and timedeltas count from its midnight
        before `since`. limit: the most steps, 1 to 10,000.

        Days of UTC, and longer steps, take one read unit a lane and the tail, as far back as the
        checkpoint still knows days. For shorter steps, for steps that begin at other times, and
        always for a counter with a limit, it reads the segments: 24 bytes a change.

        The sums are those of a history read at that moment; a stray is there after the next settle.
        Raises InvalidInput (more steps than `limit`, no such zone), InvalidTime (before 1970;
        `since` in the future; after November 9999) and what `history` raises.
        """
        return self._run(
            series(
                self._rules, counter, since=since, until=until, every=every, zone=zone, limit=limit
            )
        )

    @observed("reader.value_at", READ)
    def value_at(self, counter: str, instant: datetime) -> int:
        """The sum of all changes requested before `instant`, an aware datetime of the past, as far
        as they are in the value now. A change that comes later, for an earlier time, alters it.

        It reads one item a lane, the tail, and the segments of the day of `instant` (or of the
        month or year, where the checkpoint no longer knows the day); of a counter with a limit all
        that was decided. Raises as `series` does.
        """
        return self._run(value_at(self._rules, counter, instant))

    @observed("reader.counters", READ)
    def counters(
        self, prefix: str = "", *, after: Place | None = None, limit: int = 100
    ) -> CountersPage:
        """The next `limit` names of counters that begin with `prefix`, behind `after`, from the
        directory of lanes.

        They come in the order of the directory's buckets, which is not that of names; the counter
        whose whole name is `prefix` comes first, alone, by one request. A page looks for names in
        64 of the 256 buckets at a time, in every Region (half a read unit each), and ends where it
        found some. So it may have fewer than `limit`. Only the last page may be empty: go on until
        `next` is None.

        The service lists a counter some seconds after its first change; without the service, the
        next `Compactor.run` does, which scans.
        Raises InvalidInput, SettingsMismatch, DamagedItem and the TableErrors.
        """
        return self._run(counters(self._rules, prefix, after=after, limit=limit))

    @observed("reader.top", READ)
    def top(
        self, prefix: str = "", n: int = 10, *, by: str = "value", behind: float = BEHIND_S
    ) -> Top:
        """The `n` largest counters, up to 1,000, that begin with `prefix`, by their "value", by how
        many "changes" they have, or by how many of these are "pending". It reads all counters that
        `counters` lists.

        behind: how many seconds a value may be behind, as for `read`; 0 reads every tail, and so
        does by="pending". Each balance is that of its own `as_of`, so a counter that changes
        meanwhile has the rank of the moment when it was read. The call does not use the cache, and
        `pending` counts the tails that it read.

        Its cost: for the names, 256 Queries a Region, and one more for each 1,000 names of a
        bucket, half a read unit each. For each lane a checkpoint or a gate: one request for 100 of
        them, a unit each. And one Query, of a unit or more, for each lane without a limit that has
        no checkpoint of the last `behind` seconds, because it is quiet, or was never folded. So the
        values of 8,000 counters with one lane each take 80 requests where they have a limit or were
        folded lately, and up to 8,080 where they were not, or with behind=0. If not `consistent`,
        units are half.

        Raises InvalidInput and what `counters` and `value` raise: one counter that cannot be read
        ends the call.
        """
        return self._run(top(self._rules, prefix, n, by=by, behind=behind))

    @observed("reader.crossed", READ)
    def crossed(self, counter: str) -> tuple[Crossed, ...]:
        """The thresholds of the settings that hold for a counter now, whichever Region publishes
        them. It makes one strong read; none for a counter without thresholds. It keeps and
        publishes nothing: the service does.

        A threshold of a limit is compared with the limit as it is set, and left out where the
        counter's limit lacks its side. Raises as `value` does, and LimitMismatch.
        """
        return self._run(crossed(self._rules, counter))

    @observed("reader.standing", READ)
    def standing(self, counter: str) -> Standing:
        """Where a limited counter stands: its value, its limit, and what of it is left, held and on
        its way. One request; where filed holds keep a part of it, two or three more for each such
        lane of this Region.

        Raises InvalidInput (a counter without a limit), LimitMismatch and what `value` raises.
        """
        return self._run(standing(self._rules, counter))

    @observed("reader.periods", READ)
    def periods(self, base: str, period: Period, last: int = 12) -> tuple[PeriodBalance, ...]:
        """The last periods of a counter, up to the current one, the oldest first; without those
        that are kept no longer. base: the name without its period. It reads the periods together:
        for a limited counter half a read unit to one each.

        Raises InvalidInput (a name that no prefix of `periods` fits) and what `value` raises.
        """
        return self._run(periods(self._rules, base, period, last))

    @observed("reader.holds", READ)
    def holds(self, counter: str) -> list[Hold]:
        """The open holds of a limited counter; the one that ends next comes first. It reads at the
        home of each lane: one request for the gates of a Region, one for each lane, and two or
        three for each hundred filed holds. It is for operators, because its cost grows with the
        number of holds.

        Raises InvalidInput (a counter without a limit), LimitMismatch, DamagedItem and the
        TableErrors.
        """
        return self._run(holds(self._rules, counter))

    def _run(self, program: Program[Result]) -> Result:
        return drive(program, self._answer)
