"""What a rebuild makes of gates that were restored, deleted or damaged, on two tables in memory."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from lab.histories.filing import Filing
from ledger import tokens
from ledger.errors import GateLost, GaveUp, LaneDamaged, LimitMismatch
from ledger.gate import items, updates
from ledger.gate.bounds import set_limit
from ledger.gate.decide import Decision, decide_change, decide_hold, end
from ledger.gate.gate import REFUSED
from ledger.gate.items import Filed
from ledger.gate.past import Known, look_up
from ledger.gate.rebuild import Rebuilt, rebuild
from ledger.gate.recount import audit, outcomes, standing
from ledger.limit import DOWN, UP, Limit
from ledger.ranges import CHANGE_MAX
from ledger.requests import Delete, Item, Key, Put, Request
from ledger.values import Delta, Lane
from tests.ledger.test_gate import EAGER, HERE, SEATS, STOCK, THERE, A, B, World, counted

GATE = items.gate_key(HERE)


def backup(world: World) -> dict[str, dict[Key, Item]]:
    return {region: dict(table.items) for region, table in world.tables.items()}


def restore(world: World, backup: Mapping[str, Mapping[Key, Item]], kind: str = "") -> None:
    """The items of that kind ("gate", "past", "hold") become those of the backup; without a kind: all of them."""
    for region, table in world.tables.items():
        for key in [key for key in table.items if key.pk.startswith(kind)]:
            table.answer(Delete(key))
        for key, item in backup[region].items():
            if key.pk.startswith(kind):
                table.answer(Put(item))


def rebuilt(world: World) -> dict[Lane, Rebuilt]:
    """By lane; and an audit finds nothing wrong after it."""
    told = {each.gate.lane: each for each in world.run(rebuild(world.gates(A)))}
    assert world.run(audit(world.gates(A))) == []
    for lane, each in told.items():
        assert world.gate(lane) == each.gate
    return told


def value(world: World) -> int:
    return world.gate(HERE).value + world.gate(THERE).value


@pytest.fixture
def world() -> World:
    """Ten seats, of which five are sold here, one by one; all that is decided is filed at once."""
    world = World(SEATS, EAGER)
    for _ in range(5):
        world.add(1)
    return world


def test_of_gates_that_nothing_happened_to_nothing_is_lost_and_all_is_answered_the_same(world: World) -> None:
    delta = world.delta(2, THERE)
    world.run(decide_change(world.gates(B), delta), B)
    before = world.run(outcomes(HERE, consistent=True))
    told = rebuilt(world)
    assert [(each.lost, each.short, each.told) for each in told.values()] == [(0, {}, [])] * 2
    assert world.run(outcomes(HERE, consistent=True)) == before
    assert world.run(decide_change(world.gates(A), delta)) == counted(2, before=True)
    assert world.add(3) == counted(3)
    assert world.add(1).known == Known(REFUSED)


def test_a_gate_older_than_its_segments_counts_each_token_once(world: World) -> None:
    older = backup(world)
    deltas = [world.delta(1) for _ in range(3)]
    for delta in deltas:
        world.run(decide_change(world.gates(A), delta))
    restore(world, older, "gate")
    told = rebuilt(world)[HERE]
    assert (value(world), world.gate().number, told.lost) == (8, 8, 0)
    for delta in deltas:
        assert world.run(decide_change(world.gates(A), delta)) == counted(1, before=True)
    assert value(world) == 8


def test_what_was_decided_otherwise_after_a_restore_is_what_is_listed(world: World) -> None:
    older = backup(world)
    delta = world.delta(2)
    world.run(decide_change(world.gates(A), delta))
    world.add(1)
    restore(world, older, "gate")
    item = world.tables[A].items[GATE]
    world.tables[A].answer(Put({**item, "recent": {"M": {**item["recent"]["M"], delta.token: {"N": "1"}}}}))
    told = rebuilt(world)[HERE]
    assert told.twice == (delta.token,)
    assert "which counts" in " ".join(told.told)
    assert world.run(decide_change(world.gates(A), delta)) == counted(2, before=True)


def test_what_a_gate_counts_and_nothing_lists_stays_in_the_value_and_its_tokens_are_told_to_be_lost(
    world: World,
) -> None:
    older = backup(world)
    lost = world.delta(2)
    world.run(decide_change(world.gates(A), lost))
    for _ in range(2):
        world.add(1)
    restore(world, older, "past")
    told = rebuilt(world)[HERE]
    assert (told.lost, told.lost_sum, value(world)) == (3, 4, 9)
    assert "3 changes of sum 4 are in the value and their tokens are lost" in told.told[0]
    assert world.run(standing(world.gates(A), consistent=True)).count == 6  # one entry in the place of three
    again = rebuilt(world)[HERE]
    assert (again.lost, value(world)) == (0, 9)
    assert world.add(2).known == Known(REFUSED)


def test_a_rebuild_that_ended_half_way_is_repeated(world: World) -> None:
    older = backup(world)
    world.add(2)
    world.add(1)
    restore(world, older, "past")
    half = world.tables[A].items[GATE]
    rebuilt(world)
    whole = backup(world)
    world.tables[A].answer(Put(half))  # the entry is written, and the gate is not
    rebuilt(world)
    assert value(world) == 8
    assert [key.sk for key in backup(world)[A]] == [key.sk for key in whole[A]]


def test_a_loss_above_the_largest_change_is_kept_in_several_entries() -> None:
    world = World(STOCK)
    world.add(1)
    total = 2 * CHANGE_MAX + 5
    world.tables[A].answer(Put({**world.tables[A].items[GATE], "total": {"N": str(total)}, "count": {"N": "4"}}))
    told = rebuilt(world)[HERE]
    assert (told.lost, sorted(told.late.values())) == (4, [5, CHANGE_MAX, CHANGE_MAX])
    assert world.gate().value == total + 1


def test_more_that_is_listed_than_a_gate_counted_counts(world: World) -> None:
    older = backup(world)
    world.add(1)
    world.add(1)
    restore(world, older, "gate")
    for _ in range(3):
        world.add(1)  # before the rebuild: it files under versions that were used
    told = rebuilt(world)[HERE]
    assert told.lost < 0
    assert "that its gate did not count" in told.told[0]
    assert value(world) == 10


def test_a_filed_hold_goes_on_keeps_its_rights_and_ends_once(world: World) -> None:
    older = backup(world)
    held, other = world.held(2), world.held(1)
    for each in (held, other):
        world.run(decide_hold(world.gates(A), each))
    world.run(end(world.gates(A), other, 1))
    world.add(1)
    restore(world, older, "gate")
    rebuilt(world)
    assert (value(world), world.gate().rights[UP]) == (7, 1)
    assert world.run(decide_hold(world.gates(A), held)) == Decision(Known(held=2), before=True)
    assert world.run(end(world.gates(A), held, 1)) == Decision(Known(1), before=False)
    assert world.gate().rights[UP] == 2


def test_a_hold_in_the_gate_whose_end_is_listed_has_ended() -> None:
    world = World(SEATS, Filing(enough=1, beside=0, draw=1, holds_kept=9, holds_left=9))
    held = world.held(3)
    world.run(decide_hold(world.gates(A), held))
    older = backup(world)
    world.run(end(world.gates(A), held, 2))
    world.add(1)
    world.add(1)
    restore(world, older, "gate")
    rebuilt(world)
    assert (world.gate().held, world.gate().rights[UP]) == ({}, 10 - value(world))
    assert world.run(decide_hold(world.gates(A), held)) == Decision(Known(2), before=True)


@pytest.mark.parametrize("damage", [None, {"low": {"N": "1"}}, {"recent": {"S": "?"}}], ids=["gone", "low", "recent"])
def test_a_gate_that_is_gone_or_damaged_is_made_from_what_it_filed(
    world: World, damage: Mapping[str, Mapping[str, str]] | None
) -> None:
    world.add(3, THERE, B)
    world.filing = Filing()
    world.add(1)
    (last,) = world.gate().recent
    listed = {t: n for t, n in world.run(outcomes(HERE, consistent=True)).items() if t != last}
    whole = world.tables[A].items[GATE]
    world.tables[A].answer(Delete(GATE) if damage is None else Put({**whole, **damage}))
    if damage is None:
        world.tables[A].answer(Put(world.tables[B].items[items.gate_key(THERE)]))
        with pytest.raises(GateLost):
            world.add(1)
    told = rebuilt(world)[HERE]
    assert told.was is None
    assert "no gate could be read" in told.told[0]
    assert world.run(outcomes(HERE, consistent=True)) == listed
    assert world.gate().given == {(f"{B}#0", UP): world.gate(THERE).got[f"{A}#0", UP]}
    for _ in range(10 - value(world)):
        assert world.add(1, THERE, B) == counted(1)
    assert world.add(1).known == Known(REFUSED)


def test_the_limit_that_was_set_is_that_of_the_gate_and_of_the_settings_where_the_gate_is_gone(world: World) -> None:
    world.run(set_limit(world.gates(A), None, 7))
    rebuilt(world)
    assert (world.gate().bounds[UP], world.gate().epoch) == (7, 1)
    world.tables[A].answer(Delete(GATE))
    rebuilt(world)
    assert (world.gate().bounds[UP], world.gate().epoch) == (10, 0)


def test_what_was_given_and_not_taken_over_has_arrived_and_what_was_got_and_not_given_is_given(world: World) -> None:
    world.add(1, THERE, B)
    older = backup(world)
    world.tables[A].answer(updates.give(world.gate(), (f"{B}#0", UP), 1))
    rebuilt(world)
    given = world.gate().given[f"{B}#0", UP]
    assert world.gate(THERE).got == {(f"{A}#0", UP): given}
    world.tables[A].answer(Put(older[A][GATE]))
    rebuilt(world)
    assert world.gate().given == {(f"{B}#0", UP): given}
    assert world.gate().rights[UP] + world.gate(THERE).rights[UP] == 10 - value(world)


def test_no_lane_owes_while_another_has_some() -> None:
    world = World(SEATS, EAGER)
    world.add(1)
    older = backup(world)
    for _ in range(4):
        world.add(2, THERE, B)
    restore(world, {A: older[A], B: backup(world)[B]})
    gate = world.gate()
    world.tables[B].answer(Put(items.gate_item(replace(world.gate(THERE), got={}))))
    assert gate.given == {}
    told = rebuilt(world)
    assert [each.short for each in told.values()] == [{}, {}]
    assert [world.gate(lane).rights[UP] for lane in (HERE, THERE)] == [1, 0]
    assert world.gate().given == {(f"{B}#0", UP): 8}


def test_beyond_its_limit_a_counter_of_one_lane_refuses_until_it_is_back_within() -> None:
    world = World(STOCK, EAGER)
    gates = replace(world.gates(A), lanes=(HERE,))
    for change in (3, -3, 0):
        world.run(decide_change(gates, world.delta(change)))
    segment = next(key for key, item in world.tables[A].items.items() if "segment#" in key.sk and _of(item, 3))
    world.tables[A].answer(Delete(segment))
    world.tables[A].answer(Delete(GATE))  # so nobody knows of the 3
    (told,) = world.run(rebuild(gates))
    assert told.short == {DOWN: 3}
    assert "3 down are owed" in told.told[-1]
    assert world.run(audit(gates)) == []
    for change, right in ((-1, REFUSED), (2, 2), (-1, REFUSED), (2, 2), (-2, REFUSED), (-1, -1), (-1, REFUSED)):
        assert world.run(decide_change(gates, world.delta(change))).known == Known(right)
    assert world.gate().value == 0


def _of(item: Item, change: int) -> bool:
    return change in items.filed_of(HERE, item).outcomes.values()


def test_beyond_its_limit_a_counter_goes_no_further_and_a_second_rebuild_makes_it_exact() -> None:
    world = World(STOCK)
    world.add(1)
    world.add(0, THERE, B)
    for lane in (HERE, THERE):  # four more were sold here than ever came
        short = world.gate(lane)
        sold = {**short.recent, world.delta(0).token: -4} if lane == HERE else short.recent
        world.tables[lane.region].answer(Put(items.gate_item(replace(short, recent=sold))))
    assert [each.short for each in rebuilt(world).values()] == [{DOWN: 3}, {}]
    assert world.add(-1, THERE, B).known == Known(REFUSED)
    world.add(5, THERE, B)
    assert [each.short for each in rebuilt(world).values()] == [{}, {}]
    assert value(world) == 2
    assert [world.add(-1, lane, lane.region).known for lane in (HERE, THERE, HERE, THERE)] == [
        *[Known(-1)] * 2,
        *[Known(REFUSED)] * 2,
    ]


def test_a_token_that_a_look_up_would_miss_since_others_went_on_before_the_rebuild_is_found(world: World) -> None:
    older = backup(world)
    times = (world.now_ms + ms for ms in (1_000, 9_000, 5_000, 5_500))
    token, high, *between = (tokens.make(time_ms, bytes(10)) for time_ms in times)
    world.now_ms += 10_000
    world.filing = replace(EAGER, enough=2)
    for each in (token, high):  # filed together
        world.run(decide_change(world.gates(A), Delta(HERE, each, 1)))
    world.filing = EAGER
    restore(world, older, "gate")
    for each in between:  # filed below `high`, with a low above `token`
        assert world.run(decide_change(world.gates(A), Delta(HERE, each, 1))) == counted(1)
    assert world.run(look_up(world.gates(A), HERE, token)) is None
    assert rebuilt(world)[HERE].late == {token: 1}
    assert world.run(decide_change(world.gates(A), Delta(HERE, token, 1))) == counted(1, before=True)
    assert value(world) == 9


def test_low_is_not_below_the_name_of_a_segment() -> None:
    world = World(SEATS)
    listed, hi = (tokens.make(world.now_ms + n, bytes(10)) for n in (0, 9))
    filed = Filed(HERE, hi, 2, "0" * 26, {listed: 1})
    world.tables[A].answer(Put(items.filed_item(filed)))
    rebuilt(world)
    assert (world.gate().low, world.gate().top, world.gate().version) == (hi, hi, 3)


def meanwhile(world: World, does: Callable[[Put], Request], monkeypatch: pytest.MonkeyPatch) -> list[Rebuilt]:
    """A rebuild during which somebody writes, just before the gate here is put."""
    table = world.tables[A]
    answer = table.answer

    def answers(request: Request, /) -> Any:
        if isinstance(request, Put) and request.key == GATE:
            answer(does(request))
        return answer(request)

    with monkeypatch.context() as patch:
        patch.setattr(table, "answer", answers)
        return world.run(rebuild(world.gates(A)))


def test_a_gate_that_is_written_meanwhile_is_left_as_it_is(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GaveUp, match="rebuild again"):
        meanwhile(world, lambda put: updates.give(world.gate(), (f"{B}#0", UP), 1), monkeypatch)
    assert world.gate().given == {(f"{B}#0", UP): 1}
    rebuilt(world)
    assert world.gate(THERE).got == {(f"{A}#0", UP): 1}


def test_a_gate_that_is_put_twice_as_an_sdk_may_is_rebuilt(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert meanwhile(world, lambda put: put, monkeypatch)[0].gate == world.gate()


def test_a_token_that_is_listed_with_two_outcomes_is_for_a_person(world: World) -> None:
    before = backup(world)
    token = next(iter(world.run(outcomes(HERE, consistent=True))))
    world.tables[A].answer(Put(items.late_item(HERE, token, 7, 1)))
    with pytest.raises(LaneDamaged, match="only a person"):
        world.run(rebuild(world.gates(A)))
    assert world.tables[A].items[GATE] == before[A][GATE]


def test_settings_with_another_limit_rebuild_nothing(world: World) -> None:
    before = backup(world)
    world.limit = STOCK
    with pytest.raises(LimitMismatch):
        world.run(rebuild(world.gates(A)))
    assert backup(world) == before


def test_lanes_that_were_never_used_get_gates_with_the_first_rights() -> None:
    world = World(Limit(floor=-2, ceiling=5, region=B))
    rebuilt(world)
    assert (world.gate(HERE).rights, world.gate(THERE).rights) == ({DOWN: 0, UP: 0}, {DOWN: 2, UP: 5})
    assert world.add(5) == counted(5)
