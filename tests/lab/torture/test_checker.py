"""The judgement of a recorded history, on histories written by hand."""

from collections.abc import Sequence

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


def read(began: int, ended: int, *numbers: int, region: str = A, strong: bool = True, more: int = 0) -> Line:
    total = sum(4**number for number in numbers) + more
    at_home = sum(4**number for number in numbers if HOMES[number] == region) + more
    value = [[0, total, len(numbers), {region: at_home}]]
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


def test_a_read_of_everything_that_was_acknowledged_is_right() -> None:
    assert judged(*ADDED, read(30, 40, 0, 1)) == []


def test_a_read_may_miss_what_was_not_acknowledged_when_it_began() -> None:
    assert judged(*ADDED, read(15, 40)) == []


def test_a_strong_read_at_home_that_misses_an_acknowledged_delta_is_wrong_by_its_set_and_by_its_bounds() -> None:
    found = judged(*ADDED, read(30, 40, 0))
    assert [wrong.partition(";")[0] for wrong in found] == [
        "counter-0: a strong read in eu-west-1 of 1 lacks [1], acknowledged there on time before it began",
        "counter-0: a strong read in eu-west-1 says 1 of its own Region, which is not between 5 (acknowledged there) "
        "and 5 (attempted)",
    ]


def test_an_eventual_read_and_a_read_abroad_may_miss_it() -> None:
    assert judged(*ADDED, read(30, 40, strong=False), read(30, 41, region=B)) == []


def test_a_delta_acknowledged_abroad_or_late_is_not_owed() -> None:
    assert judged(invoke(10, 0, region=B), end(20, 0, region=B), read(30, 40)) == []
    assert judged(invoke(10, 0), end(LATE_NS + 1, 0), read(LATE_NS + 2, LATE_NS + 3)) == []


def test_a_delta_that_counts_twice_is_wrong() -> None:
    found = judged(*ADDED, read(30, 40, 0, 1, more=4))
    assert "counter-0: a strong read in eu-west-1 of 9 counts a delta twice" in found[0]


def test_a_delta_that_nobody_asked_for_yet_is_wrong() -> None:
    found = judged(*ADDED, read(30, 40, 0, 1, 2), invoke(50, 2))
    assert "counts [2], which nobody has asked for" in found[0]


def test_a_delta_whose_adds_all_failed_counts_nowhere() -> None:
    refused = (invoke(10, 0), end(20, 0, how="fail"))
    assert judged(*refused, read(30, 40)) == []
    assert "counts [0], which nobody has asked for" in judged(*refused, read(30, 40, 0))[0]
    assert at_the_end({A: [], B: []}, *refused) == []
    assert "counts [0], which nobody asked for" in at_the_end({A: [0], B: [0]}, *refused)[0]


def test_a_delta_whose_writer_was_killed_may_count_or_not() -> None:
    killed = invoke(10, 0)
    assert judged(killed, read(30, 40, 0), read(41, 42)) == []
    assert at_the_end({A: [0], B: [0]}, killed) == at_the_end({A: [], B: []}, killed) == []


def test_a_count_that_is_not_that_of_the_sum_is_wrong() -> None:
    line = read(30, 40, 0, 1)
    line["value"][0][2] = 1
    assert "says it counts 1 deltas" in judged(*ADDED, line)[0]


def test_an_answer_that_nothing_can_cause_is_a_violation() -> None:
    broken = {"process": "w", "type": "broken", "f": "add", "time": 1, "value": [], "error": "TokenConflict: no"}
    assert judged(broken) == ["w, add []: TokenConflict: no"]


def test_at_the_end_each_acknowledged_delta_counts_in_both_regions() -> None:
    assert at_the_end({A: [0, 1], B: [0, 1]}, *ADDED) == []
    assert at_the_end({A: [0, 1], B: [0]}, *ADDED) == [
        "counter-0: at the end us-east-1 lacks [1], which were acknowledged",
        "counter-0: at the end the Regions differ: {'eu-west-1': 5, 'us-east-1': 1}",
    ]


def test_deltas_of_the_other_region_are_no_part_of_a_regions_bounds() -> None:
    assert judged(invoke(10, 0, 3), end(20, 0, 3), read(30, 40, 0, 3)) == []
