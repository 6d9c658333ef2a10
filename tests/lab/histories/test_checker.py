"""The checker finds each thing that can be wrong with a history, and nothing in a right one."""

import pytest

from lab.histories.checker import (
    Asked,
    Record,
    Seen,
    check_continuity,
    check_end,
    check_on_time,
    check_read,
    check_reads,
    deltas_in,
)
from ledger.values import Delta, Lane

EU, US = "eu-west-1", "us-east-1"
ASKED = [Asked(n, Delta(Lane(EU, 0, "c"), f"01HF7YAN3RJB2F2YPGB2KP8ZJ{n}", 4**n), acknowledged=True) for n in range(3)]


def seen(value: int, count: int, must: frozenset[int] = frozenset(), asked: int = 3, region: str = EU) -> Seen:
    return Seen(region, True, value, count, asked, must)


def test_a_value_names_its_deltas() -> None:
    assert deltas_in(0) == frozenset()
    assert deltas_in(1 + 16) == frozenset({0, 2})
    assert deltas_in(2) is deltas_in(-1) is None


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (seen(2, 2), "twice"),
        (seen(5, 1), "says it counts 1"),
        (seen(64, 1), "nobody has asked for"),
        (seen(16, 1, asked=2), "nobody has asked for"),
        (seen(1, 1, must=frozenset({0, 1})), r"lacks \[1\]"),
    ],
)
def test_what_is_wrong_with_a_read_is_said(read: Seen, says: str) -> None:
    wrong = check_read(read, ASKED)
    assert wrong is not None
    assert says.replace("\\", "") in wrong


def test_a_right_read_is_right() -> None:
    assert check_read(seen(21, 3, must=frozenset({0})), ASKED) is None


def test_an_error_that_nothing_can_cause_is_wrong() -> None:
    assert list(check_reads(Record(broken=["a damaged lane"]))) == ["a damaged lane"]


def test_a_delta_that_goes_away_is_found_unless_it_was_a_stray_or_elsewhere() -> None:
    record = Record(seen=[seen(5, 2), seen(1, 1), seen(1, 1, region=US)])
    assert len(list(check_continuity(record, ()))) == 1
    assert list(check_continuity(record, {1})) == []


def test_a_delta_that_came_on_time_and_was_a_stray_is_wrong() -> None:
    late, on_time = Asked(1, ASKED[1].delta), Asked(2, ASKED[2].delta, on_time=True)
    assert list(check_on_time(Record(asked=[late, on_time]), {1})) == []
    assert list(check_on_time(Record(asked=[late, on_time]), {1, 2})) == [
        "eu-west-1 acknowledged 2 on time, yet it was a stray"
    ]


@pytest.mark.parametrize(
    ("values", "histories", "says"),
    [
        ({EU: 2, US: 2}, {EU: [], US: []}, "twice"),
        ({EU: 5, US: 5}, {EU: [1, 4], US: [1, 4]}, "lacks [2]"),
        ({EU: 85, US: 85}, {EU: [1, 4, 16, 64], US: [1, 4, 16, 64]}, "nobody asked for"),
        ({EU: 21, US: 21}, {EU: [1, 4, 16], US: [1, 4]}, "history"),
        ({EU: 21, US: 5}, {EU: [1, 4, 16], US: [1, 4]}, "differ"),
    ],
)
def test_what_is_wrong_at_the_end_is_said(values: dict[str, int], histories: dict[str, list[int]], says: str) -> None:
    assert any(says in wrong for wrong in check_end(Record(asked=ASKED), values, histories))


def test_a_right_end_is_right() -> None:
    every = {EU: [1, 4, 16], US: [16, 4, 1]}
    assert list(check_end(Record(asked=ASKED), {EU: 21, US: 21}, every)) == []
