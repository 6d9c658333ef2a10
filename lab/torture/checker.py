"""Judges the recorded history of a round, counter by counter, with the simulator's judgements of reads and ends: pure.

Rule 1: Delta k is 4^k, so a read is a set of deltas or it is wrong.
Rule 2: Reads are set-regular, not linearizable.
Rule 3: Jepsen's counter bounds are computed apart from the sets, so that a mistake in one of the two judgements shows.
"""

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.histories import checker
from lab.histories.cast import Asked, Record, Seen
from lab.torture.plan import name_of
from lab.torture.record import Change, CounterHistory, Line
from ledger import tokens
from ledger.values import Delta, Lane

SHOWN_VIOLATIONS, SHOWN_LINES = 5, 40
Sums = dict[str, tuple[list[int], list[int]]]


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong, and with which counter (None: with none)."""

    counter: int | None
    why: str

    def __str__(self) -> str:
        return self.why if self.counter is None else f"{name_of(self.counter)}: {self.why}"


def check(lines: Sequence[Line], told: Mapping[int, CounterHistory]) -> Iterator[Violation]:
    """Everything wrong with a history before its end."""
    for line in lines:
        if line["type"] == "broken":
            yield Violation(None, f"{line['process']}, {line['f']} {line['value']}: {line['error']}")
    for history in told.values():
        for why in (*_sets(history), *_bounds(history)):
            yield Violation(history.counter, why)


def _sets(history: CounterHistory) -> Iterator[str]:
    asked = sorted((c for c in history.changes.values() if c.may_count), key=lambda change: change.invoked_ns)
    invoked_ns = [change.invoked_ns for change in asked]
    record = _record(history.counter, asked)
    for read in history.reads:
        owed = frozenset(each.number for each in asked if read.strong and each.owed_to(read))
        held = checker.deltas_in(read.value) or frozenset()
        count = len(held) if read.count is None else read.count
        by_end = bisect_right(invoked_ns, read.ended_ns)
        wrong = checker.check_read(Seen(read.region, read.strong, read.value, count, by_end, owed), record.asked)
        if wrong:
            yield f"{wrong}; {read.process}, from {_seconds(read.began_ns)} to {_seconds(read.ended_ns)}"


def _bounds(history: CounterHistory) -> Iterator[str]:
    """A strong read's part of its own Region lies between what was acknowledged there and what was attempted there."""
    changes = history.changes.values()
    lower = _running((each.home, each.owed_from_ns, each.number) for each in changes if each.owed_from_ns is not None)
    upper = _running((each.home, each.invoked_ns, each.number) for each in changes if each.may_count)
    for read in history.reads:
        if read.strong and read.at_home is not None:
            owed_ns, owed = lower[read.region]
            attempted_ns, attempted = upper[read.region]
            least = owed[bisect_left(owed_ns, read.began_ns)]
            most = attempted[bisect_right(attempted_ns, read.ended_ns)]
            if not least <= read.at_home <= most:
                yield (
                    f"a strong read in {read.region} says {read.at_home} of its own Region, which is not between "
                    f"{least} (acknowledged there) and {most} (attempted); {read.process}, "
                    f"from {_seconds(read.began_ns)} to {_seconds(read.ended_ns)}"
                )


def _running(events: Iterable[tuple[str, int, int]]) -> Sums:
    """By Region, the times and the running sums, from (Region, time, number)."""
    sums: Sums = defaultdict(lambda: ([], [0]))
    for region, time_ns, number in sorted(events):
        times_ns, totals = sums[region]
        times_ns.append(time_ns)
        totals.append(totals[-1] + 4**number)
    return sums


def check_end(
    history: CounterHistory, values: Mapping[str, int], histories: Mapping[str, Sequence[int]]
) -> Iterator[Violation]:
    """What is wrong with a counter after everything was delivered and compacted.

    values: what each Region reads; histories: the changes that each Region lists, where that was asked for.
    """
    asked = [change for change in history.changes.values() if change.may_count]
    listed = {
        region: histories.get(region, [4**number for number in checker.deltas_in(value) or ()])
        for region, value in values.items()
    }
    for why in checker.check_end(_record(history.counter, asked), dict(values), listed):
        yield Violation(history.counter, why)


def _record(counter: int, changes: Iterable[Change]) -> Record:
    record = Record()
    for change in changes:
        name = name_of(counter)
        delta = Delta(Lane(change.home, 0, name), tokens.keyed(name, str(change.number), change.at_ms), 1)
        record.asked.append(Asked(change.number, delta, change.acknowledged))
    return record


def _seconds(time_ns: int) -> str:
    return f"{time_ns / 1e9:.3f} s"


def explain(violations: Sequence[Violation], lines: Sequence[Line]) -> str:
    """Each of the first violations, with the latest lines of its counter's history, oldest first."""
    shown = ["\n".join([str(each), *_lines_of(each.counter, lines)[-SHOWN_LINES:]]) for each in violations]
    return "\n\n".join(shown[:SHOWN_VIOLATIONS] + list(map(str, violations[SHOWN_VIOLATIONS:])))


def _lines_of(counter: int | None, lines: Sequence[Line]) -> list[str]:
    """Without what the history says of other counters."""
    found = []
    for line in lines:
        values = [each for each in line["value"] if (each if isinstance(each, int) else each[0]) == counter]
        if line["f"] in ("add", "read") and values:
            found.append(f"  {json.dumps(line | {'value': values})}")
    return found
