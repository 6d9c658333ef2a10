"""The checker finds each thing that can be wrong with a history, and nothing in a right one."""

from lab.histories.judges.checker import (
    Asked,
    Charted,
    Record,
    Seen,
    check_chart,
    check_continuity,
    check_end,
    check_on_time,
    check_read,
    check_reads,
    deltas_in,
)
from ledger.core import tokens
from ledger.core.values import Delta, Lane

EU, US = "eu-west-1", "us-east-1"
ASKED = [
    Asked(n, Delta(Lane(EU, 0, "c"), f"01HF7YAN3RJB2F2YPGB2KP8ZJ{n}", 4**n), acknowledged=True)
    for n in range(3)
]


def seen(
    value: int, count: int, must: frozenset[int] = frozenset(), asked: int = 3, region: str = EU
) -> Seen:
    return Seen(region, True, value, count, asked, must)


def test_a_value_names_its_deltas() -> None:
    assert deltas_in(0) == frozenset()
    assert deltas_in(1 + 16) == frozenset({0, 2})
    assert deltas_in(2) is deltas_in(-1) is None


def test_a_wrong_read_is_found_and_a_right_one_is_right() -> None:
    for read, says in (
        (seen(2, 2), "twice"),
        (seen(5, 1), "says it counts 1"),
        (seen(64, 1), "nobody has asked for"),
        (seen(16, 1, asked=2), "nobody has asked for"),
        (seen(1, 1, must=frozenset({0, 1})), "lacks [1]"),
    ):
        assert says in (check_read(read, ASKED) or ""), says
    assert check_read(seen(21, 3, must=frozenset({0})), ASKED) is None


def test_a_bar_is_the_sum_of_so_many_changes_of_its_time() -> None:
    at_ms = tokens.time_ms(ASKED[0].delta.token)
    for borders, numbers, totals, says in (
        ((at_ms, at_ms + 1), (0, 3, 0), (0, 21, 0), None),
        ((at_ms, at_ms + 1), (0, 2, 0), (0, 21, 0), "no sum of so many"),
        ((at_ms, at_ms + 1), (0, 1, 0), (0, 2, 0), "no sum of so many"),
        ((at_ms, at_ms + 1), (1, 2, 0), (1, 20, 0), "[0] are of another time"),
        ((at_ms + 1, at_ms + 2), (0, 3, 0), (0, 21, 0), "[0, 1, 2] are of another time"),
    ):
        wrong = [*check_chart(Charted(EU, borders, numbers, totals), ASKED)]
        assert (says in wrong[0]) if says else not wrong
    seen_wrong = Record(asked=ASKED, charts=[Charted(EU, (at_ms,), (3, 0), (21, 0))])
    assert len(list(check_reads(seen_wrong))) == 1


def test_an_error_that_nothing_can_cause_is_wrong() -> None:
    assert list(check_reads(Record(broken=["a damaged lane"]))) == ["a damaged lane"]


def test_a_delta_that_goes_away_is_found_unless_it_was_a_stray() -> None:
    record = Record(seen=[seen(5, 2), seen(1, 1), seen(1, 1, region=US)])
    assert len(list(check_continuity(record, ()))) == 1
    assert list(check_continuity(record, {1})) == []
    record.seen[1].after = 0  # it began before the one that held more was over
    assert list(check_continuity(record, ())) == []


def test_a_delta_that_came_on_time_and_was_a_stray_is_wrong() -> None:
    late, on_time = Asked(1, ASKED[1].delta), Asked(2, ASKED[2].delta, on_time=True)
    assert list(check_on_time(Record(asked=[late, on_time]), {1})) == []
    assert list(check_on_time(Record(asked=[late, on_time]), {1, 2})) == [
        "eu-west-1 acknowledged 2 on time, yet it was a stray"
    ]


def test_a_wrong_end_is_found_and_a_right_one_is_right() -> None:
    every = [1, 4, 16]
    for here, there, listed_here, listed_there, says in (
        (2, 2, [], [], "twice"),
        (5, 5, [1, 4], [1, 4], "lacks [2]"),
        (85, 85, [*every, 64], [*every, 64], "nobody asked for"),
        (21, 21, every, [1, 4], "history"),
        (21, 5, every, [1, 4], "differ"),
    ):
        wrong = check_end(
            Record(asked=ASKED), {EU: here, US: there}, {EU: listed_here, US: listed_there}
        )
        assert any(says in each for each in wrong), says
    assert (
        list(check_end(Record(asked=ASKED), {EU: 21, US: 21}, {EU: every, US: every[::-1]})) == []
    )
