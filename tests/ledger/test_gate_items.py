"""What a gate and its items say, what of that is damage, what a roll files, and how that is
found.
"""

from dataclasses import replace
from typing import Any

import pytest

from lab.histories.stage.filing import SHIPPED, Filing, file_as
from ledger.core import requests, tokens
from ledger.core.actions import Set
from ledger.core.errors import DamagedItem, InvalidSettings, ItemTooLarge, Throttled
from ledger.core.limit import DOWN, UP, Limit
from ledger.core.ranges import CHANGE_MAX, COUNT_MAX, VERSION_MAX
from ledger.core.requests import Item, Key, PutMany, Query, Update
from ledger.core.tokens import hold_token
from ledger.core.values import Delta, Lane
from ledger.gate import items, updates
from ledger.gate.answer import Decision
from ledger.gate.decide import add_group
from ledger.gate.filing import LATE_MS_MAX, is_full, roll, slack_after
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
    fingerprint,
    shares,
)
from ledger.gate.items import Filed
from ledger.gate.past import look_up, outcomes_of
from tests.ledger.seats import BASE_MS, COUNTER, EAGER, HERE, Gated, at
from tests.world import A, fail

LANE = Lane("eu-west-1", 0, "stock:85123A")
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
RARE = {
    "slack": 300,
    "epoch": 1,
    "floor": -5,
    "ceiling": 9,
    f"given:{CELL}:up": 5,
    f"got:{CELL}:down": 6,
}
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


def test_a_gate_comes_back_to_the_ends_of_each_part() -> None:
    assert items.gate_of(LANE, {**ITEM, "later": {"S": "ignored"}}) == GATE
    assert items.gate_item(GATE) == ITEM
    assert (GATE.value, GATE.number, GATE.own(DOWN), GATE.own(UP)) == (5, 3, 3 - 6, 4 + 5)
    assert replace(GATE, rights={DOWN: 3}, given={}, got={}).own(UP) == 0
    for changed in (
        {"version": VERSION_MAX, "count": COUNT_MAX, "slack_ms": 0, "moved": frozenset()},
        {"version": 0, "count": 0, "slack_ms": None, "held": {LOWEST: CHANGE_MAX}, "recent": {}},
        {
            "epoch": 0,
            "bounds": {DOWN: None, UP: None},
            "held": {OLD: -CHANGE_MAX, YOUNG: 1},
            "recent": {},
        },
        {"given": {("a#0", UP): 0, ("a#0", DOWN): 1}, "got": {("b#12", UP): 0}, "rights": {UP: -4}},
        {"bounds": {DOWN: -CHANGE_MAX, UP: CHANGE_MAX}},
    ):
        gate = replace(GATE, **changed)
        assert items.gate_of(LANE, items.gate_item(gate)) == gate


def test_a_gate_that_is_not_one_is_damaged_and_never_guessed_at() -> None:
    numbers = {
        "down": 1.5,
        "floor": 10,
        f"got:{CELL}:down": -6,
        f"given:{CELL}:up": -5,
        "ceiling": CHANGE_MAX + 1,
    }
    above = ("version", VERSION_MAX + 1), ("count", COUNT_MAX + 1)
    below = ((name, -1) for name in ("version", "count", "slack", "epoch"))
    broken: list[dict[str, Any]] = [
        {name: {"N": str(n)}} for name, n in (*numbers.items(), *above, *below)
    ]
    broken += [
        {"recent": {"M": {token: {"N": str(n)}}}} for token, n in (("x", 1), (OLD, CHANGE_MAX + 1))
    ]
    holds = (OLD, -3), (LOWEST, 0), ("x", -3), (LOWEST, CHANGE_MAX + 1)
    broken += [{"held": {"M": {token: {"N": str(n)}}}} for token, n in holds]
    broken += [{name: {"S": "x"}} for name in ("recent", "low", "top", "sk")]
    broken += [
        {"pk": {"S": f"gate#{LANE}x"}},
        {"recent": None},
        {"total": None},
        {"moved": {"SS": ["x"]}},
    ]
    broken += [{"moved": {"BS": [fingerprint(OLD), b"x"]}}]
    for changed in broken:
        damaged = {name: value for name, value in {**ITEM, **changed}.items() if value is not None}
        with pytest.raises(DamagedItem, match="gate"):
            items.gate_of(LANE, damaged)


