"""What one change asks of its gate, when it is filed, and what a process remembers to be sold out."""

from collections.abc import Collection
from dataclasses import replace
from itertools import count

import pytest

from lab.histories.filing import Filing
from ledger.errors import DamagedItem
from ledger.gate import gates as gates_module
from ledger.gate import items, updates
from ledger.gate.bounds import set_limit
from ledger.gate.decide import Decision, add_group, decide_change, decide_hold, end
from ledger.gate.gate import REFUSED, RELEASED
from ledger.gate.gates import Gates, SoldOut
from ledger.gate.items import Filed
from ledger.gate.past import Known, look_up, outcomes_of
from ledger.gate.recount import standing
from ledger.limit import DOWN, SIDES, UP, Limit
from ledger.requests import At, Get, GetMany, Instant, Item, Pause, Put, Query, Update, run
from ledger.tokens import keyed
from ledger.values import Delta
from tests.ledger.test_gate import COUNTER, HERE, SEATS, THERE, A, B, World, counted
from tests.ledger.test_gate_roll import BASE_MS, at, seen

BOTH = Limit(floor=-10, ceiling=10, region=A)


def test_what_is_late_is_looked_up_and_asks_that_nothing_was_filed_since_and_a_change_moves_the_slack() -> None:
    for decides, amount, outcome in (
        (decide_change, 2, Known(2)),
        (decide_hold, 2, Known(held=2)),
        (decide_change, 11, Known(REFUSED)),
    ):
        world, token = World(SEATS), at(-2_500)
        gate = seen(world, slack_ms=None)
        assert world.run(decides(world.gates(A), Delta(HERE, token, amount))).known == outcome
        if decides is decide_change:
            change, slack_ms = {token: amount}, 250 + (2_000 - 250) // 4
            asked = [updates.decide(HERE, SEATS, change, *late) for late in ((), (gate.version, slack_ms))]
        else:
            asked = [updates.hold(HERE, SEATS, token, amount, version) for version in (None, gate.version)]
        if outcome == Known(REFUSED):
            asked.append(updates.refuse(HERE, SEATS, token, amount, gate.version))
        assert [each for each in world.tables[A].asked if isinstance(each, Update)] == asked
        segments = Query(items.past_pk(HERE), items.segments_from(token), items.SEGMENTS_UPTO, 4)
        assert world.tables[A].asked.count(segments) == 1


@pytest.mark.parametrize(
    ("token", "low", "known", "pages"),
    [(0, -1, None, 2), (0, 0, None, 1), (1, 0, Known(1), 1), (5, 0, Known(5), 1), (0, 1, None, 1), (6, 0, None, 1)],
)
def test_a_look_up_reads_on_until_a_segment_lists_it_or_was_filed_later(
    token: int, low: int, known: Known | None, pages: int
) -> None:
    """Five segments, of which three are a page."""
    world = World(SEATS)
    for n in range(1, 6):
        world.tables[A].answer(Put(items.filed_item(Filed(HERE, at(n), n, at(low), {at(n): n}))))
    world.tables[A].asked.clear()
    assert world.run(look_up(world.gates(A), HERE, at(token))) == known
    assert sum(isinstance(each, Query) for each in world.tables[A].asked) == pages


