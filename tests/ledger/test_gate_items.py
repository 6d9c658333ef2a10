"""How a gate and what it files stand in the table, and what of it is damage."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import tokens
from ledger.errors import DamagedItem, InvalidSettings
from ledger.gate import items
from ledger.gate.gate import EXPIRED, LOWEST, REFUSED, SLICE_MS, Gate, distance, end_ms, fingerprint
from ledger.gate.items import Filed
from ledger.limit import DOWN, UP, Limit
from ledger.ranges import CHANGE_MAX, COUNT_MAX, VERSION_MAX
from ledger.requests import Item, Key
from ledger.tokens import HOLD, HOLD_MS_MAX, hold_token, until_ms
from ledger.values import Lane

LANE = Lane("eu-west-1", 0, "stock:85123A")
LIMIT = Limit(floor=-5, ceiling=9, region="eu-west-1")
NOW_MS = 1_700_000_000_000
OLD, YOUNG = (tokens.keyed("c", key, NOW_MS + n) for n, key in enumerate("ab"))
GATE = Gate(
    LANE,
    rights={DOWN: 3, UP: 4},
    recent={OLD: -2, YOUNG: REFUSED},
    held={hold_token("c", "h", NOW_MS, 1_000): -3},
    total=7,
    count=2,
    version=3,
    low=LOWEST,
    top=OLD,
    moved=frozenset({fingerprint(OLD)}),
    slack_ms=300,
    given={("us-east-1#0", UP): 5},
    got={("us-east-1#0", DOWN): 6},
    epoch=1,
    bounds={DOWN: -5, UP: 9},
)
ITEM: Item = {
    "pk": {"S": f"gate#{LANE}"},
    "sk": {"S": "gate"},
    "down": {"N": "3"},
    "up": {"N": "4"},
    "recent": {"M": {OLD: {"N": "-2"}, YOUNG: {"N": str(REFUSED)}}},
    "held": {"M": {next(iter(GATE.held)): {"N": "-3"}}},
    "total": {"N": "7"},
    "count": {"N": "2"},
    "version": {"N": "3"},
    "low": {"S": LOWEST},
    "top": {"S": OLD},
    "moved": {"BS": [fingerprint(OLD)]},
    "slack": {"N": "300"},
    "given:us-east-1#0:up": {"N": "5"},
    "got:us-east-1#0:down": {"N": "6"},
    "epoch": {"N": "1"},
    "floor": {"N": "-5"},
    "ceiling": {"N": "9"},
}
FILED = Filed(LANE, YOUNG, 4, LOWEST, {OLD: -2, YOUNG: EXPIRED})


def test_a_gate_is_what_its_item_says() -> None:
    assert items.gate_of(LANE, {**ITEM, "later": {"S": "ignored"}}) == GATE
    assert (GATE.value, GATE.number) == (5, 3)
    assert (GATE.own(DOWN), GATE.own(UP)) == (3 - 6, 4 + 5)


@pytest.mark.parametrize(
    "changed",
    [
        {"version": VERSION_MAX, "count": COUNT_MAX, "slack_ms": 0, "moved": frozenset()},
        {"version": 0, "count": 0, "slack_ms": None, "held": {LOWEST: CHANGE_MAX}, "recent": {}},
        {"epoch": 0, "bounds": {DOWN: None, UP: None}, "held": {OLD: -CHANGE_MAX, YOUNG: 1}, "recent": {}},
        {"given": {("a#0", UP): 0, ("a#0", DOWN): 1}, "got": {("b#12", UP): 0}, "rights": {UP: -4}},
    ],
)
def test_a_gate_is_kept_as_it_is_to_the_ends_of_what_each_part_of_it_may_be(changed: dict[str, Any]) -> None:
    gate = replace(GATE, **changed)
    assert items.gate_of(LANE, items.gate_item(gate)) == gate


def test_the_key_of_a_gate_alone_names_a_lane() -> None:
    assert items.lane_of(items.gate_key(LANE)) == LANE
    for key in (
        items.late_key(LANE, OLD),
        Key(f"gate#{LANE}", "x"),
        Key("gate#x", "gate"),
        Key(f"fold#{LANE}", "gate"),
    ):
        assert items.lane_of(key) is None


def test_a_new_gate_has_the_first_rights_where_its_limit_opens_and_none_elsewhere() -> None:
    here = items.gate_of(LANE, items.new_gate(LANE, LIMIT))
    assert (here.rights, here.bounds, here.value) == ({DOWN: 5, UP: 9}, {DOWN: -5, UP: 9}, 0)
    there = replace(LANE, region="us-east-1")
    numbers = {name: {"N": "0"} for name in ("down", "up", "total", "count", "version")}
    texts = {"pk": {"S": f"gate#{there}"}, "sk": {"S": "gate"}, "low": {"S": LOWEST}, "top": {"S": LOWEST}}
    assert items.new_gate(there, LIMIT) == {**numbers, **texts, "recent": {"M": {}}, "held": {"M": {}}}
    floor = items.gate_of(LANE, items.new_gate(LANE, Limit(floor=0)))
    assert (floor.rights, floor.bounds) == ({DOWN: 0}, {DOWN: None, UP: None})


@pytest.mark.parametrize(
    "changed",
    [
        {"pk": {"S": f"gate#{LANE}x"}},
        {"recent": {"S": "x"}},
        {"recent": None},
        {"recent": {"M": {"x": {"N": "1"}}}},
        {"recent": {"M": {OLD: {"N": str(10**18 + 1)}}}},
        {"held": {"M": {OLD: {"N": "-3"}}}},  # decided, too
        {"held": {"M": {LOWEST: {"N": "0"}}}},
        {"down": {"N": "1.5"}},
        {"version": {"N": "-1"}},
        {"version": {"N": str(VERSION_MAX + 1)}},
        {"count": {"N": "-1"}},
        {"count": {"N": str(COUNT_MAX + 1)}},
        {"slack": {"N": "-1"}},
        {"low": {"S": "x"}},
        {"top": {"S": "x"}},
        {"held": {"M": {"x": {"N": "-3"}}}},
        {"held": {"M": {LOWEST: {"N": str(CHANGE_MAX + 1)}}}},
        {"sk": {"S": "gates"}},
        {"moved": {"BS": [fingerprint(OLD), b"x"]}},
        {"got:us-east-1#0:down": {"N": "-6"}},
        {"moved": {"SS": ["x"]}},
        {"moved": {"BS": [b"x"]}},
        {"given:us-east-1#0:up": {"N": "-5"}},
        {"total": None},
    ],
)
def test_a_gate_that_is_not_one_is_damaged_and_never_guessed_at(changed: dict[str, Any]) -> None:
    damaged = {name: value for name, value in {**ITEM, **changed}.items() if value is not None}
    with pytest.raises(DamagedItem, match="gate"):
        items.gate_of(LANE, damaged)


def test_a_segment_is_named_by_its_content() -> None:
    item = items.filed_item(FILED)
    assert items.filed_of(LANE, item) == FILED
    assert item["sk"]["S"] == f"segment#{YOUNG}#0000000004#{FILED.digest}"
    for other in (replace(FILED, low=OLD), replace(FILED, outcomes={OLD: -2, YOUNG: REFUSED})):
        assert items.filed_item(other)["sk"] != item["sk"]
        with pytest.raises(DamagedItem):
            items.filed_of(LANE, {**items.filed_item(other), "sk": item["sk"]})
    for broken in (
        {"entries": {"B": bytes(item["entries"]["B"])[:-1]}},
        {"entries": {"B": b""}},
        {"low": {"S": "x"}},
        {"sk": {"S": f"segment#{OLD}#0000000004#{FILED.digest}"}},
        {"sk": {"S": "segment"}},
        {"entries": {"B": bytes(item["entries"]["B"]) + bytes(item["entries"]["B"])[-24:]}},
    ):
        with pytest.raises(DamagedItem):
            items.filed_of(LANE, {**item, **broken})


def test_a_late_entry_and_a_note_come_back_and_their_keys_are_their_content() -> None:
    late = items.late_item(LANE, OLD, -2, 4)
    assert items.late_of(LANE, late) == (OLD, -2, 4)
    hold = hold_token("c", "h", NOW_MS, 1_000)
    note = items.hold_item(LANE, hold, -3)
    assert items.hold_of(LANE, note) == (hold, -3)
    assert note["sk"]["S"] == f"{NOW_MS + 1_000:015d}#{hold}" < items.holds_until(NOW_MS + 1_000)
    assert note["sk"]["S"] > items.holds_until(NOW_MS + 999)
    for item, of in ((late, items.late_of), (note, items.hold_of)):
        with pytest.raises(DamagedItem):
            of(LANE, {**item, "sk": {"S": "late#x"}})
    with pytest.raises(DamagedItem):
        items.hold_of(LANE, {**note, "sk": {"S": f"{NOW_MS:015d}#{hold}"}})


@given(st.integers(1, HOLD_MS_MAX))
def test_the_token_of_a_hold_says_how_long_it_holds_a_thousandth_more_at_most(length_ms: int) -> None:
    token = hold_token("c", "k", NOW_MS, length_ms)
    held_ms = until_ms(token) - NOW_MS
    assert length_ms <= held_ms <= length_ms + length_ms / 1_000
    assert hold_token("c", "k", NOW_MS, held_ms) == token
    assert tokens.to_bytes(token)[:14] == tokens.to_bytes(tokens.keyed("c", "k", NOW_MS, HOLD))[:14]


@given(st.integers(0, 3_600_000), st.integers(NOW_MS, NOW_MS + 10**8))
def test_the_fingerprint_of_what_is_above_low_says_its_time_to_a_slice(above_ms: int, low_ms: int) -> None:
    low, mark = tokens.keyed("c", "low", low_ms), fingerprint(tokens.keyed("c", "k", low_ms + above_ms))
    assert 0 <= end_ms(low, distance(mark, low)) - (low_ms + above_ms) < SLICE_MS


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"floor": 1},
        {"ceiling": -1, "region": "eu-west-1"},
        {"floor": 0.5},
        {"floor": True},
        {"floor": -(10**18) - 1, "region": "eu-west-1"},
        {"floor": -1},
        {"ceiling": 1},
    ],
)
def test_a_limit_that_is_none_or_whose_first_rights_are_nowhere_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        Limit(**given)