def test_the_key_of_a_gate_alone_names_a_lane() -> None:
    assert items.lane_of(items.gate_key(LANE)) == LANE
    others = (
        Key(f"gate#{LANE}", "x"),
        Key("gate#x", "gate"),
        Key(f"fold#{LANE}", "gate"),
        items.late_key(LANE, OLD),
    )
    assert [items.lane_of(key) for key in others] == [None] * 4


def test_a_segment_is_named_by_its_content() -> None:
    item = items.filed_item(FILED)
    assert items.filed_of(LANE, item) == FILED
    assert item["sk"]["S"] == f"segment#{YOUNG}#0000000004#{FILED.digest}"
    entries = bytes(item["entries"]["B"])
    broken: list[Item] = [
        {"entries": {"B": data}} for data in (entries[:-1], b"", entries + entries[-24:])
    ]
    broken += [{"sk": {"S": sk}} for sk in (f"segment#{OLD}#0000000004#{FILED.digest}", "segment")]
    for other in (replace(FILED, low=OLD), replace(FILED, outcomes={OLD: -2, YOUNG: REFUSED})):
        assert items.filed_item(other)["sk"] != item["sk"]
        broken.append({**items.filed_item(other), "sk": item["sk"]})
    for changed in (*broken, {"low": {"S": "x"}}):
        with pytest.raises(DamagedItem):
            items.filed_of(LANE, {**item, **changed})
    outcomes: list[dict[str, int]] = [
        {},
        {YOUNG: 1, OLD: 2},
        {"x": 1},
        {OLD: REFUSED - 1},
        {OLD: 10**18 + 1},
    ]
    wrong: list[dict[str, Any]] = [{"outcomes": each} for each in outcomes]
    wrong += [
        {"hi": OLD},
        {"hi": f"{YOUNG}x"},
        {"low": "x"},
        {"version": 0},
        {"version": VERSION_MAX + 1},
    ]
    for changed in wrong:
        with pytest.raises(ValueError, match=r"segment|version|outcome"):
            replace(FILED, **changed)
    assert [replace(FILED, version=version).digest for version in (1, VERSION_MAX)] == [
        FILED.digest
    ] * 2


def test_a_late_entry_and_a_note_are_keyed_by_their_content() -> None:
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


def test_a_fingerprint_is_slices_of_time_and_random_bits() -> None:
    """Of every process the same: what one keeps of a token another looks for."""
    mark = fingerprint(tokens.make((5 * 65_536 + 258) * 128 + 127, bytes(range(3, 13))))
    assert mark == b"\x01\x02\x03\x04"
    for slices in (0, 1, 32_767, 32_768, 65_535):
        assert distance(mark, tokens.make((5 * 65_536 + 258 - slices) * 128, bytes(10))) == slices


def test_a_gate_says_what_counts_is_held_and_is_free() -> None:
    for change in (CHANGE_MAX, -CHANGE_MAX, 0):
        assert (change_of(change), counts(change)) == (change, True)
    for outcome in (REFUSED, RELEASED, EXPIRED):
        assert (change_of(outcome), counts(outcome)) == (0, False)
    assert (shares([3, -5, 4, -6, 0]), shares([])) == ((11, 7), (0, 0))
    for bounds, wanted, taken in (
        ((-5, 9), (0, 12), (5, -3)),
        ((0, 0), (-2, 7), (-2, -7)),
        ((-5, 9), (-5, 0), (0, 9)),
    ):
        gate = replace(GATE, bounds=dict(zip((DOWN, UP), bounds, strict=True)))
        assert tuple(gate.taken_by(dict(zip((DOWN, UP), wanted, strict=True))).values()) == taken


def test_a_gate_is_full_before_a_unit_it_need_not_begin() -> None:
    for recent, held, moved, size, full in (
        (17, 0, 0, 1, False),
        (18, 0, 0, 1, True),
        (8, 10, 0, 1, True),
        (8, 0, 100, 1, True),  # room for six in one unit, so it stays in one
        (8, 0, 200, 1, False),  # none, so there is room for another unit
        (0, 0, 0, 40, False),
        (14, 0, 0, 40, True),
        (0, 0, 0, 1, False),
    ):
        marks = frozenset(number.to_bytes(4, "big") for number in range(moved))
        holds = {tokens.make(1_000 + n, bytes(10)): 1 for n in range(held)}
        gate = replace(GATE, given={}, got={}, recent=some(recent), held=holds, moved=marks)
        assert is_full(gate, size) is full


