"""The judgement of a recorded history, on histories written by hand."""

from collections.abc import Sequence

import pytest

from lab.torture import checker
from lab.torture.record import Line, histories_of

A, B = "eu-west-1", "us-east-1"
LATE_NS = 1_000
HOMES = [A, A, A, B]


def invoke(time: int, *numbers: int, process: str = "w", region: str = A, at_ms: int = 0) -> Line:
    value = [[0, number, HOMES[number], at_ms] for number in numbers]
    return {"process": process, "type": "invoke", "f": "add", "time": time, "value": value, "region": region}


def end(time: int, *numbers: int, how: str = "ok", process: str = "w", region: str = A) -> Line:
    value = [[0, number, how] for number in numbers]
    return {"process": process, "type": how, "f": "add", "time": time, "value": value, "region": region}


def read(
    began: int, ended: int, *numbers: int, region: str = A, strong: bool = True, more: int = 0, count: int | None = None
) -> Line:
    total = sum(4**number for number in numbers) + more
    at_home = sum(4**number for number in numbers if HOMES[number] == region) + more
    value = [[0, total, len(numbers) if count is None else count, {region: at_home}]]
    about = {"region": region, "strong": strong, "began": began}
    return {"process": "r", "type": "ok", "f": "read", "time": ended, "value": value, **about}


def judged(*lines: Line) -> list[str]:
    ordered = sorted(lines, key=lambda line: int(line["time"]))
    return [str(wrong) for wrong in checker.check(ordered, histories_of(ordered, on_time_ns=LATE_NS, wall_ns=0))]


def at_the_end(values: dict[str, Sequence[int]], *lines: Line) -> list[str]:
    [history] = histories_of(lines, on_time_ns=LATE_NS, wall_ns=0).values()
    sums = {region: sum(4**number for number in numbers) for region, numbers in values.items()}
    return [str(wrong) for wrong in checker.check_end(history, sums, {})]


ADDED = (invoke(10, 0, 1), end(20, 0, 1))


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([*ADDED, read(30, 40, 0, 1)], id="everything that was acknowledged"),
        pytest.param([*ADDED, read(15, 40)], id="without what was not acknowledged when it began"),
        pytest.param(
            [*ADDED, read(30, 40, strong=False), read(30, 41, region=B)], id="an eventual read, a read abroad"
        ),
        pytest.param([invoke(10, 0, region=B), end(20, 0, region=B), read(30, 40)], id="acknowledged abroad: not owed"),
        pytest.param([invoke(10, 0), end(LATE_NS + 1, 0), read(LATE_NS + 2, LATE_NS + 3)], id="late: not owed"),
        pytest.param([invoke(10, 0), end(20, 0, how="fail"), read(30, 40)], id="all its adds failed: not there"),
        pytest.param([invoke(10, 0), read(30, 40, 0), read(41, 42)], id="its writer was killed: there or not"),
        pytest.param([invoke(10, 0, 3), end(20, 0, 3), read(30, 40, 0, 3)], id="deltas of both Regions"),
    ],
)
def test_a_read_is_right(lines: list[Line]) -> None:
    assert judged(*lines) == []


def test_a_strong_read_at_home_that_misses_an_acknowledged_delta_is_wrong_by_its_set_and_by_its_bounds() -> None:
    found = judged(*ADDED, read(30, 40, 0))
    assert [wrong.partition(";")[0] for wrong in found] == [
        "counter-0: a strong read in eu-west-1 of 1 lacks [1], acknowledged at home on time before it began",
        "counter-0: a strong read in eu-west-1 says 1 of its own Region, which is not between 5 (acknowledged there) "
        "and 5 (attempted)",
    ]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([*ADDED, read(30, 40, 0, 1, more=4)], "counter-0: a strong read in eu-west-1 of 9 counts a delta twice"),
        ([*ADDED, read(30, 40, 0, 1, 2), invoke(50, 2)], "counts [2], which nobody has asked for"),
        ([invoke(10, 0), end(20, 0, how="fail"), read(30, 40, 0)], "counts [0], which nobody has asked for"),
        ([*ADDED, read(30, 40, 0, 1, count=1)], "says it counts 1 deltas"),
        ([{**invoke(1), "type": "broken", "error": "TokenConflict: no"}], "w, add []: TokenConflict: no"),
    ],
)
def test_a_history_is_wrong(lines: list[Line], says: str) -> None:
    assert says in judged(*lines)[0]


def test_at_the_end_a_delta_whose_adds_all_failed_counts_nowhere_and_one_whose_writer_was_killed_perhaps() -> None:
    refused, killed = (invoke(10, 0), end(20, 0, how="fail")), invoke(10, 0)
    assert at_the_end({A: [], B: []}, *refused) == []
    assert "counts [0], which nobody asked for" in at_the_end({A: [0], B: [0]}, *refused)[0]
    assert at_the_end({A: [0], B: [0]}, killed) == at_the_end({A: [], B: []}, killed) == []


def test_at_the_end_each_acknowledged_delta_counts_in_both_regions() -> None:
    assert at_the_end({A: [0, 1], B: [0, 1]}, *ADDED) == []
    assert at_the_end({A: [0, 1], B: [0]}, *ADDED) == [
        "counter-0: at the end us-east-1 lacks [1], which were acknowledged",
        "counter-0: at the end the Regions differ: {'eu-west-1': 5, 'us-east-1': 1}",
    ]
