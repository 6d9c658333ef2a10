"""What a gate, a segment and a fingerprint say of themselves, without a table."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lab.histories.filing import Filing, file_as
from ledger import tokens
from ledger.gate import past
from ledger.gate.gate import EXPIRED, REFUSED, RELEASED, change_of, counts, distance, end_ms, fingerprint, shares
from ledger.gate.items import Filed
from ledger.limit import DOWN, UP
from ledger.ranges import CHANGE_MAX, VERSION_MAX
from ledger.tokens import hold_token, until_ms
from tests.ledger.test_gate_items import FILED, GATE, NOW_MS, OLD, YOUNG


def at(time_ms: int) -> str:
    return tokens.make(time_ms, bytes(10))


def some(number: int) -> dict[str, int]:
    return dict.fromkeys(map(at, range(number)), 1)


def test_a_side_that_has_no_limit_has_no_rights_that_could_be_moved() -> None:
    assert replace(GATE, rights={DOWN: 3}, given={}, got={}).own(UP) == 0


@pytest.mark.parametrize(
    ("bounds", "wanted", "taken"),
    [
        ({DOWN: -5, UP: 9}, {DOWN: 0, UP: 12}, {DOWN: 5, UP: -3}),
        ({DOWN: 0, UP: 0}, {DOWN: -2, UP: 7}, {DOWN: -2, UP: -7}),
        ({DOWN: -5, UP: 9}, {DOWN: -5, UP: 0}, {DOWN: 0, UP: 9}),
    ],
)
def test_a_tighter_limit_takes_the_difference_and_a_wider_one_gives_it(
    bounds: Mapping[str, int], wanted: Mapping[str, int], taken: Mapping[str, int]
) -> None:
    assert replace(GATE, bounds=bounds).taken_by(wanted) == taken


@pytest.mark.parametrize(
    ("recent", "held", "moved", "size", "fullness"),
    [
        (15, 0, 0, 1, 15 / 16),
        (16, 0, 0, 1, 1),
        (8, 16, 0, 1, 1),
        (20, 0, 320, 1, 1),
        (20, 0, 0, 11, 1 / 2),
        (20, 0, 0, 5, 20 / 16),
        (0, 0, 0, 1, 0),
    ],
)
def test_a_gate_is_full_by_what_it_decided_holds_and_keeps_of_what_was_filed(
    recent: int, held: int, moved: int, size: int, fullness: float
) -> None:
    marks = frozenset(number.to_bytes(4, "big") for number in range(moved))
    holds = {at(1_000 + n): 1 for n in range(held)}
    gate = replace(GATE, recent=some(recent), held=holds, moved=marks)
    assert past.fullness(gate, size) == fullness


@pytest.mark.parametrize(
    ("late_ms", "slack_ms", "becomes"),
    [
        (1_100, 300, 500),
        (1_100, None, 350),
        (0, 300, 225),
        (0, 0, 0),
        (-50, 0, 0),  # above what was filed, and looked up nevertheless
        (past.LATE_MS_MAX, 0, past.LATE_MS_MAX // 4),
        (past.LATE_MS_MAX + 1, 0, None),
    ],
)
def test_slack_moves_by_a_quarter_towards_the_lateness_of_what_is_looked_up(
    late_ms: int, slack_ms: int | None, becomes: int | None
) -> None:
    token = at(NOW_MS - late_ms)
    gate = replace(GATE, low=token, top=at(NOW_MS), slack_ms=slack_ms)
    file_as(Filing(slack_ms=100))
    assert past.slack_after(gate, token) == becomes
    assert past.slack_after(gate, at(NOW_MS - late_ms + 1)) is None


def test_a_hold_is_over_at_its_time() -> None:
    token = hold_token("c", "h", NOW_MS, 1_000)
    gate = replace(GATE, held={token: -3})
    assert [gate.over(NOW_MS + ms) for ms in (999, 1_000)] == [{}, {token: -3}]


@pytest.mark.parametrize("length_ms", [1, 2_047, 2_047 << 5, 1_024 << 9])
def test_a_hold_of_what_two_bytes_can_say_holds_exactly_so_long(length_ms: int) -> None:
    assert until_ms(hold_token("c", "h", NOW_MS, length_ms)) == NOW_MS + length_ms


def test_a_change_up_to_the_largest_counts_and_an_outcome_that_is_none_does_not() -> None:
    for change in (CHANGE_MAX, -CHANGE_MAX, 0):
        assert (change_of(change), counts(change)) == (change, True)
    for outcome in (REFUSED, RELEASED, EXPIRED):
        assert (change_of(outcome), counts(outcome)) == (0, False)


def test_what_is_set_aside_takes_of_each_side_its_own() -> None:
    assert shares([3, -5, 4, -6, 0]) == (11, 7)
    assert shares([]) == (0, 0)


def test_a_fingerprint_is_of_slices_of_a_time_that_comes_round_and_of_random_bits() -> None:
    """Of every process the same: what one keeps of a token another looks for."""
    mark = fingerprint(tokens.make((5 * 65_536 + 258) * 128 + 127, bytes(range(3, 13))))
    assert mark == b"\x01\x02\x03\x04"
    for slices in (0, 1, 32_767, 32_768, 65_535):
        assert distance(mark, at((5 * 65_536 + 258 - slices) * 128)) == slices
    assert [end_ms(at(time_ms), slices) for time_ms, slices in ((0, 0), (127, 0), (128, 0), (300, 3))] == [
        127,
        127,
        255,
        767,
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"outcomes": {}},
        {"outcomes": {YOUNG: 1, OLD: 2}},
        {"outcomes": {"x": 1}, "hi": YOUNG},
        {"outcomes": {OLD: REFUSED - 1}},
        {"outcomes": {OLD: 10**18 + 1}},
        {"hi": OLD},
        {"hi": f"{YOUNG}x"},
        {"low": "x"},
        {"version": 0},
        {"version": VERSION_MAX + 1},
    ],
)
def test_a_segment_that_is_none_is_not_made(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"segment|version|outcome"):
        replace(FILED, **changed)
    for version in (1, VERSION_MAX):
        assert replace(FILED, version=version, hi=at(NOW_MS + 9)).digest == FILED.digest
    assert Filed(FILED.lane, OLD, 1, OLD, {OLD: 1}).outcomes == {OLD: 1}