def test_slack_moves_a_quarter_towards_the_lateness() -> None:
    file_as(Filing(slack_ms=100))
    for late_ms, slack_ms, becomes in (
        (1_100, 300, 500),
        (1_100, None, 350),
        (0, 300, 225),
        (-50, 0, 0),  # above what was filed, and looked up nevertheless
        (LATE_MS_MAX, 0, LATE_MS_MAX // 4),
        (LATE_MS_MAX + 1, 0, None),
    ):
        token, next_one = (tokens.make(NOW_MS - late_ms + n, bytes(10)) for n in (0, 1))
        gate = replace(GATE, low=token, top=tokens.make(NOW_MS, bytes(10)), slack_ms=slack_ms)
        assert (slack_after(gate, token), slack_after(gate, next_one)) == (becomes, None)


def test_a_limit_of_nothing_or_without_a_place_is_refused() -> None:
    far = {"region": "eu-west-1"}
    wrong: list[dict[str, Any]] = [
        {"floor": 1},
        {"floor": 0.5},
        {"floor": True},
        {"floor": -1},
        {"ceiling": 1},
        {},
    ]
    wrong += [
        {"floor": -(10**18) - 1, **far},
        {"ceiling": -1, **far},
        {"floor": 0, "region": "Mars!"},
    ]
    for arguments in wrong:
        with pytest.raises(InvalidSettings):
            Limit(**arguments)
    assert Limit(floor=-(10**18), ceiling=10**18, **far).opening(DOWN) == 10**18


BUSY = Throttled("This Region is busy. Nothing was written.")
NOW = 1_000_000
LATER = NOW + 3_600_000
NEARLY = LATER - 1
FIVE = 100, 300, 500, 700, 900
THREE = 300, 700, 900
AHEAD = tuple(range(NOW + 1_000, NOW + 10_000, 1_000))
FEW, MANY = range(0, 15_000, 1_000), range(0, 50_000, 1_000)
WIDE = Limit(ceiling=10**9, region=A)


def rolled(world: Gated, gate: Any) -> Any:
    return world.home.run(roll(world.gates(COUNTER), gate))


# (filing, slack, what it decided and holds; what is filed in a segment, as late entries, as notes;
# low, marks above it)
ROLLS: list[tuple[Any, ...]] = [
    ({}, 250, (0, 100, 900, 1_000), (), (0, 100, 900, 1_000), (), (), 750, (900, 1_000)),
    ({}, 12_800, (0, 20_000), (), (0, 20_000), (), (), 7_300, (20_000,)),
    ({"slack_ms": 0}, None, (0,), (), (0,), (), (), 0, (0,)),
    ({}, None, (0, 2 * NOW), (), (0,), (), (), NOW - 250, ()),
    ({}, None, (0, *AHEAD[:8]), (), (0,), (), (), NOW - 250, ()),
    ({}, None, (0, *AHEAD), (), (0,), AHEAD, (), NOW - 250, AHEAD),
    ({}, None, AHEAD, (), (), AHEAD, (), NOW - 250, AHEAD),
    ({"slack_ms": 0, "beside": 0}, 0, (NEARLY, LATER), (), (), (NEARLY,), (), NOW, (NEARLY,)),
    ({"moved_max": 2}, 250, (0, *AHEAD), (), (0,), AHEAD, (), NOW, AHEAD),
    ({}, 250, (0,), (5_000,), (0,), (), (), 4_750, ()),
    ({}, 250, (-2_000, -1_000, 0), (), (0,), (-2_000, -1_000), (), -250, (0,)),
    ({}, 250, (-2_000,), (), (), (-2_000,), (), -2_250, ()),
    ({}, 250, (), FEW, (), (), FEW[:11], 10_999, ()),
    ({}, 250, (9_000,), FEW[:8], (9_000,), (), (), -1, (9_000,)),
    ({"marks_of_holds": 0}, 250, (9_000,), FEW[:8], (9_000,), (), (), 8_750, (9_000,)),
    ({}, 250, (), MANY, (), (), MANY[:40], 39_999, ()),
    ({"holds_beside": 1_000, "holds_left": 0}, 250, (), (0, 5 * NOW), (), (), (0,), NOW - 250, ()),
    ({}, 250, range(0, 2_600, 10), (), range(0, 2_500, 10), (), (), 2_240, range(2_180, 2_500, 10)),
    ({"moved_max": 2, "slack_ms": 1_000}, 0, FIVE, (), FIVE, (), (), 511, FIVE[3:]),
    ({"moved_max": 2, "slack_ms": 300}, 0, THREE, (), THREE, (), (), 600, THREE[1:]),
]  # fmt: skip


def test_a_roll_files_what_is_near_and_keeps_what_is_above_low() -> None:
    for filing, slack_ms, recent, held, filed, late, noted, low, moved in ROLLS:
        world, kept = Gated(filing=Filing(**filing)), Filing(**filing)
        before = world.rolled(recent, held, slack_ms=slack_ms)
        assert rolled(world, before) == world.gate()
        assert world.gate() == replace(
            before,
            recent={at(ms): 1 for ms in recent if ms not in {*filed, *late}},
            held={at(ms): 1 for ms in held if ms not in noted},
            total=5 + len(filed) + len(late),
            count=4 + len(filed) + len(late),
            version=7,
            low=max(before.low, tokens.last_of(BASE_MS + low)),
            top=max([before.top, *map(at, filed)]),
            moved=frozenset(fingerprint(at(ms)) for ms in moved),
            slack_ms=max(kept.slack_ms, (slack_ms or 0) * 127 // 128),
        )
        stored = [items.late_item(HERE, at(ms), 1, 7) for ms in late]
        if filed:
            stored.append(
                items.filed_item(
                    Filed(HERE, world.gate().top, 7, before.low, {at(ms): 1 for ms in filed})
                )
            )
        stored += [items.hold_item(HERE, at(ms), 1) for ms in noted]
        assert world.asked(PutMany)[0] == PutMany(tuple(stored))


def test_a_late_token_does_not_hide_a_newer_ones_fingerprint() -> None:
    """The time of a fingerprint comes round.

    The mark of both stays while the newer one is above `low`.
    """
    newer, older, last = at(5_000), at(5_000 - 2**16 * SLICE_MS), at(6_000)
    mark = fingerprint(newer)
    assert fingerprint(older) == mark
    # a roll filed it
    before = {"recent": {older: 1, last: 1}, "held": {}, "moved": frozenset({mark}), "top": newer}
    at_once = {"recent": {newer: 1, last: 1}, "held": {older: 1}}
    for changed in (before, at_once):
        world = Gated(
            filing=Filing(holds_beside=1_000, holds_left=0, marks_of_holds=0), page_size=100
        )
        world.rolled(slack_ms=100_000)
        if changed is before:
            world.home.store([items.filed_item(Filed(HERE, newer, 6, at(-1_000), {newer: 1}))])
        after = rolled(world, world.put(**changed))
        assert not after.recent
        assert not after.held
        assert (after.low < newer, mark in after.moved) == (True, True)
        assert world.decide(Delta(HERE, newer, 1)) == Decision(1)


def test_a_roll_with_nothing_or_that_fails_changes_no_gate() -> None:
    for held in ((), range(8)):
        world = Gated()
        assert rolled(world, world.rolled((), held)) is None
        assert not world.home.kinds
    world = Gated()
    before = world.rolled((0,))
    assert rolled(world, replace(before, version=5)) is None
    world.home.after(PutMany, lambda *_: (BUSY,))
    with pytest.raises(Throttled):
        rolled(world, before)
    assert world.gate() == before


def test_a_failed_roll_does_not_fail_its_change() -> None:
    """Its "nothing was written" would be read as the change's, which counts."""
    world = Gated(filing=EAGER)
    world.sell(1)
    world.home.before(PutMany, fail(BUSY))
    assert (world.sell(2), world.gate().value, len(world.gate().recent)) == (2, 3, 1)


def test_a_full_gate_is_filed_by_one_who_is_drawn() -> None:
    """Four have room; of the tokens every second one is drawn. A group always looks."""
    shown, drawn = list[bool](), list[bool]()
    for held, versions in ((0, [0, 0, 0, 1, 1, 1, 1]), (3, [0, 0, 0, 1, 1, 2, 2])):
        world, rolls = (
            Gated(filing=Filing(unit_bytes=1, enough=4, draw=2, holds_beside=0)),
            list[int](),
        )
        world.sell(0)
        world.put(recent={}, held={at(-n - 1): 1 for n in range(held)})
        world.home.asked.clear()
        for byte in (1, 3, 5, 2, 7, 4, 9):
            token = tokens.make(BASE_MS + byte, bytes([byte, *range(9)]))
            world.decide(Delta(HERE, token, 0))
            rolls.append(world.gate().version)
            drawn.append(byte % 2 == 0)
        decided = [
            update for update in world.asked(Update) if update.actions[0].path[0] == updates.RECENT
        ]
        shown += [update.shows for update in decided if isinstance(update.actions[0], Set)]
        assert rolls == versions
    assert shown == drawn
    world, rolls = Gated(), []
    for n in range(0, 300, 30):
        world.home.run(
            add_group(world.gates(COUNTER), HERE, dict.fromkeys(map(at, range(n, n + 30)), 0))
        )
        rolls.append(world.gate().version)
    assert (rolls[:2], rolls[-1] > 3) == ([1, 2], True)


# -- a gate that is full


def fill(world: Gated, lane: Lane = HERE) -> None:
    """The gate of a lane has more than an item may have, and all of it can be filed."""
    decided = {tokens.keyed("", f"{lane}{n}", world.now_ms - n): 0 for n in range(100)}
    world.put(lane, recent={**world.gate(lane).recent, **decided})


def test_a_gate_filed_by_another_meanwhile_is_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was full, and is not when this call wants to file it; one that is full of what cannot
    be filed says so.
    """
    world = Gated()
    world.sell(1)
    fill(world)
    monkeypatch.setattr(requests, "ITEM_BYTES_MAX", 2_000)
    world.home.before(PutMany, lambda _: rolled(world, world.gate()), times=1)
    assert world.sell(1) == 1
    monkeypatch.setattr(requests, "ITEM_BYTES_MAX", 100)
    with pytest.raises(ItemTooLarge):
        world.sell(1)


# -- looked up


def test_a_look_up_reads_until_a_segment_settles_it() -> None:
    """Five segments, of which three are a page."""
    for token, low, known, pages in (
        (0, -1, None, 2),
        (0, 0, None, 1),
        (1, 0, Decision(1), 1),
        (5, 0, Decision(5), 1),
        (0, 1, None, 1),
        (6, 0, None, 1),
    ):
        world = Gated()
        world.home.store(
            items.filed_item(Filed(HERE, at(n), n, at(low), {at(n): n})) for n in range(1, 6)
        )
        assert world.home.run(look_up(world.gates(COUNTER), HERE, at(token))) == known
        assert len(world.asked(Query)) == pages


def test_many_are_looked_up_at_once_and_found_as_each_alone_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is late, ahead of now and in order, filed a few at a time; and what was never asked
    for, between them.
    """
    monkeypatch.setattr("ledger.gate.past.LATE_OF_PAGE", 2)
    world, times = Gated(WIDE, Filing(enough=3, beside=0, draw=1, slack_ms=500)), list[str]()
    for n in range(120):
        world.now_ms += 100
        times.append(at(n * 100 + (0, 0, 0, -3_000, 0, 2_000, -700)[n % 7] + n % 2))
        world.decide(Delta(HERE, times[-1], n))
    file_as(SHIPPED)
    unknown = sorted(
        {*times, *(at(n * 100 + 50) for n in range(-40, 140))} - world.gate().recent.keys()
    )
    gates = world.gates(COUNTER)
    alone = {
        token: known.outcome
        for token in unknown
        if (known := world.home.run(look_up(gates, HERE, token)))
    }
    assert len(alone) > 80
    for world.home.page_size in (1, 2, 1_000):
        for some in (unknown, unknown[::9], unknown[5:6], unknown[-3:]):
            found = world.home.run(outcomes_of(HERE, some))
            assert found == {token: alone[token] for token in some if token in alone}


def test_what_much_lies_between_is_passed_over() -> None:
    world = Gated(page_size=1_000)
    for n in range(1, 400):
        world.home.store([items.filed_item(Filed(HERE, at(n), n, at(n - 1), {at(n): n}))])
        world.home.store([items.late_item(HERE, at(n), n, n)])
    found = world.home.run(outcomes_of(HERE, [at(7), at(390), at(400)]))
    assert (found, world.home.kinds) == ({at(7): 7, at(390): 390}, [Query] * 3)
