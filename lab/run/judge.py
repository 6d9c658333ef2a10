"""Judges the recorded history of a run, counter by counter, by lab/histories/checker.py's rules of a read: pure.

Rule 1: Only witnesses, whose sums name their deltas, are read and judged here; a user's own are held against the truth.
Rule 2: What was asked for and what is owed is known by the one clock of all processes.
"""

from collections.abc import Iterator, Mapping, Sequence

from lab.histories.checker import read_of, wrong_end, wrong_read
from lab.run.record import CounterHistory, Histories, Line, Read


def check(lines: Sequence[Line], histories: Histories) -> Iterator[str]:
    """Everything wrong before the end: what nothing here can cause, and reads."""
    for line in lines:
        if line["type"] == "broken":
            yield f"{line['process']}, {line['f']} {line['value']}: {line['error']}"
    for history in histories.values():
        for read in history.reads:
            if wrong := _wrong(history, read):
                when = f"from {read.began_ns / 1e9:.3f} s to {read.ended_ns / 1e9:.3f} s"
                yield f"{history.counter}: {wrong}; {read.process}, {when}"


def _wrong(history: CounterHistory, read: Read) -> str | None:
    changes = [change for change in history.changes.values() if change.may_count]
    asked = {change.delta for change in changes if change.invoked_ns <= read.ended_ns}
    owed = {change.delta for change in changes if read.strong and change.owed_to(read)}
    what = read_of(read.region, read.value, consistent=read.strong)
    return wrong_read(what, read.value, read.count, asked, owed)


def check_end(history: CounterHistory, values: Mapping[str, int], listed: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """What is wrong with a counter after everything was delivered and compacted.

    values: what each Region reads; listed: the changes that each Region lists, where that was asked for.
    """
    changes = [change for change in history.changes.values() if change.may_count]
    acknowledged = {change.delta for change in changes if change.acknowledged}
    for why in wrong_end(values, listed, {change.delta for change in changes}, acknowledged):
        yield f"{history.counter}: {why}"
