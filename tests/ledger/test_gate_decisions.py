"""What a gate decides: changes and groups of changes, once and for ever; who makes a gate; what
a process remembers.
"""

from collections import Counter
from itertools import product
from typing import Any

import pytest

from ledger.core import tokens
from ledger.core.errors import DamagedItem, GaveUp, LimitMismatch, Throttled
from ledger.core.items import checkpoint_key, delta_item
from ledger.core.limit import DOWN, UP, Limit
from ledger.core.requests import Instant, Now, Program, Put, Query, Together, Update, keyed
from ledger.core.running import drive
from ledger.core.values import Delta
from ledger.gate import items
from ledger.gate.answer import Decision
from ledger.gate.copies import read_copies
from ledger.gate.decide import add_group, add_many, decide_change
from ledger.gate.gate import REFUSED, SLICE_MS
from ledger.gate.items import Filed
from ledger.gate.left import Left
from ledger.gate.set_limit import set_limit
from ledger.gate.sold_out import REMEMBERED_MS, SoldOut
from tests.calls import passed
from tests.ledger.seats import (
    BASE_MS,
    COUNTER,
    GATE,
    HERE,
    MINUTE_MS,
    SEATS,
    STOCK,
    THERE,
    Gated,
    at,
)
from tests.world import A, B, fail, refused

BOTH = Limit(floor=-10, ceiling=10, region=A)
BUSY = Throttled("This Region is busy. Nothing was written.")


def grouped(world: Gated, some: dict[str, int], gates: Any = None) -> list[object]:
    answer = world.home.run(add_group(gates or world.gates(COUNTER), HERE, some))
    return [answer[token] for token in some]


def counted(change: int, *, before: bool = False) -> Decision:
    return Decision(change, before=before)


IN_MEMORY = ("conditions", "actions", "cost", "requests")
"""Files whose functions a table in memory enters, and DynamoDB does not."""


def test_a_limited_add_is_one_update_and_few_functions() -> None:
    world = Gated()
    world.sell(1)
    ledger, key = world.ledger(unshared_limits=True), world.key()
    ledger.add(COUNTER, 1, **world.key())
    world.home.asked.clear()
    in_memory = ("tables/memory", *(f"core/{name}" for name in IN_MEMORY))
    found = passed(
        lambda: ledger.add(COUNTER, 1, **key),
        below="ledger/gate/decide.py:add",
        without=tuple(f"ledger/{name}.py" for name in in_memory),
    )
    assert len(found.functions) <= 28, found.functions
    assert world.home.kinds == [Update]


def test_a_caller_always_overtaken_gives_up_and_may_ask_again() -> None:
    world = Gated()
    world.sell(1)
    numbers = iter(range(1, 1_000))

    def written_by_another(_: object) -> None:
        number = {"N": str(next(numbers))}
        world.home.alter(GATE, version=number, epoch=number, low={"S": at(10**9)})

    world.home.before(Update, written_by_another)
    for program in (
        decide_change(world.gates(COUNTER), world.new(1)),
        set_limit(world.gates(COUNTER), None, 12),
    ):
        with pytest.raises(GaveUp, match="Call again"):
            world.home.run(program)


def test_a_gate_damaged_elsewhere_does_not_keep_this_one() -> None:
    for damage in ({"top": {"N": "1"}}, {"total": {"S": "many"}}, {"ceiling": {"S": "high"}}):
        world = Gated()
        world.sell(1)
        world.home.alter(GATE, **damage)
        assert world.sell(1) == 1
        assert grouped(world, {world.new(1).token: 1 for _ in range(2)}) == [counted(1)] * 2
        with pytest.raises(DamagedItem):
            world.home.run(read_copies([world.gates(COUNTER)], consistent=True))


