"""How a group travels: what each of its requests asks, and what goes alone in the end."""

from typing import Any

import pytest

from ledger.errors import Throttled
from ledger.gate import items, updates
from ledger.gate.decide import Decision, add_group, decide_change
from ledger.gate.gate import REFUSED
from ledger.gate.past import Known
from ledger.requests import Get, GetMany, Put, Query, Request, Together, Update
from ledger.values import Delta
from tests.ledger.test_gate import HERE, SEATS, A, World, counted
from tests.ledger.test_gate_expire import meanwhile
from tests.ledger.test_gate_roll import at, seen

LOOK_UP = Together, Get, Get, Query  # the first, as the other three


def kinds(world: World) -> list[type[Any]]:
    return [type(each) for each in world.tables[A].asked]


def asked(world: World) -> list[Update]:
    return [each for each in world.tables[A].asked if isinstance(each, Update)]


def grouped(world: World, *times_ms: int, change: int = 1) -> dict[str, Any]:
    told = world.run(add_group(world.gates(A), HERE, {at(ms): change for ms in times_ms}))
    return {token: told[token] for token in map(at, times_ms)}


def test_two_are_a_group_and_the_first_one_makes_the_gate() -> None:
    world = World(SEATS)
    assert list(grouped(world, 0, 1).values()) == [counted(1)] * 2
    looked = [Together, Query, Query, GetMany, Together, GetMany, Query, Query]
    assert kinds(world) == [Update, *looked, Put, Update]


def test_a_group_goes_on_without_what_was_decided_when_what_may_have_been_filed_was_looked_up() -> None:
    """Of six, one is in the gate, one is filed, two are as late and were never decided."""
    world = World(SEATS)
    gate = seen(world, (0,), slack_ms=None)
    world.tables[A].items[items.late_key(HERE, at(-3_500))] = items.late_item(HERE, at(-3_500), 1, 2)
    told = grouped(world, 0, -3_500, -2_500, -1_500, 1, 2)
    assert list(told.values()) == [counted(1, before=True)] * 2 + [counted(1)] * 4
    everything = {at(ms): 1 for ms in (0, -3_500, -2_500, -1_500, 1, 2)}
    left = {at(ms): 1 for ms in (-2_500, -1_500, 1, 2)}
    slack_ms = 250 + (3_000 - 250) // 4  # towards the latest
    assert asked(world) == [
        updates.decide(HERE, SEATS, everything),
        updates.decide(HERE, SEATS, left, gate.version, slack_ms),
    ]
    assert kinds(world) == [Update, Together, Get, Get, Query, *LOOK_UP, *LOOK_UP, Update]


@pytest.mark.parametrize("filed", [False, True])
def test_what_is_new_travels_as_new_when_the_others_were_decided(filed: bool) -> None:
    world = World(SEATS)
    known = -20_000 if filed else 0
    seen(world, () if filed else (known,))
    world.tables[A].items[items.late_key(HERE, at(known))] = items.late_item(HERE, at(known), 1, 2)
    told = grouped(world, known, 1, 2)
    assert list(told.values()) == [counted(1, before=True), counted(1), counted(1)]
    assert asked(world)[1:] == [updates.decide(HERE, SEATS, {at(1): 1, at(2): 1})]
    assert kinds(world) == [Update, *(LOOK_UP if filed else ()), Update]


def test_what_others_decided_meanwhile_is_told_as_theirs_and_the_rest_travels_on() -> None:
    world = World(SEATS)
    seen(world, (0,))
    meanwhile(world.tables[A], Update, lambda: world.run(decide_change(world.gates(A), Delta(HERE, at(1), 1))))
    assert list(grouped(world, 0, 1, 2, 3).values()) == [counted(1, before=True)] * 2 + [counted(1)] * 2
    assert asked(world)[-1] == updates.decide(HERE, SEATS, {at(2): 1, at(3): 1})


@pytest.mark.parametrize("late", [False, True])
def test_a_group_that_needs_more_than_there_is_goes_one_by_one(late: bool) -> None:
    world = World(SEATS)
    seen(world, (), slack_ms=100_000)
    times = (-20_000, -21_000) if late else (0, 1)
    told = grouped(world, *times, change=6)
    assert list(told.values()) == [counted(6), Decision(Known(REFUSED), before=False)]
    sizes = [sum("recent" in action.path for action in each.actions) for each in asked(world)]
    assert sizes[:3] == ([2, 2, 1] if late else [2, 1, 1])


def test_a_group_that_was_not_answered_goes_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(SEATS)
    seen(world)

    def busy(request: Request, /) -> Any:
        monkeypatch.undo()
        raise Throttled("Nothing was written.")

    monkeypatch.setattr(world.tables[A], "answer", busy)
    assert list(grouped(world, 0, 1).values()) == [counted(1)] * 2
    assert kinds(world) == [Update, Update]


def test_large_groups_are_filed_when_some_of_their_size_are_there() -> None:
    """Else every one of them would file."""
    world = World(SEATS)
    versions = []
    for n in range(0, 300, 30):
        grouped(world, *range(n, n + 30), change=0)
        versions.append(world.gate().version)
    assert versions[:3] == [0, 0, 0]
    assert versions[-1] in (1, 2)
