"""How holds end whose time is over, in the gate and among those that were filed; and what others do meanwhile."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lab.histories.filing import Filing
from ledger.errors import NoSuchHold
from ledger.gate import items, updates
from ledger.gate.decide import Decision, decide_hold, end
from ledger.gate.gate import EXPIRED, RELEASED, Gate
from ledger.gate.move import free
from ledger.gate.past import Known, find
from ledger.limit import UP
from ledger.requests import DeleteMany, Get, Instant, Put, PutMany, Query, Request, Together, Update, keyed
from ledger.values import Delta
from tests.ledger.test_gate import COUNTER, EAGER, HERE, SEATS, A, Table, World

KEPT = Filing(enough=1_000, holds_kept=100)
LOOK_UP = Together, Get, Get, Query  # the first, as the other three


def meanwhile(table: Table, kind: type[Any], act: Callable[[], object]) -> None:
    """Once the table has answered a request of that kind, and before the program goes on, something happens."""
    answer = table.answer

    def then(request: Request, /) -> Any:
        told = answer(request)
        if isinstance(request, kind):
            table.answer = answer  # type: ignore[method-assign]
            act()
        return told

    table.answer = then  # type: ignore[method-assign]


def granted(world: World, number: int = 1) -> list[Delta]:
    """Holds of one that are granted, each for a minute."""
    holds = [world.held(1) for _ in range(number)]
    for each in holds:
        world.run(decide_hold(world.gates(A), each))
    return holds


def asked(world: World, *kinds: type[Any]) -> list[Request]:
    return [each for each in world.tables[A].asked if isinstance(each, kinds)]


def freed(world: World, gate: Gate, side: str | None = None, need: int = 0) -> Gate:
    world.tables[A].asked.clear()
    after = world.run(free(world.gates(A), gate, side, need))
    assert after == world.gate()
    return after


def test_holds_that_are_over_end_the_oldest_first_and_those_that_are_not_stay() -> None:
    world = World(replace(SEATS, ceiling=100), KEPT)
    holds = [each.token for each in granted(world, 70)]
    world.now_ms += 55_000
    assert list(freed(world, world.gate()).held) == holds[65:]
    parts = holds[: updates.EXPIRED_MAX], holds[updates.EXPIRED_MAX : 65]
    assert asked(world, Update) == [updates.expire(HERE, world.limit, dict.fromkeys(part, 1)) for part in parts]
    assert asked(world, Query) == [Query(items.hold_pk(HERE), None, items.holds_until(world.now_ms), 25)]
    assert not asked(world, DeleteMany)


def test_holds_that_are_over_end_until_there_is_enough() -> None:
    """70 of 100 are held: 20 in the gate, 50 as notes, of which 25 are a page."""
    world = World(replace(SEATS, ceiling=100), EAGER)
    world.tables[A].page_size = 100
    granted(world, 50)
    world.filing = KEPT
    granted(world, 20)
    world.now_ms += 60_000
    for need, left, kinds in (
        (30, 70, []),
        (31, 50, [Update]),
        (50, 50, []),
        (51, 25, [Query, Query, Query, Update, DeleteMany]),
        (100, 0, [Query, Query, Query, Update, DeleteMany]),
    ):
        gate = freed(world, world.gate(), UP, need)
        assert 100 - gate.rights[UP] == left
        assert [type(each) for each in world.tables[A].asked] == kinds


def test_what_ended_leaves_the_gate_on_the_way_and_a_roll_that_fails_does_not_matter() -> None:
    for fails in (False, True):
        world = World(replace(SEATS, ceiling=100), EAGER)
        granted(world, 60)
        world.filing = Filing(enough=4)
        world.now_ms += 60_000
        world.tables[A].refuses = PutMany if fails else ()
        gate = world.run(free(world.gates(A), world.gate()))
        assert gate.rights == {UP: 100}
        assert len(gate.recent) == 60 if fails else len(gate.recent) < 8


def test_holds_that_a_process_frees_are_not_remembered_to_be_sold_out() -> None:
    world = World(SEATS, KEPT)
    granted(world, 10)
    world.now_ms += 60_000
    gates = world.gates(A)
    gates.sold_out.note(COUNTER, UP, 1, Instant(world.now_ms, 0))
    world.run(free(gates, world.gate()))
    assert not gates.sold_out.knows(COUNTER, UP, 1, Instant(world.now_ms, 0))


def test_what_others_ended_meanwhile_is_not_ended_again() -> None:
    world = World(SEATS, KEPT)
    first, second = granted(world, 2)
    stale = world.gate()
    world.run(end(world.gates(A), first, 1))
    world.now_ms += 61_000
    assert freed(world, stale).recent == {first.token: 1, second.token: EXPIRED}


def test_of_filed_holds_that_are_over_each_ends_once_and_the_notes_of_all_that_ended_go() -> None:
    """One goes on; one release is in the gate, one is filed; one is held, and a roll that lost left a note of it."""
    world = World(SEATS, EAGER)
    world.tables[A].page_size = 100
    going_on, released, long_ago = granted(world, 3)
    notes = {key: item for key, item in world.tables[A].items.items() if key.pk == items.hold_pk(HERE)}
    world.run(end(world.gates(A), long_ago, RELEASED))
    world.filing = KEPT
    world.run(end(world.gates(A), released, RELEASED))
    stale = world.gate()
    (kept,) = granted(world)
    for note in (*notes.values(), items.hold_item(HERE, kept.token, 1)):
        world.tables[A].answer(Put(note))
    world.now_ms += 60_000
    after = freed(world, stale)
    assert (after.rights, after.held, after.recent[going_on.token]) == ({"up": 9}, {kept.token: 1}, EXPIRED)
    over = {going_on.token: 1}
    assert asked(world, Update) == [
        updates.expire(HERE, world.limit, each, stale.version) for each in ({**over, kept.token: 1}, over)
    ]
    gone = [keyed(items.hold_key(HERE, each.token)) for each in (released, long_ago, going_on)]
    assert asked(world, DeleteMany) == [DeleteMany(tuple(gone))]
    assert [key.sk for key in world.tables[A].items if key.pk == items.hold_pk(HERE)] == [
        items.hold_key(HERE, kept.token).sk
    ]


def test_notes_of_holds_that_ended_go_without_a_write_to_the_gate() -> None:
    world = World(SEATS, EAGER)
    (released,) = granted(world)
    (note,) = (item for key, item in world.tables[A].items.items() if key.pk == items.hold_pk(HERE))
    world.run(end(world.gates(A), released, RELEASED))
    world.tables[A].answer(Put(note))
    world.now_ms += 60_000
    freed(world, world.gate())
    assert not asked(world, Update)
    assert len(asked(world, DeleteMany)) == 1


def test_the_end_of_a_filed_hold_is_its_gate_a_look_up_a_write_and_its_note() -> None:
    world = World(SEATS, EAGER)
    (held,) = granted(world)
    world.filing = KEPT
    world.tables[A].asked.clear()
    assert world.run(end(world.gates(A), held, 1)) == Decision(Known(1), before=False)
    assert [type(each) for each in world.tables[A].asked] == [Get, *LOOK_UP, Update, DeleteMany]
    world.tables[A].asked.clear()
    (kept,) = granted(world)
    world.run(end(world.gates(A), kept, 1))
    assert [type(each) for each in world.tables[A].asked] == [Update, Get, Update]


def test_a_filed_hold_that_ended_between_the_gate_and_the_look_up_is_found() -> None:
    world = World(SEATS, EAGER)
    (held,) = granted(world)
    world.filing = KEPT
    assert world.gate().version == 1
    meanwhile(world.tables[A], Get, lambda: world.run(end(world.gates(A), held, 1)))
    assert world.run(find(world.gates(A), HERE, held.token)) == (Known(1), None)


def test_what_was_never_decided_is_looked_up_once_more_and_not_again() -> None:
    world = World(SEATS)
    for _version in (0, 1):
        world.tables[A].asked.clear()
        with pytest.raises(NoSuchHold):
            world.run(end(world.gates(A), world.held(1), 1))
        made = [type(each) for each in world.tables[A].asked]
        assert made[-10:] == [Get, *LOOK_UP, Get, *LOOK_UP]
        assert made[-10:].count(Together) == 2
        world.filing = EAGER
        world.add(1)
