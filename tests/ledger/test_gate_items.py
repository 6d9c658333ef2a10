"""What a gate, a segment, a note and an Update say, as values and in the table, and what of it is damage."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.histories.filing import Filing, file_as
from ledger import tokens
from ledger.errors import DamagedItem, InvalidSettings
from ledger.gate import items, past
from ledger.gate.gate import (
    EXPIRED,
    LOWEST,
    REFUSED,
    RELEASED,
    SLICE_MS,
    Gate,
    change_of,
    counts,
    distance,
    end_ms,
    fingerprint,
    shares,
)
from ledger.gate.items import Filed
from ledger.limit import DOWN, UP, Limit
from ledger.ranges import CHANGE_MAX, COUNT_MAX, VERSION_MAX
from ledger.requests import Item, Key
from ledger.tokens import hold_token
from ledger.values import Lane

LANE = Lane("eu-west-1", 0, "stock:85123A")
LIMIT, FLOOR = Limit(floor=-5, ceiling=9, region="eu-west-1"), Limit(floor=0)
NOW_MS = 1_700_000_000_000
OLD, YOUNG = (tokens.keyed("c", key, NOW_MS + n) for n, key in enumerate("ab"))
HELD = hold_token("c", "h", NOW_MS, 1_000)
CELL = "us-east-1#0"
GATE = Gate(
    LANE,
    rights={DOWN: 3, UP: 4},
    recent={OLD: -2, YOUNG: REFUSED},
    held={HELD: -3},
    total=7,
    count=2,
    version=3,
    low=LOWEST,
    top=OLD,
    moved=frozenset({fingerprint(OLD)}),
    slack_ms=300,
    given={(CELL, UP): 5},
    got={(CELL, DOWN): 6},
    epoch=1,
    bounds={DOWN: -5, UP: 9},
)
NUMBERS = {"down": 3, "up": 4, "total": 7, "count": 2, "version": 3}
RARE = {"slack": 300, "epoch": 1, "floor": -5, "ceiling": 9, f"given:{CELL}:up": 5, f"got:{CELL}:down": 6}
ITEM: Item = {
    "pk": {"S": f"gate#{LANE}"},
    "sk": {"S": "gate"},
    "recent": {"M": {OLD: {"N": "-2"}, YOUNG: {"N": str(REFUSED)}}},
    "held": {"M": {HELD: {"N": "-3"}}},
    "low": {"S": LOWEST},
    "top": {"S": OLD},
    "moved": {"BS": [fingerprint(OLD)]},
    **{name: {"N": str(value)} for name, value in (NUMBERS | RARE).items()},
}
FILED = Filed(LANE, YOUNG, 4, LOWEST, {OLD: -2, YOUNG: EXPIRED})


def some(number: int) -> dict[str, int]:
    return {tokens.make(n, bytes(10)): 1 for n in range(number)}


def test_a_gate_is_what_its_item_says_to_the_ends_of_what_each_part_of_it_may_be() -> None:
    assert items.gate_of(LANE, {**ITEM, "later": {"S": "ignored"}}) == GATE
    assert items.gate_item(GATE) == ITEM
    assert (GATE.value, GATE.number, GATE.own(DOWN), GATE.own(UP)) == (5, 3, 3 - 6, 4 + 5)
    assert replace(GATE, rights={DOWN: 3}, given={}, got={}).own(UP) == 0
    for changed in (
        {"version": VERSION_MAX, "count": COUNT_MAX, "slack_ms": 0, "moved": frozenset()},
        {"version": 0, "count": 0, "slack_ms": None, "held": {LOWEST: CHANGE_MAX}, "recent": {}},
        {"epoch": 0, "bounds": {DOWN: None, UP: None}, "held": {OLD: -CHANGE_MAX, YOUNG: 1}, "recent": {}},
        {"given": {("a#0", UP): 0, ("a#0", DOWN): 1}, "got": {("b#12", UP): 0}, "rights": {UP: -4}},
        {"bounds": {DOWN: -CHANGE_MAX, UP: CHANGE_MAX}},
    ):
        gate = replace(GATE, **changed)
        assert items.gate_of(LANE, items.gate_item(gate)) == gate


def test_a_gate_that_is_not_one_is_damaged_and_never_guessed_at() -> None:
    numbers = {"down": 1.5, "floor": 10, f"got:{CELL}:down": -6, f"given:{CELL}:up": -5, "ceiling": CHANGE_MAX + 1}
    above = ("version", VERSION_MAX + 1), ("count", COUNT_MAX + 1)
    below = ((name, -1) for name in ("version", "count", "slack", "epoch"))
    broken: list[dict[str, Any]] = [{name: {"N": str(n)}} for name, n in (*numbers.items(), *above, *below)]
    broken += [{"recent": {"M": {token: {"N": str(n)}}}} for token, n in (("x", 1), (OLD, CHANGE_MAX + 1))]
    holds = (OLD, -3), (LOWEST, 0), ("x", -3), (LOWEST, CHANGE_MAX + 1)
    broken += [{"held": {"M": {token: {"N": str(n)}}}} for token, n in holds]
    broken += [{name: {"S": "x"}} for name in ("recent", "low", "top", "sk")]
    broken += [{"pk": {"S": f"gate#{LANE}x"}}, {"recent": None}, {"total": None}, {"moved": {"SS": ["x"]}}]
    broken += [{"moved": {"BS": [fingerprint(OLD), b"x"]}}]
    for changed in broken:
        damaged = {name: value for name, value in {**ITEM, **changed}.items() if value is not None}
        with pytest.raises(DamagedItem, match="gate"):
            items.gate_of(LANE, damaged)


def test_a_new_gate_has_the_first_rights_where_its_limit_opens_and_none_elsewhere() -> None:
    here = items.gate_of(LANE, items.new_gate(LANE, LIMIT))
    assert (here.rights, here.bounds, here.value) == ({DOWN: 5, UP: 9}, {DOWN: -5, UP: 9}, 0)
    for there in (replace(LANE, region="us-east-1"), replace(LANE, shard=1)):
        numbers = {name: {"N": "0"} for name in ("down", "up", "total", "count", "version")}
        texts = {"pk": {"S": f"gate#{there}"}, "sk": {"S": "gate"}, "low": {"S": LOWEST}, "top": {"S": LOWEST}}
        assert items.new_gate(there, LIMIT) == {**numbers, **texts, "recent": {"M": {}}, "held": {"M": {}}}
    floor = items.gate_of(LANE, items.new_gate(LANE, FLOOR))
    assert (floor.rights, floor.bounds) == ({DOWN: 0}, {DOWN: None, UP: None})


def test_the_key_of_a_gate_alone_names_a_lane() -> None:
    assert items.lane_of(items.gate_key(LANE)) == LANE
    others = Key(f"gate#{LANE}", "x"), Key("gate#x", "gate"), Key(f"fold#{LANE}", "gate"), items.late_key(LANE, OLD)
    assert [items.lane_of(key) for key in others] == [None] * 4


def test_a_segment_is_named_by_its_content_and_one_that_is_none_is_not_made() -> None:
    item = items.filed_item(FILED)
    assert items.filed_of(LANE, item) == FILED
    assert item["sk"]["S"] == f"segment#{YOUNG}#0000000004#{FILED.digest}"
    entries = bytes(item["entries"]["B"])
    broken: list[Item] = [{"entries": {"B": data}} for data in (entries[:-1], b"", entries + entries[-24:])]
    broken += [{"sk": {"S": sk}} for sk in (f"segment#{OLD}#0000000004#{FILED.digest}", "segment")]
    for other in (replace(FILED, low=OLD), replace(FILED, outcomes={OLD: -2, YOUNG: REFUSED})):
        assert items.filed_item(other)["sk"] != item["sk"]
        broken.append({**items.filed_item(other), "sk": item["sk"]})
    for changed in (*broken, {"low": {"S": "x"}}):
        with pytest.raises(DamagedItem):
            items.filed_of(LANE, {**item, **changed})
    outcomes: list[dict[str, int]] = [{}, {YOUNG: 1, OLD: 2}, {"x": 1}, {OLD: REFUSED - 1}, {OLD: 10**18 + 1}]
    wrong: list[dict[str, Any]] = [{"outcomes": each} for each in outcomes]
    wrong += [{"hi": OLD}, {"hi": f"{YOUNG}x"}, {"low": "x"}, {"version": 0}, {"version": VERSION_MAX + 1}]
    for changed in wrong:
        with pytest.raises(ValueError, match=r"segment|version|outcome"):
            replace(FILED, **changed)
    assert [replace(FILED, version=version).digest for version in (1, VERSION_MAX)] == [FILED.digest] * 2


def test_a_late_entry_and_a_note_come_back_and_their_keys_are_their_content() -> None:
    late, note = items.late_item(LANE, OLD, -2, 4), items.hold_item(LANE, HELD, -3)
    assert (items.late_of(LANE, late), items.hold_of(LANE, note)) == ((OLD, -2, 4), (HELD, -3))
    assert note["sk"]["S"] == f"{NOW_MS + 1_000:015d}#{HELD}" < items.holds_until(NOW_MS + 1_000)
    assert note["sk"]["S"] > items.holds_until(NOW_MS + 999)
    for item, of, sk in (
        (late, items.late_of, "late#x"),
        (note, items.hold_of, "late#x"),
        (note, items.hold_of, f"{NOW_MS:015d}#{HELD}"),
    ):
        with pytest.raises(DamagedItem):
            of(LANE, {**item, "sk": {"S": sk}})
    assert [GATE.over(NOW_MS + ms) for ms in (999, 1_000)] == [{}, {HELD: -3}]


@given(st.integers(0, 3_600_000), st.integers(NOW_MS, NOW_MS + 10**8))
def test_the_fingerprint_of_what_is_above_low_says_its_time_to_a_slice(above_ms: int, low_ms: int) -> None:
    low, mark = tokens.keyed("c", "low", low_ms), fingerprint(tokens.keyed("c", "k", low_ms + above_ms))
    assert 0 <= end_ms(low, distance(mark, low)) - (low_ms + above_ms) < SLICE_MS


def test_a_fingerprint_is_of_slices_of_a_time_that_comes_round_and_of_random_bits() -> None:
    """Of every process the same: what one keeps of a token another looks for."""
    mark = fingerprint(tokens.make((5 * 65_536 + 258) * 128 + 127, bytes(range(3, 13))))
    assert mark == b"\x01\x02\x03\x04"
    for slices in (0, 1, 32_767, 32_768, 65_535):
        assert distance(mark, tokens.make((5 * 65_536 + 258 - slices) * 128, bytes(10))) == slices


def test_what_counts_what_is_set_aside_and_what_another_limit_takes() -> None:
    for change in (CHANGE_MAX, -CHANGE_MAX, 0):
        assert (change_of(change), counts(change)) == (change, True)
    for outcome in (REFUSED, RELEASED, EXPIRED):
        assert (change_of(outcome), counts(outcome)) == (0, False)
    assert (shares([3, -5, 4, -6, 0]), shares([])) == ((11, 7), (0, 0))
    for bounds, wanted, taken in (((-5, 9), (0, 12), (5, -3)), ((0, 0), (-2, 7), (-2, -7)), ((-5, 9), (-5, 0), (0, 9))):
        gate = replace(GATE, bounds=dict(zip((DOWN, UP), bounds, strict=True)))
        assert tuple(gate.taken_by(dict(zip((DOWN, UP), wanted, strict=True))).values()) == taken


def test_a_gate_is_full_by_what_it_decided_holds_and_keeps_of_what_was_filed() -> None:
    for recent, held, moved, size, full in (
        (15, 0, 0, 1, 15 / 16),
        (16, 0, 0, 1, 1),
        (8, 16, 0, 1, 1),
        (20, 0, 320, 1, 1),
        (20, 0, 0, 11, 1 / 2),
        (20, 0, 0, 5, 20 / 16),
        (0, 0, 0, 1, 0),
    ):
        marks = frozenset(number.to_bytes(4, "big") for number in range(moved))
        holds = {tokens.make(1_000 + n, bytes(10)): 1 for n in range(held)}
        assert past.fullness(replace(GATE, recent=some(recent), held=holds, moved=marks), size) == full


def test_slack_moves_by_a_quarter_towards_the_lateness_of_what_is_looked_up() -> None:
    file_as(Filing(slack_ms=100))
    for late_ms, slack_ms, becomes in (
        (1_100, 300, 500),
        (1_100, None, 350),
        (0, 300, 225),
        (-50, 0, 0),  # above what was filed, and looked up nevertheless
        (past.LATE_MS_MAX, 0, past.LATE_MS_MAX // 4),
        (past.LATE_MS_MAX + 1, 0, None),
    ):
        token, next_one = (tokens.make(NOW_MS - late_ms + n, bytes(10)) for n in (0, 1))
        gate = replace(GATE, low=token, top=tokens.make(NOW_MS, bytes(10)), slack_ms=slack_ms)
        assert (past.slack_after(gate, token), past.slack_after(gate, next_one)) == (becomes, None)


def test_a_limit_that_is_none_or_whose_first_rights_are_nowhere_is_refused() -> None:
    far = {"region": "eu-west-1"}
    wrong: list[dict[str, Any]] = [{"floor": 1}, {"floor": 0.5}, {"floor": True}, {"floor": -1}, {"ceiling": 1}, {}]
    wrong += [{"floor": -(10**18) - 1, **far}, {"ceiling": -1, **far}, {"floor": 0, "region": "Mars!"}]
    for arguments in wrong:
        with pytest.raises(InvalidSettings):
            Limit(**arguments)
    assert Limit(floor=-(10**18), ceiling=10**18, **far).opening(DOWN) == 10**18
