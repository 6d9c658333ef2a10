"""What an audit asks and finds, and what a rebuild settles and writes, where a count of it can tell."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ledger import tokens
from ledger.gate import items
from ledger.gate.bounds import set_limit
from ledger.gate.decide import decide_hold
from ledger.gate.gate import LOWEST, Gate
from ledger.gate.items import Filed
from ledger.gate.rebuild import settle
from ledger.gate.recount import Books, audit, outcomes, standing
from ledger.limit import UP, Limit
from ledger.requests import At, Delete, Get, GetMany, Put, Query, Request
from ledger.values import Lane
from tests.ledger.test_gate import EAGER, HERE, SEATS, THERE, A, B, Table, World, counted
from tests.ledger.test_gate_items import FILED, LANE, NOW_MS, OLD, YOUNG
from tests.ledger.test_gate_items import GATE as EXAMPLE
from tests.ledger.test_gate_rebuild import backup, rebuilt, restore, value

GATE = items.gate_key(HERE)
OVER, BACK = (f"{B}#0", UP), (f"{A}#0", UP)


def sold(gate: Gate, change: int) -> Gate:
    return replace(gate, recent={tokens.make(NOW_MS, bytes(10)): change})


@pytest.fixture
def world() -> World:
    world = World(SEATS, EAGER)
    for _ in range(3):
        world.add(1)
    world.add(1, THERE, B)
    return world


def written(world: World, gate: Gate) -> None:
    world.tables[gate.lane.region].answer(Put(items.gate_item(gate)))


def before_there_is_read(world: World, does: Callable[[], object], here: str = A, there: str = B) -> list[str]:
    """An audit during which something happens once, after the gate here was read."""
    table = world.tables[there]
    answer = table.answer

    def answers(request: Request, /) -> Any:
        table.answer = answer  # type: ignore[method-assign]
        does()
        return answer(request)

    table.answer = answers  # type: ignore[method-assign]
    return world.run(audit(world.gates(here)), here)


def asked(table: Table) -> list[Request]:
    return [each.request if isinstance(each, At) else each for each in table.asked]


def test_a_note_keeps_rights_while_its_token_is_known_nowhere_else() -> None:
    (held,) = EXAMPLE.held
    gate = replace(EXAMPLE, recent={YOUNG: 1})
    other = tokens.make(NOW_MS + 9, bytes(10))
    listed = replace(FILED, hi=OLD, outcomes={OLD: -2})
    books = Books(LANE, None, [listed], [], {OLD: 1, YOUNG: 2, held: 3, other: 4})
    assert books.open(gate) == {other: 4}


def test_an_audit_asks_each_home_strongly_and_reads_each_gate_twice(world: World) -> None:
    for _ in range(5):
        world.run(decide_hold(world.gates(A), world.held(1)))
    for table in world.tables.values():
        table.asked.clear()
    assert world.run(audit(world.gates(A))) == []
    reads = [each for each in asked(world.tables[A]) if isinstance(each, Get | GetMany | Query)]
    assert all(each.consistent is True for each in reads)
    assert [reads.count(Get(items.gate_key(lane))) for lane in (HERE, THERE)] == [2, 2]


@pytest.mark.parametrize("kinds", [("past", "hold"), ("past",), ("hold",)])
def test_each_gate_that_is_gone_and_left_something_is_told(world: World, kinds: tuple[str, ...]) -> None:
    world.run(decide_hold(world.gates(A), world.held(1)))
    for key in [key for key in world.tables[A].items if not key.pk.startswith(kinds)]:
        world.tables[A].answer(Delete(key))
    written(world, replace(world.gate(THERE), rights={UP: 99}))
    gone, wrong, *got = world.run(audit(world.gates(A)))
    assert gone == f"{HERE}: its gate is gone"
    assert "its rights up are 99" in wrong
    assert [f"from {A}#0, which gave 0" in each for each in got] == [True]


@pytest.mark.parametrize("gone", [HERE, THERE], ids=["by what it gave", "by what it was given"])
def test_a_gate_that_is_gone_is_missed_by_what_another_has_from_it_or_for_it(gone: Lane) -> None:
    world = World(SEATS)
    world.add(1)
    world.add(2, THERE, B)
    world.tables[gone.region].answer(Delete(items.gate_key(gone)))
    found = world.run(audit(world.gates(A)))
    assert [each for each in found if each.startswith(f"{gone}:")] == [f"{gone}: its gate is gone"]


def test_a_lane_that_never_had_a_gate_is_not_missed() -> None:
    world = World(SEATS)
    world.add(1)
    assert world.run(audit(world.gates(A))) == []


def test_a_gate_that_is_made_while_an_audit_goes_on_is_not_missed() -> None:
    world = World(SEATS)
    world.add(1)
    assert before_there_is_read(world, lambda: world.add(1, THERE, B), B, A) == []
    assert world.gate().others == {f"{B}#0"}


def test_what_was_got_and_never_given_is_told_to_the_last_one(world: World) -> None:
    gate = world.gate(THERE)
    for giver in (f"{A}#0", "ap-south-1#7"):
        written(world, replace(gate, got={(giver, UP): 1}))
        if giver == f"{A}#0":
            written(world, replace(world.gate(), given={}))
        assert f"{THERE}: it got 1 of up from {giver}, which gave 0" in world.run(audit(world.gates(A)))


def test_what_is_given_while_an_audit_goes_on_is_not_wrong(world: World) -> None:
    assert before_there_is_read(world, lambda: [world.add(1, THERE, B) for _ in range(5)]) == []
    assert world.gate(THERE).got[BACK] > 3


def test_an_audit_of_a_limit_that_is_nothing_finds_nothing() -> None:
    world = World(Limit(floor=0, ceiling=3, region=A))
    world.add(2)
    world.run(set_limit(world.gates(A), None, 2))
    assert world.run(audit(world.gates(A))) == []


@pytest.mark.parametrize(
    ("here", "there", "given", "got", "rights", "sent"),
    [
        (1, 0, {}, {}, (9, 0), {}),
        (1, 0, {OVER: 0}, {}, (9, 0), {OVER: 0}),
        (1, 1, {}, {}, (8, 0), {OVER: 1}),
        (1, 8, {OVER: 3}, {BACK: 2}, (1, 0), {OVER: 8}),
        (1, 8, {OVER: 2}, {BACK: 3}, (1, 0), {OVER: 8}),
        (1, 2, {OVER: 5}, {BACK: 3}, (4, 3), {OVER: 5}),
        (1, 2, {OVER: 3}, {BACK: 5}, (4, 3), {OVER: 5}),
        (8, 5, {}, {}, (0, -3), {OVER: 2}),
    ],
)
def test_rights_are_settled_until_none_owes_while_another_has_some(
    here: int, there: int, given: dict[Any, int], got: dict[Any, int], rights: tuple[int, int], sent: dict[Any, int]
) -> None:
    new = items.gate_of(HERE, items.new_gate(HERE, SEATS)), items.gate_of(THERE, items.new_gate(THERE, SEATS))
    gates = [replace(sold(new[0], here), given=given), replace(sold(new[1], there), got=got)]
    first, second = settle([Books(each.lane, None, [], [], {}) for each in gates], gates)
    assert (first.rights[UP], second.rights[UP]) == rights
    assert (first.given, first.got, second.given) == (sent, {}, {})
    assert second.got == ({BACK: sent[OVER]} if sent else {})


def test_what_lanes_owe_is_made_up_by_all_that_have_some_of_each_no_more_than_it_has() -> None:
    lanes = [replace(HERE, shard=shard) for shard in range(4)]
    new = [items.gate_of(lane, items.new_gate(lane, SEATS)) for lane in lanes]
    gates = [sold(gate, change) for gate, change in zip(new, (6, -2, 3, 2), strict=True)]
    after = settle([Books(lane, None, [], [], {}) for lane in lanes], gates)
    assert [gate.rights[UP] for gate in after] == [0, 1, 0, 0]
    assert [dict(gate.given) for gate in after] == [{(f"{A}#2", UP): 3, (f"{A}#3", UP): 1}, {(f"{A}#3", UP): 1}, {}, {}]


def test_one_change_that_is_lost_is_kept_under_a_name_that_a_second_run_finds_again(world: World) -> None:
    older = backup(world)
    world.add(2)
    restore(world, older, "past")
    gate, before = world.gate(), value(world)
    told = rebuilt(world)[HERE]
    name = f"lost: {HERE} {gate.version} 1 2"
    assert told.late == {tokens.keyed(HERE.counter, name, tokens.time_ms(gate.top)): 2}
    assert (told.lost, told.lost_sum, value(world)) == (1, 2, before)


def test_a_total_that_is_wrong_of_as_many_changes_is_what_they_sum_to(world: World) -> None:
    gate, before = world.gate(), value(world)
    written(world, replace(gate, total=gate.total + 5))
    assert rebuilt(world)[HERE].late == {}
    assert value(world) == before


def test_what_is_only_in_the_gate_stays_there_and_nothing_is_told_of_it() -> None:
    world = World(SEATS)
    for _ in range(3):
        world.add(1)
    recent = world.gate().recent
    told = rebuilt(world)[HERE]
    assert (told.twice, told.told, told.gate.recent) == ((), [], recent)
    assert (told.gate.version, told.gate.moved) == (1, frozenset())


def test_a_rebuilt_gate_has_no_fingerprints_since_all_is_looked_up(world: World) -> None:
    assert world.gate().moved
    rebuilt(world)
    assert world.gate().moved == frozenset()
    assert world.add(1) == counted(1)


def test_tokens_that_a_lower_segment_hides_from_a_look_up_are_found_in_every_segment_above() -> None:
    world = World(SEATS)
    first, second, *above = (tokens.make(world.now_ms + n, bytes(10)) for n in range(5))
    for version, (hi, low, hidden) in enumerate(
        zip(above, (second, LOWEST, LOWEST), (None, first, second), strict=True)
    ):
        outcomes = {hidden: version, hi: 0} if hidden else {hi: 0}
        world.tables[A].answer(Put(items.filed_item(Filed(HERE, hi, version + 1, low, outcomes))))
    assert rebuilt(world)[HERE].late == {first: 1, second: 2}


@pytest.mark.parametrize("consistent", [True, False])
def test_a_history_is_read_as_strongly_as_it_is_asked_for(world: World, consistent: bool) -> None:
    world.tables[A].asked.clear()
    world.run(outcomes(HERE, consistent=consistent))
    world.run(standing(world.gates(A), consistent=consistent))
    reads = [each for each in world.tables[A].asked if isinstance(each, Get | GetMany | Query)]
    assert {each.consistent for each in reads} == {consistent}
    assert len(reads) == len(world.tables[A].asked)