@pytest.mark.parametrize("page_size", [1, 2, 1_000])
def test_many_are_looked_up_at_once_and_found_as_each_alone_is(page_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is late, ahead of now and in order, filed a few at a time; and what was never asked for, between them."""
    monkeypatch.setattr("ledger.gate.past.LATE_OF_PAGE", 2)
    world = World(Limit(ceiling=10**9, region=A), Filing(enough=3, beside=0, draw=1, slack_ms=500))
    world.now_ms = BASE_MS
    asked = []
    for n in range(120):
        world.now_ms += 100
        asked.append(at(n * 100 + (0, 0, 0, -3_000, 0, 2_000, -700)[n % 7] + n % 2))
        world.run(decide_change(world.gates(A), Delta(HERE, asked[-1], n)))
    gate = world.gate()
    unknown = sorted({*asked, *(at(n * 100 + 50) for n in range(-40, 140))} - gate.recent.keys())
    world.tables[A].page_size = page_size
    each = {token: known.outcome for token in unknown if (known := world.run(look_up(world.gates(A), HERE, token)))}
    assert len(each) > 80
    for some in (unknown, unknown[::9], unknown[5:6], unknown[-3:]):
        found = world.run(outcomes_of(world.gates(A), HERE, some))
        assert found == {token: each[token] for token in some if token in each}


def test_what_much_lies_between_is_passed_over() -> None:
    world = World(SEATS)
    world.tables[A].page_size = 1_000
    for n in range(1, 400):
        low = at(n - 1)
        world.tables[A].answer(Put(items.filed_item(Filed(HERE, at(n), n, low, {at(n): n}))))
        world.tables[A].answer(Put(items.late_item(HERE, at(n), n, n)))
    world.tables[A].asked.clear()
    assert world.run(outcomes_of(world.gates(A), HERE, [at(7), at(390), at(400)])) == {at(7): 7, at(390): 390}
    assert [type(each) for each in world.tables[A].asked] == [Query] * 3


def test_who_sees_enough_begins_a_roll_when_its_token_is_drawn_and_everyone_at_twice_as_much() -> None:
    """Four are enough, or six with holds; of the tokens every second one is drawn."""
    for tokens, held, versions in (
        ((1, 3, 5, 7, 9, 11, 13, 15, 17), 0, [0, 0, 0, 0, 0, 0, 0, 1, 1]),
        ((1, 3, 5, 8, 10), 0, [0, 0, 0, 1, 1]),
        ((2, 4, 6, 7, 8), 0, [0, 0, 0, 0, 1]),
        ((2, 4, 6, 8), 3, [0, 0, 1, 1]),
    ):
        world, rolls = World(SEATS, Filing(enough=4, beside=2, draw=2)), []
        world.add(0)
        gate = world.gate()
        world.tables[A].answer(
            Put(items.gate_item(replace(gate, recent={}, held={at(-n - 1): 1 for n in range(held)})))
        )
        for ms in tokens:
            world.run(decide_change(world.gates(A), Delta(HERE, at(ms), 0)))
            rolls.append(world.gate().version)
        assert rolls == versions


def test_a_refusal_asks_every_lane_once_and_looks_nothing_up_however_slow_it_is() -> None:
    """A round takes longer than it is remembered what is sold out."""
    world, delta = World(SEATS), Delta(HERE, at(7), 11)
    world.add(0)
    world.add(0, THERE, B)
    gates, began_ms = world.gates(A), count(world.now_ms, 2_000)
    world.tables[A].asked.clear()
    told = run(decide_change(gates, delta), world.tables[A], lambda: Instant(next(began_ms), 0))
    assert told == Decision(Known(REFUSED), before=False)
    asked = world.tables[A].asked
    mine = [Update, Get, Query, GetMany, Pause, Get]
    assert [type(each) for each in asked] == [*mine, At, At, Update]
    assert Pause(7) in asked
    assert [type(each.request) for each in asked if isinstance(each, At)] == [Get, Query]


def test_who_is_short_waits_up_to_200_ms_before_another_region_is_asked_each_by_its_token() -> None:
    world = World(SEATS)
    world.add(0)
    waits = []
    for number in range(200):
        world.tables[A].asked.clear()
        world.run(decide_change(world.gates(A), Delta(HERE, keyed(COUNTER, f"waits {number}", world.now_ms), 11)))
        waits += [each.ms for each in world.tables[A].asked if isinstance(each, Pause)]
    assert len(waits) > 190
    assert 190 < max(waits) < 200
    assert 80 < sum(waits) / len(waits) < 120


def test_rights_that_came_meanwhile_are_found_though_they_are_remembered_to_be_sold_out() -> None:
    world = World(SEATS)
    world.add(0)
    gates, delta = world.gates(A), world.delta(10)
    gates.sold_out.note(COUNTER, UP, 1, Instant(world.now_ms, 0))
    world.tables[A].asked.clear()
    assert world.run(decide_change(gates, delta)) == counted(10)
    assert [type(each) for each in world.tables[A].asked] == [Update, Update]
    assert UP not in known(gates, world.now_ms)


def known(gates: Gates, now_ms: int) -> set[str]:
    return {side for side in SIDES if gates.sold_out.knows(COUNTER, side, 20, Instant(now_ms, 0))}


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ((-1,), {DOWN}),
        ((0,), {DOWN, UP}),
        ((1,), {UP}),
        ((12,), {DOWN, UP}),
        ((-3, 1), {DOWN}),
        ((-3, 3), {DOWN, UP}),
        ((3, -1), {UP}),
    ],
)
def test_what_comes_back_is_no_longer_remembered_to_be_sold_out(changes: Collection[int], left: set[str]) -> None:
    world = World(BOTH)
    world.add(0)
    gates = world.gates(A)
    for side in SIDES:
        gates.sold_out.note(COUNTER, side, 20, Instant(world.now_ms, 0))
    some = dict(zip(map(at, range(2)), changes, strict=False))
    world.run(add_group(gates, HERE, some))
    assert known(gates, world.now_ms) == left


def test_a_hold_that_ends_brings_back_both_sides() -> None:
    world = World(BOTH)
    held, gates = world.held(3), world.gates(A)
    world.run(decide_hold(gates, held))
    for side in SIDES:
        gates.sold_out.note(COUNTER, side, 20, Instant(world.now_ms, 0))
    world.run(end(gates, held, RELEASED))
    assert known(gates, world.now_ms) == set()


def test_another_limit_that_this_process_set_is_not_remembered_to_be_sold_out() -> None:
    """Also where the limit is there already: it may be this call that set it, and had no answer."""
    world = World(BOTH)
    gates = world.gates(A)
    for _ in range(2):
        for side in SIDES:
            gates.sold_out.note(COUNTER, side, 20, Instant(world.now_ms, 0))
        world.run(set_limit(gates, -12, 12))
        assert known(gates, world.now_ms) == set()


@pytest.mark.parametrize(
    ("need", "later_ms", "told"),
    [(5, 0, True), (6, 1_000, True), (4, 0, False), (5, 1_001, False), (5, -1, False)],
)
def test_as_much_or_more_is_known_to_be_sold_out_for_a_second(need: int, later_ms: int, told: bool) -> None:
    memory = SoldOut()
    memory.note(COUNTER, UP, 5, Instant(7_000, 0))
    assert memory.knows(COUNTER, UP, need, Instant(7_000 + later_ms, 0)) is told
    assert not memory.knows(COUNTER, DOWN, need, Instant(7_000, 0))
    assert not memory.knows("another", UP, need, Instant(7_000, 0))
    assert not SoldOut().knows(COUNTER, UP, need, Instant(later_ms, 0))


def test_a_process_remembers_so_many_counters_and_then_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates_module, "COUNTERS_MAX", 2)
    memory, now = SoldOut(), Instant(7_000, 0)
    for number in range(3):
        memory.note(f"{number}", UP, 1, now)
        told = [memory.knows(f"{each}", UP, 1, now) for each in range(3)]
        assert told == [(number < 2 and each <= number) or each == number == 2 for each in range(3)]


@pytest.mark.parametrize("damage", [{"top": {"N": "1"}}, {"total": {"S": "many"}}, {"ceiling": {"S": "high"}}])
def test_what_is_decided_at_a_gate_that_is_damaged_elsewhere_is_told_to_be_decided(damage: Item) -> None:
    world = World(SEATS)
    world.add(1)
    key = items.gate_key(HERE)
    world.tables[A].answer(Put({**world.tables[A].items[key], **damage}))
    assert world.add(1) == counted(1)
    deltas = {world.delta(1).token: 1 for _ in range(2)}
    assert list(world.run(add_group(world.gates(A), HERE, deltas)).values()) == [counted(1)] * 2
    with pytest.raises(DamagedItem):
        world.run(standing(world.gates(A), consistent=True))


def test_a_gate_that_is_full_is_filed_and_decides_again() -> None:
    world = World(Limit(ceiling=100_000, region=A))
    world.add(1)
    full = {keyed("", str(n), world.now_ms + n): 1 for n in range(14_150)}
    gate = replace(world.gate(), recent=full)
    world.tables[A].items[items.gate_key(HERE)] = items.gate_item(gate)
    world.now_ms += 60_000
    assert world.add(1) == counted(1)
    assert world.gate().value == 14_151
    assert len(world.gate().recent) < 14_150