def test_a_late_change_is_looked_up_once_and_moves_the_slack() -> None:
    for is_hold, amount, decided, slack_ms in (
        (False, 2, Decision(2, before=False), 250 + (2_000 - 250) // 4),
        (False, 11, Decision(REFUSED, before=False), None),
        (True, 2, Decision(held=2, before=False), None),
        (True, 11, Decision(REFUSED, before=False), None),
    ):
        world, late = Gated(), Delta(HERE, at(-2_500), amount)
        world.rolled(slack_ms=None)
        decision = world.home.run(decide_change(world.gates(COUNTER), late, hold=is_hold))
        assert decision == decided
        segments = Query(
            items.past_pk(HERE), items.segments_from(late.token), items.SEGMENTS_UPTO, 4
        )
        assert (world.home.asked.count(segments), world.gate().slack_ms) == (1, slack_ms)


# -- groups


def test_a_group_that_fails_or_is_not_answered_goes_one_by_one() -> None:
    """Where it may have been filed, once it was looked up."""
    for times, change, busy, becomes, sizes in (
        ((0, 1), 6, 0, [6, REFUSED], [2, 1, 1]),
        ((-20_000, -21_000), 6, 0, [6, REFUSED], [2, 2, 1]),
        ((0, 1), 1, 1, [1, 1], [2, 1, 1]),
    ):
        world = Gated()
        world.rolled((), slack_ms=100_000)
        world.home.before(Update, fail(BUSY), times=busy)
        assert grouped(world, {at(ms): change for ms in times}) == list(map(counted, becomes))
        assert [
            sum("recent" in action.path for action in each.actions) for each in world.asked(Update)
        ][:3] == sizes


def round_trips(world: Gated, program: Program[Any]) -> tuple[int, Any]:
    """How often a program waits for an answer, and what it returns."""
    waits = 0

    def answer(request: Any) -> Any:
        nonlocal waits
        waits += not isinstance(request, Now)
        return world.home.now() if isinstance(request, Now) else world.home.answer(request)

    result = drive(program, answer)
    return waits, result


def of_one_instant(first: int, number: int) -> list[Delta]:
    return [
        Delta(HERE, tokens.keyed(COUNTER, str(n), BASE_MS), 1) for n in range(first, first + number)
    ]


def test_a_batch_of_one_instant_costs_the_same_among_many() -> None:
    """However much that is: so a message that is received again gets further each time."""
    world = Gated(STOCK, page_size=1_000)
    world.sell(0)
    before = [delta.token for delta in of_one_instant(0, 10_000)]
    low, listed = tokens.last_of(BASE_MS + SLICE_MS), sorted(before[:2_000])
    for n in range(50):  # of the time when they were above `low`, and since
        names = listed[40 * n : 40 * n + 40]
        hi = max(listed[: 40 * n + 40])
        world.home.store(
            [items.filed_item(Filed(HERE, hi, n + 1, at(-1_000), dict.fromkeys(names, 1)))]
        )
    world.home.store([items.late_item(HERE, token, 1, 51) for token in before[2_000:]])
    world.now_ms = BASE_MS + 10 * MINUTE_MS
    world.put(low=low, top=low, version=51, total=10_000, count=10_000)
    gates = world.gates(COUNTER)
    for told, most in (({"replayed": 100, "recorded": 150}, 50), ({"replayed": 250}, 20)):
        waits, answers = round_trips(world, add_many(gates, of_one_instant(9_900, 250)))
        assert Counter(answer.outcome for answer in answers) == told
        assert waits < most
    assert (world.gate().number, world.gate().value) == (10_151, 10_150)


def test_changes_of_a_full_instant_are_looked_up_once() -> None:
    """The group looks them up together; each is then decided alone, by the version at which it
    was looked up.
    """
    world = Gated()
    world.rolled(slack_ms=100_000)
    names = {at(-20_000 - n): 3 for n in range(12)}
    decided = grouped(world, names)
    assert decided == [counted(3)] * 3 + [counted(REFUSED)] * 9
    assert sum(isinstance(each, Together) for each in world.home.asked) == 1


# -- who makes a gate


def test_a_first_gate_of_a_replica_sees_other_lanes_changes() -> None:
    """They are from before the limit, and in no value.

    Where they have not arrived nobody can see them.
    """
    old = Delta(HERE, at(-MINUTE_MS), -3)
    for sees_changes, sees_gate in ((True, False), (False, False), (True, True)):
        world = Gated()
        if sees_gate:
            world.sell(0)
            world.copy(HERE, B)
        if sees_changes:
            world.away.put(old)
        if sees_changes and not sees_gate:
            with refused(world.away, LimitMismatch, f"{HERE}: it has changes that no gate decided"):
                world.sell(-1, THERE)
        else:
            assert world.sell(-1, THERE) == -1


def test_who_opens_the_first_rights_sees_each_lane_there() -> None:
    """A delta or a checkpoint, of its own lane or of another one, also where there is a gate."""
    for lane, sees_gate in product((HERE, THERE), (False, True)):
        for item in (delta_item(Delta(lane, at(-MINUTE_MS), -3)), keyed(checkpoint_key(lane))):
            world = Gated()
            if sees_gate:
                world.sell(0, THERE)
                world.copy(THERE, A)
            world.home.store([item])
            with refused(world.home, LimitMismatch, f"{lane}: it has changes that no gate decided"):
                world.sell(1)
            assert GATE not in world.home.items


def test_a_first_change_is_decided_by_the_put_of_its_gate() -> None:
    for change, outcome, rights, updates in ((3, 3, 7, 1), (11, REFUSED, 10, 2)):
        world = Gated()
        assert world.sell(change) == outcome
        put = next(request for request in world.home.asked if isinstance(request, Put))
        assert [*put.item["recent"]["M"].values()] == [{"N": "3"}] * (outcome == 3)
        assert (world.gate().rights[UP], world.home.kinds.count(Update)) == (rights, updates)


def test_a_put_that_is_told_nothing_reads_the_gate_again() -> None:
    """Another process makes the gate first, and the refusal of ours shows nothing."""
    world = Gated()
    gates = world.gates(COUNTER)
    there = items.new_gate(gates.lanes[0], gates.limit)
    world.home.before(Put, lambda _: world.home.store([there]), 1)
    world.home.after(Put, lambda _, answer: answer and {}, 1)
    read = world.home.run(gates.read(gates.lanes[0]))
    assert read == gates.gate(gates.lanes[0], there)


# -- what a process remembers


def test_what_is_remembered_is_aged_by_both_clocks() -> None:
    """A wall clock that was set back, and a process that slept while the other clock stood
    still.
    """
    now = Instant(BASE_MS, 5_000)
    for wall_ms, steady_ms, knows in (
        (BASE_MS + REMEMBERED_MS, 5_000 + REMEMBERED_MS, True),
        (BASE_MS + 500, 5_000 + 3_600_000, False),
        (BASE_MS + 3_600_000, 5_000 + 500, False),
        (BASE_MS - 1, 5_000 + 500, False),
    ):
        memory, later = SoldOut(), Instant(wall_ms, steady_ms)
        memory.note(COUNTER, UP, 3, now, Left(10, 2))
        memory.note_silent(B, BUSY, now)
        assert (memory.knows(COUNTER, UP, 3, later) is not None, B in memory.silent(later)) == (
            knows,
            knows,
        )


def test_sold_out_asks_no_lane_again_for_more_than_was_left() -> None:
    world = Gated()
    gates = world.gates(COUNTER)
    world.sell(7)
    for change, asks_lanes in ((9, True), (4, False), (12, False), (3, False), (1, True)):
        delta = world.new(change)
        world.now_ms -= 990  # at the same moment
        world.home.asked.clear()
        world.home.run(decide_change(gates, delta))
        assert (change, world.home.kinds != [Update]) == (change, asks_lanes)


# -- another limit


def test_a_limit_is_tightened_by_rights_of_other_lanes() -> None:
    world = Gated()
    world.sell(1, THERE)
    run = world.home.run
    assert (
        run(set_limit(world.gates(COUNTER), None, 2)).rights[UP] + world.gate(THERE).rights[UP] == 1
    )
    assert run(set_limit(world.gates(COUNTER), None, 10**18)).bounds[UP] == 10**18
    assert [run(set_limit(world.gates(COUNTER), None, 9)).epoch for _ in range(2)] == [3, 3]
    both = Gated(Limit(floor=-1, ceiling=1, region=A))
    assert both.home.run(set_limit(both.gates(COUNTER), 0, 0)).bounds == {DOWN: 0, UP: 0}
    for missing in ("ceiling", "epoch"):
        item = dict(both.home.items[GATE])
        del item[missing]
        both.home.store([item])
        with pytest.raises(DamagedItem, match=f"{missing} is missing"):
            both.home.run(set_limit(both.gates(COUNTER), -1, 1 if missing == "epoch" else None))
        both.home.alter(GATE, ceiling={"N": "0"}, epoch={"N": "1"})


def test_a_gate_of_other_sides_than_the_settings_decides_nothing() -> None:
    for of_the_gate, of_the_settings in ((SEATS, STOCK), (SEATS, BOTH), (BOTH, SEATS)):
        world = Gated(of_the_gate)
        world.sell(1)
        world.changed["limits"] = {COUNTER: of_the_settings}
        with refused(world.home, LimitMismatch, "its gate has rights of"):
            world.sell(1)
