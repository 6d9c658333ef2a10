"""Judges the recorded history of a run, counter by counter, by the rules of a read that stand in
lab/histories/judges/checker.py: pure.

Rule 1: It judges witnesses alone, because their sums name their deltas. A user's counters are
compared with the truth.
Rule 2: One clock of all processes says when a change was sent, and from when on a read has to hold
it.
"""

from collections.abc import Iterator, Mapping, Sequence

from lab.histories.judges.checker import read_of, wrong_end, wrong_read
from lab.run.record import CounterHistory, Histories, Line, Read


def check(lines: Sequence[Line], histories: Histories) -> Iterator[str]:
    """Everything wrong before the end: wrong reads, and errors that no fault here can cause."""
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


def check_end(
    history: CounterHistory, values: Mapping[str, int], listed: Mapping[str, Sequence[int]]
) -> Iterator[str]:
    """What is wrong with a counter after everything was delivered and compacted.

    values: what each Region reads; listed: the changes that each Region lists, where somebody
    listed them.
    """
    changes = [change for change in history.changes.values() if change.may_count]
    acknowledged = {change.delta for change in changes if change.acknowledged}
    for why in wrong_end(values, listed, {change.delta for change in changes}, acknowledged):
        yield f"{history.counter}: {why}"
