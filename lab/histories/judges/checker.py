"""The one judge of reads, of histories and of runs on an engine: pure, and knowing nothing of how a
counter works.

Rule 1: A value is a set of deltas, because delta k is 4^k: a digit above 1 is a delta counted
twice. Reads are set-regular, not linearizable: two reads in different Regions, or one while a stray
waits, may differ in what they hold.
Rule 2: Who was asked when is the caller's to know, in steps of a history or in nanoseconds of a
run: the judge is given sets of numbers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from compactor.report import Tally
from ledger.core import tokens
from ledger.core.values import Delta


@dataclass(slots=True)
class Asked:
    """One change that was asked for. on_time: its home Region has acknowledged it, within the
    allowed lateness by the clock of every compactor."""

    number: int
    delta: Delta
    acknowledged: bool = False
    on_time: bool = False


@dataclass(slots=True)
class Rivals:
    """Two changes that were asked for under one token, by mistake: one of them counts once either
    was acknowledged.

    Which one may change until one is folded, so neither is owed to any one read.
    """

    one: Asked
    other: Asked
    acknowledged: bool = False

    @property
    def numbers(self) -> set[int]:
        return {self.one.number, self.other.number}


@dataclass(slots=True)
class Seen:
    """One finished read. must: the deltas that it has to hold: acknowledged at home, on time,
    before it began. after: how many reads had ended when it began; None: all that ended before it
    did."""

    region: str
    consistent: bool
    value: int
    count: int
    asked_by_end: int
    must: frozenset[int]
    after: int | None = None


@dataclass(slots=True)
class Charted:
    """One finished series: the number and the sum of the changes before the first border, between
    each two, and from the last one on."""

    region: str
    borders_ms: tuple[int, ...]
    numbers: tuple[int, ...]
    totals: tuple[int, ...]


@dataclass(slots=True)
class Record:
    """broken: errors that nothing in a history can cause, such as a damaged lane. numbers: how many
    are given out.
    packs: how many were put, whether or not the answer came. tallies: of each visit, also one that
    was cut off. lost: the deltas that a Region lost with its replica, or that a read there may wait
    for since then; and rivals.
    """

    asked: list[Asked] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    rivals: list[Rivals] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    numbers: int = 0
    packs: int = 0
    tallies: list[Tally] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    charts: list[Charted] = field(default_factory=list)


def deltas_in(value: int) -> frozenset[int] | None:
    """The numbers of the deltas that sum to `value`; None when no set of distinct deltas does."""
    if value < 0:
        return None
    found = []
    number = 0
    while value:
        value, digit = divmod(value, 4)
        if digit > 1:
            return None
        if digit:
            found.append(number)
        number += 1
    return frozenset(found)


def wrong_read(
    what: str, value: int, count: int | None, asked: Collection[int], must: Collection[int]
) -> str | None:
    """What is wrong with a read. what: says which it was. count: of how many deltas it says that it
    is the sum, if it does. asked: before it ended. must: acknowledged at home on time before it
    began; nothing, if it may be behind.
    """
    held = deltas_in(value)
    if held is None:
        return f"{what} counts a delta twice"
    if count is not None and count != len(held):
        return f"{what} says it counts {count} deltas, but it is the sum of {sorted(held)}"
    if unasked := held.difference(asked):
        return f"{what} counts {sorted(unasked)}, which nobody has asked for"
    if lacking := set(must) - held:
        return f"{what} lacks {sorted(lacking)}, acknowledged at home on time before it began"
    return None


def wrong_end(
    values: Mapping[str, int],
    histories: Mapping[str, Sequence[int]],
    asked: Collection[int],
    acknowledged: Collection[int],
) -> Iterable[str]:
    """What is wrong after everything was delivered and compacted. values: what each Region reads;
    histories: the changes that a Region's history lists, where that was asked for.
    """
    for region, value in values.items():
        held = deltas_in(value)
        if held is None:
            yield f"at the end {region} reads {value}: a delta is counted twice"
            continue
        if lacking := set(acknowledged) - held:
            yield f"at the end {region} lacks {sorted(lacking)}, which were acknowledged"
        if unasked := held.difference(asked):
            yield f"at the end {region} counts {sorted(unasked)}, which nobody asked for"
        if region in histories and sorted(histories[region]) != sorted(
            4**number for number in held
        ):
            yield (
                f"at the end {region} reads {value}, but its history lists "
                f"{sorted(histories[region])}"
            )
    if len(set(values.values())) > 1:
        yield f"at the end the Regions differ: {dict(values)}"


def read_of(region: str, value: int, *, consistent: bool) -> str:
    return f"{'a strong' if consistent else 'an eventual'} read in {region} of {value}"


def check_read(seen: Seen, asked: Sequence[Asked]) -> str | None:
    what = read_of(seen.region, seen.value, consistent=seen.consistent)
    return wrong_read(
        what,
        seen.value,
        seen.count,
        {each.number for each in asked[: seen.asked_by_end]},
        seen.must,
    )


def check_chart(chart: Charted, asked: Sequence[Asked]) -> Iterable[str]:
    """What is wrong with a series: a bar that is no sum of so many changes of its time.

    Its sum is judged as a read.
    """
    times = {each.number: tokens.time_ms(each.delta.token) for each in asked}
    bounds = (0, *chart.borders_ms, tokens.TIME_MS_MAX + 1)
    for (start, end), number, total in zip(
        pairwise(bounds), chart.numbers, chart.totals, strict=True
    ):
        held = deltas_in(total)
        what = (
            f"a series in {chart.region} has from {start} to {end} ms {number} changes of {total}"
        )
        if held is None or len(held) != number:
            yield f"{what}, which is no sum of so many deltas"
        elif elsewhere := sorted(each for each in held if not start <= times.get(each, -1) < end):
            yield f"{what}, but {elsewhere} are of another time"


def check_reads(record: Record) -> Iterable[str]:
    """Everything wrong with the reads of a history, and errors that nothing in it can cause."""
    yield from record.broken
    yield from (wrong for seen in record.seen if (wrong := check_read(seen, record.asked)))
    yield from (wrong for chart in record.charts for wrong in check_chart(chart, record.asked))
    for seen in record.seen:
        held = deltas_in(seen.value) or frozenset()
        yield from (
            (
                f"a read in {seen.region} of {seen.value} counts a token twice: "
                f"{sorted(rivals.numbers)}"
            )
            for rivals in record.rivals
            if rivals.numbers <= held
        )


def check_on_time(record: Record, strays: Collection[int]) -> Iterable[str]:
    """A delta that came on time is never a stray: for a while no strong read at home would have
    held it.
    """
    for asked in record.asked:
        if asked.on_time and asked.number in strays:
            yield (
                f"{asked.delta.lane.region} acknowledged {asked.number} on time, yet it was a stray"
            )


def check_continuity(record: Record, strays: Collection[int]) -> Iterable[str]:
    """A delta that a strong read of a Region held is held by those that began later, unless it
    was a stray once.
    """
    for number, seen in enumerate(record.seen):
        ended = record.seen[: number if seen.after is None else seen.after]
        before = next(
            (one for one in reversed(ended) if one.consistent and one.region == seen.region), None
        )
        if seen.consistent and before is not None:
            gone = (
                (deltas_in(before.value) or frozenset())
                - (deltas_in(seen.value) or frozenset())
                - {*strays}
            )
            if gone:
                yield (
                    f"a strong read in {seen.region} of {seen.value} lost {sorted(gone)}, "
                    "which an earlier one held"
                )


def check_end(
    record: Record, values: dict[str, int], histories: Mapping[str, Sequence[int]]
) -> Iterable[str]:
    """What is wrong at the end of a history; as `wrong_end`, and of two changes under one token
    one counts.
    """
    acknowledged = {asked.number for asked in record.asked if asked.acknowledged}
    yield from wrong_end(values, histories, {asked.number for asked in record.asked}, acknowledged)
    for region, value in values.items():
        held = deltas_in(value) or frozenset()
        for rivals in record.rivals:
            if len(rivals.numbers & held) > 1 or (
                rivals.acknowledged and not rivals.numbers & held
            ):
                yield (
                    f"at the end {region} reads {value}: not one of {sorted(rivals.numbers)} counts"
                )
