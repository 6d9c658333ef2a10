"""The program `series` reads the changes in each step of time, and the counter's value at its end;
`value_at` reads the value at one instant.

Rule 1: It reads the checkpoints first, then the tails above their watermarks, as in `read`, and in
a bounded time.
Rule 2: It takes what a checkpoint counts from that checkpoint's days, bucket by bucket, which
replicate with it.
Rule 3: A sum cannot be cut. If a border cuts a bucket (hours; another zone's days; a day that
merged into its month) it reads the bucket's entries from the segments, and so all entries of a
checkpoint without days.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from itertools import accumulate, groupby, pairwise

from ledger.core import items, tokens
from ledger.core.checks import check_counter, check_time, to_datetime
from ledger.core.cost import NOTHING, Cost
from ledger.core.days import ms_of
from ledger.core.entries import Entries
from ledger.core.errors import InvalidInput, shown
from ledger.core.period import zone_of
from ledger.core.requests import GetMany, Instant, Now, Page, Program, Query
from ledger.core.settings import Settings
from ledger.core.values import Checkpoint, Lane
from ledger.lane.tail import HIGHEST, LOWEST, Pages, TailSum, bound
from reader.bounded import bounded
from reader.checks import past_ms
from reader.decided import decided
from reader.history import SEGMENTS_AT_ONCE, SEGMENTS_MAX
from reader.read import read_all, restart
from reader.rules import Rules
from reader.steps import STEPS_MAX, borders, check_every, in_zone

INSTEAD = (
    "Ask for a shorter time, or for days, weeks or months of UTC, which a checkpoint "
    "has, or without a bound."
)
INSTEAD_LIMITED = (
    "Of a counter with a limit this reads every change ever decided, so ask without a bound."
)


@dataclass(frozen=True, slots=True)
class Step:
    """The changes requested from `start` (included) to `end` (excluded), as clocks of the zone show
    these instants.

    change: their sum. count: how many they are. value: the sum of all changes requested before
    `end`.
    """

    start: datetime
    end: datetime
    change: int
    count: int
    value: int


@dataclass(frozen=True, slots=True)
class Series:
    """Steps that follow each other, also those without changes. as_of: when the read began. cost:
    what it cost.

    Steps may lie in the future: nothing has changed there, and the value stays. A change that comes
    later belongs to the step of its `at`, so it alters that one and the values from there on.
    """

    steps: tuple[Step, ...]
    as_of: datetime
    cost: Cost = field(default=NOTHING, compare=False, repr=False)


class Bars:
    """Number and sum of the changes before the first border, from each border to the next, and
    from the last one on.
    """

    def __init__(self, borders_ms: Sequence[int]) -> None:
        self.numbers, self.totals = ([0] * (len(borders_ms) + 1) for _ in range(2))
        self._starts = list(map(tokens.first_of, borders_ms))

    def cut(self, first: bytes, upto: bytes) -> bool:
        """Whether a border lies between two tokens."""
        return bisect_right(self._starts, first) != bisect_right(self._starts, upto)

    def add(self, first: bytes, number: int, total: int) -> None:
        """Add changes to the bar of `first`, the lowest token that they may have."""
        bar = bisect_right(self._starts, first)
        self.numbers[bar] += number
        self.totals[bar] += total

    def add_all(self, entries: Entries) -> None:
        found, changes, done = entries.tokens, entries.changes, 0
        while done < len(found):
            bar = bisect_right(self._starts, found[done])
            end = (
                bisect_left(found, self._starts[bar], done)
                if bar < len(self._starts)
                else len(found)
            )
            self.add(found[done], end - done, sum(changes[done:end]))
            done = end


def series(
    rules: Rules,
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
    yield from rules.first(counter)
    steps = _series(counter, found, place, rules.settings, consistent=rules.consistent)
    return (yield from bounded(steps, rules.units, _instead(rules, counter)))


def value_at(rules: Rules, counter: str, instant: datetime) -> Program[int]:
    counter = check_counter(counter)
    now: Instant = yield Now()
    border_ms = past_ms("instant", instant, now)
    yield from rules.first(counter)
    of_border = bars(counter, (border_ms,), rules.settings, consistent=rules.consistent)
    _, found = yield from bounded(of_border, rules.units, _instead(rules, counter))
    return found.totals[0]


def _instead(rules: Rules, counter: str) -> str:
    return INSTEAD if rules.settings.limit_of(counter) is None else INSTEAD_LIMITED


def _series(
    counter: str, borders_ms: Sequence[int], zone: tzinfo, settings: Settings, *, consistent: bool
) -> Program[Series]:
    """The steps between these instants. Raises what `bars` raises."""
    began, found = yield from bars(counter, borders_ms, settings, consistent=consistent)
    ends = pairwise(in_zone(border, zone) for border in borders_ms)
    values = list(accumulate(found.totals))[1:]
    # not what lies behind the last border
    steps = zip(ends, found.totals[1:], found.numbers[1:], values, strict=False)
    return Series(tuple(Step(*times, *sums) for times, *sums in steps), to_datetime(began.wall_ms))


def bars(
    counter: str, borders_ms: Sequence[int], settings: Settings, *, consistent: bool
) -> Program[tuple[Instant, Bars]]:
    """When the read began, and the changes between these instants, which come in ascending order.

    Raises DamagedItem, NotYetReplicated, ReadTooSlow and the TableErrors.
    """
    lanes = settings.lanes_of(counter)

    def attempt(_: Instant) -> Program[tuple[Bars | None, bool]]:
        found = Bars(borders_ms)
        answers = yield GetMany(tuple(map(items.checkpoint_key, lanes)), consistent)
        there = [
            (lane, items.checkpoint_of(lane, item))
            for lane, item in zip(lanes, answers, strict=True)
            if item
        ]
        marks = {lane: checkpoint.watermark for lane, checkpoint in there}
        tails = [TailSum(lane, marks.get(lane), consistent=consistent) for lane in lanes]
        yield from read_all(tails, found.add_all)
        for lane, checkpoint in there:
            if not (yield from _folded(lane, checkpoint, found, consistent)):
                return None, True
        return found, True

    if settings.limit_of(counter) is None:
        return (yield from restart(counter, attempt, settings.read_time_max_ms))
    # what its gates decided; a gate has no days
    began: Instant = yield Now()
    found = Bars(borders_ms)
    for lane in lanes:
        for token, change, _ in (yield from decided(lane, consistent=consistent)):
            found.add(token, 1, change)
    return began, found


Span = tuple[bytes, bytes, int, int]
"""A bucket: the lowest and the highest token that it may count; how many changes it counts;
their sum.
"""


def _spans(checkpoint: Checkpoint) -> Iterator[Span]:
    """The buckets of a checkpoint, in the order of time; a single one for a checkpoint without
    days.
    """
    if checkpoint.days is None:
        yield tokens.first_of(0), HIGHEST, checkpoint.count, checkpoint.total
        return
    for day, number, total in checkpoint.days.buckets:
        upto = tokens.to_bytes(tokens.last_of(ms_of(checkpoint.days.end(day)) - 1))
        yield tokens.first_of(ms_of(day)), upto, number, total


def _folded(lane: Lane, checkpoint: Checkpoint, found: Bars, consistent: bool) -> Program[bool]:
    """Add what a checkpoint counts; whether all of it was there.

    It reads buckets that follow each other together.
    """
    for is_cut, group in groupby(_spans(checkpoint), key=lambda span: found.cut(span[0], span[1])):
        spans = list(group)
        if is_cut:
            listed = yield from _listed(
                lane, checkpoint.version, spans[0][0], spans[-1][1], found, consistent
            )
            # Rule 4: fewer than the bucket counts: a replica lacks a segment, so all is read anew.
            # A bar would be short, and nothing would show it.
            if listed != sum(number for _, _, number, _ in spans):
                return False
        else:
            for first, _, number, total in spans:
                found.add(first, number, total)
    return True


def _listed(
    lane: Lane, version: int, first: bytes, upto: bytes, found: Bars, consistent: bool
) -> Program[int]:
    """Add the entries from one token up to another that segments up to a version list; how many
    there are.
    """
    lowest, number, size, last = tokens.from_bytes(first), 0, SEGMENTS_AT_ONCE, ""
    above = bound(tokens.before(lowest), LOWEST)
    after = items.segments_before(lowest)
    pages = Pages(Query(items.fold_pk(lane), after, items.SEGMENTS_UPTO, size, consistent))
    while pages.more:
        page: Page = yield from pages.read()
        for item in page.items:
            segment = items.segment_of(lane, item)
            if last and segment.hi != last:  # all further segments list later tokens alone
                return number
            last = segment.hi if tokens.to_bytes(segment.hi) >= upto else ""
            if segment.version <= version:
                entries = segment.entries.between(above, upto)
                found.add_all(entries)
                number += len(entries)
        size = min(2 * size, SEGMENTS_MAX)
        pages.next = pages.next._replace(limit=size)
    return number
