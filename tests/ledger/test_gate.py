"""What a gate decides, seen on two tables in memory: a Region each, which do not replicate."""

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from lab.histories.filing import Filing, file_as
from ledger import tokens
from ledger.actions import Add
from ledger.errors import (
    DamagedItem,
    GateLost,
    InvalidInput,
    LimitMismatch,
    LimitReached,
    NoSuchHold,
    OutOfReach,
    Throttled,
)
from ledger.gate import items, updates
from ledger.gate.bounds import set_limit
from ledger.gate.decide import Decision, add_group, decide_change, decide_hold, end
from ledger.gate.gate import EXPIRED, REFUSED, RELEASED, Gate
from ledger.gate.gates import Gates
from ledger.gate.move import obtain
from ledger.gate.past import Known
from ledger.gate.recount import audit, outcomes, standing
from ledger.limit import DOWN, UP, Limit
from ledger.memory import MemoryTable
from ledger.requests import (
    At,
    Delete,
    Get,
    GetMany,
    Instant,
    Key,
    Program,
    Put,
    PutMany,
    Query,
    Request,
    Result,
    Update,
    run,
)
from ledger.tokens import hold_token
from ledger.values import Delta, Lane

A, B = "eu-west-1", "us-east-1"
COUNTER = "seats:gig"
HERE, THERE = Lane(A, 0, COUNTER), Lane(B, 0, COUNTER)
SEATS = Limit(ceiling=10, region=A)
STOCK = Limit(floor=0)
EAGER = Filing(enough=1, beside=0, draw=1, holds_kept=0, holds_left=0)


class Table(MemoryTable):
    """Keeps what it was asked, and answers nothing while it is down."""

    def __init__(self) -> None:
        super().__init__(page_size=3)
        self.asked: list[Request] = []
        self.is_down = False
        self.refuses: type[Any] | tuple[()] = ()

    def answer(self, request: Request, /) -> Any:
        if self.is_down or isinstance(request, self.refuses):
            raise Throttled("This Region is busy. Nothing was written.")
        self.asked.append(request)
        return super().answer(request)


class World:
    """Two Regions and a clock; a change is asked for a second after the one before."""

    def __init__(self, limit: Limit, filing: Filing | None = None) -> None:
        self.tables = {A: Table(), B: Table()}
        for region, table in self.tables.items():
            table.peers = {other: self.tables[other] for other in self.tables if other != region}
        self.limit, self.filing = limit, filing or Filing()
        self.now_ms = 1_700_000_000_000
        self._numbers = count()

    def gates(self, region: str) -> Gates:
        lanes = (HERE, THERE) if region == A else (THERE, HERE)
        file_as(self.filing)
        return Gates(lanes, self.limit, region)

    def delta(self, change: int, lane: Lane = HERE) -> Delta:
        self.now_ms += 1_000
        return Delta(lane, tokens.keyed(COUNTER, str(next(self._numbers)), self.now_ms), change)

    def held(self, change: int, length_ms: int = 60_000) -> Delta:
        self.now_ms += 1_000
        return Delta(HERE, hold_token(COUNTER, str(next(self._numbers)), self.now_ms, length_ms), change)

    def run(self, program: Program[Result], region: str = A) -> Result:
        return run(program, self.tables[region], lambda: Instant(self.now_ms, self.now_ms))

    def add(self, change: int, lane: Lane = HERE, region: str = A) -> Decision:
        return self.run(decide_change(self.gates(region), self.delta(change, lane)), region)

    def gate(self, lane: Lane = HERE) -> Gate:
        return items.gate_of(lane, self.tables[lane.region].items[items.gate_key(lane)])

    def files(self) -> list[str]:
        """The sort keys of what is filed, notes of holds included."""
        return [key.sk for key in self.tables[A].items if key.pk in (items.past_pk(HERE), items.hold_pk(HERE))]


def counted(change: int, *, before: bool = False) -> Decision:
    return Decision(Known(change), before)


@pytest.fixture(params=[Filing(), EAGER], ids=["in-the-gate", "filed-at-once"])
def seats(request: pytest.FixtureRequest) -> World:
    """Ten seats; and the same where everything that was decided leaves the gate at once."""
    return World(SEATS, request.param)


def test_a_change_counts_once_and_is_told_so_for_ever(seats: World) -> None:
    delta = seats.delta(4)
    assert seats.run(decide_change(seats.gates(A), delta)) == counted(4)
    seats.add(1)
    for region in (A, B):
        assert seats.run(decide_change(seats.gates(region), delta), region) == counted(4, before=True)
    other = replace(delta, change=5)
    assert seats.run(decide_change(seats.gates(A), other)) == counted(4, before=True)
    assert (seats.gate().value, seats.gate().number) == (5, 2)


def test_an_add_is_one_update() -> None:
    world = World(SEATS)
    world.add(1)
    world.tables[A].asked.clear()
    world.add(1)
    assert [type(request) for request in world.tables[A].asked] == [Update]


def test_what_a_limit_refuses_is_refused_for_ever(seats: World) -> None:
    seats.add(9)
    refused = seats.delta(2)
    assert seats.run(decide_change(seats.gates(A), refused)) == Decision(Known(REFUSED), before=False)
    assert seats.add(-5) == counted(-5)
    assert seats.run(decide_change(seats.gates(A), refused)) == Decision(Known(REFUSED), before=True)
    assert seats.run(outcomes(HERE, consistent=True)).get(refused.token) == REFUSED
    assert (seats.gate().value, seats.gate().number) == (4, 2)


def test_a_change_of_nothing_counts_and_needs_no_right() -> None:
    world = World(STOCK)
    assert world.add(0) == counted(0)
    assert (world.gate().value, world.gate().number) == (0, 1)
    assert world.add(-1) == Decision(Known(REFUSED), before=False)


def test_a_lane_without_rights_gets_them_from_the_other_region_and_all_can_be_taken_there(seats: World) -> None:
    for _ in range(10):
        assert seats.add(1, THERE, B) == counted(1)
    assert seats.add(1, THERE, B).known == Known(REFUSED)
    assert seats.add(1).known == Known(REFUSED)
    given, got = seats.gate(HERE), seats.gate(THERE)
    assert (given.given, got.got) == ({(f"{B}#0", UP): 10}, {(f"{A}#0", UP): 10})
    assert seats.gate(HERE).own(UP) + seats.gate(THERE).own(UP) == 0


def test_what_a_region_that_is_down_may_have_is_not_decided() -> None:
    world = World(SEATS)
    world.add(6)
    world.tables[A].is_down = True
    delta = world.delta(1, THERE)
    with pytest.raises(OutOfReach, match="Nothing was decided"):
        world.run(decide_change(world.gates(B), delta), B)
    world.tables[A].is_down = False
    assert world.run(decide_change(world.gates(B), delta), B) == counted(1)


def test_what_was_given_and_lost_on_its_way_is_taken_over_by_whoever_needs_it() -> None:
    world = World(SEATS)
    world.add(0)
    world.tables[A].answer(updates.give(world.gate(), (f"{B}#0", UP), 10))  # as by a process that died after it
    assert world.gate(HERE).rights == {UP: 0}
    assert world.add(4) == counted(4)
    assert world.add(6, THERE, B) == counted(6)


def test_of_two_who_ask_for_one_lane_at_once_the_second_takes_over_what_the_first_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(SEATS)
    world.add(0)
    world.add(0, THERE, B)
    before = [*world.tables[A].asked]
    answer, came = world.tables[A].answer, list[bool]()

    def answers(request: Request, /) -> Any:
        if isinstance(request, Update) and not came:
            came.append(True)
            came.append(world.run(obtain(world.gates(B), THERE, UP, 1), B))
        return answer(request)

    monkeypatch.setattr(world.tables[A], "answer", answers)
    came.append(world.run(obtain(world.gates(B), THERE, UP, 1), B))
    assert came == [True, True, True]
    assert len([each for each in world.tables[A].asked[len(before) :] if isinstance(each, Update)]) == 2
    assert world.gate().given == {(f"{B}#0", UP): world.gate(THERE).rights[UP]} == {(f"{B}#0", UP): 5}


def test_a_hold_is_captured_whole_or_in_part_or_released_once(seats: World) -> None:
    gates = seats.gates(A)
    for outcome, left in ((3, 7), (1, 6), (RELEASED, 6), (0, 6)):
        held = seats.held(3)
        assert seats.run(decide_hold(gates, held)) == Decision(Known(held=3), before=False)
        assert seats.run(decide_hold(gates, held)) == Decision(Known(held=3), before=True)
        assert seats.run(end(gates, held, outcome)) == Decision(Known(outcome), before=False)
        for again in (outcome, 2, RELEASED):
            assert seats.run(end(gates, held, again)) == Decision(Known(outcome), before=True)
        assert seats.run(decide_hold(gates, held)) == Decision(Known(outcome), before=True)
        assert seats.gate().rights[UP] == left
    assert seats.gate().number == 3
    assert not [sk for sk in seats.files() if sk.startswith("0")]  # no note of a hold is left


def test_a_hold_that_is_over_ends_when_somebody_needs_what_it_keeps(seats: World) -> None:
    gates = seats.gates(A)
    held = [seats.held(3) for _ in range(3)]
    for each in held:
        seats.run(decide_hold(gates, each))
    assert seats.add(2).known == Known(REFUSED)
    seats.now_ms += 61_000
    assert seats.add(8) == counted(8)
    for each in held:
        assert seats.run(end(gates, each, 3)) == Decision(Known(EXPIRED), before=True)
    assert not [sk for sk in seats.files() if sk.startswith("0")]


def test_there_is_no_end_to_a_hold_that_was_refused(seats: World) -> None:
    gates, held = seats.gates(A), seats.held(11)
    assert seats.run(decide_hold(gates, held)).known == Known(REFUSED)
    for outcome in (11, 0, RELEASED):
        with pytest.raises(NoSuchHold, match="there is no hold"):
            seats.run(end(gates, held, outcome))


def test_there_is_no_end_to_what_was_never_held_nor_to_a_hold_of_another_amount(seats: World) -> None:
    gates, held = seats.gates(A), seats.held(3)
    with pytest.raises(NoSuchHold, match="there is no hold"):
        seats.run(end(gates, held, 3))
    seats.run(decide_hold(gates, held))
    with pytest.raises(NoSuchHold, match="is of 3, not of 4"):
        seats.run(end(gates, replace(held, change=4), 3))
    assert seats.run(end(gates, held, 3)) == Decision(Known(3), before=False)


def test_a_group_is_one_update_and_a_refusal_in_it_fails_nobody_else() -> None:
    world = World(SEATS)
    world.add(0)
    world.tables[A].asked.clear()
    some = {world.delta(0).token: change for change in (1, 2, 3)}
    assert world.run(add_group(world.gates(A), HERE, some)) == {t: counted(n) for t, n in some.items()}
    assert [type(request) for request in world.tables[A].asked] == [Update]
    more = {world.delta(0).token: change for change in (4, 3)} | dict([next(iter(some.items()))])
    told = world.run(add_group(world.gates(A), HERE, more))
    assert [told[token] for token in more] == [
        counted(4),
        Decision(Known(REFUSED), before=False),
        counted(1, before=True),
    ]


def test_a_group_whose_tokens_were_filed_is_looked_up(seats: World) -> None:
    some = {seats.delta(0).token: 1 for _ in range(4)}
    seats.run(add_group(seats.gates(A), HERE, some))
    seats.add(1)
    late = dict.fromkeys([tokens.keyed(COUNTER, "late", seats.now_ms - 500_000), *some], 1)
    told = seats.run(add_group(seats.gates(A), HERE, late))
    assert list(told.values()).count(counted(1, before=True)) == 4
    assert seats.gate().number == 6


def test_an_old_change_is_looked_up_and_filed_by_itself() -> None:
    world = World(SEATS, EAGER)
    for _ in range(6):
        world.add(1)
    old = Delta(HERE, tokens.keyed(COUNTER, "old", world.now_ms - 86_400_000), 2)
    assert world.run(decide_change(world.gates(A), old)) == counted(2)
    world.add(-1)
    assert f"late#{old.token}" in world.files()
    assert world.run(decide_change(world.gates(A), old)) == counted(2, before=True)
    listed = world.run(outcomes(HERE, consistent=True))
    assert list(listed) == sorted(listed)
    assert sum(listed.values()) == 7


def test_a_roll_that_fails_is_no_failure_of_the_change_that_began_it() -> None:
    """Its "nothing was written" would be read as the change's, which counts."""
    world = World(SEATS, EAGER)
    world.add(1)
    world.tables[A].refuses = PutMany
    assert world.add(2) == counted(2)
    assert (world.gate().value, len(world.gate().recent)) == (3, 1)


def test_what_is_refused_is_filed_too() -> None:
    """Else the gate of a counter that is sold out grows until it is full."""
    world = World(SEATS)
    world.add(10)
    told = [world.add(1).known.outcome for _ in range(80)]
    assert told == [REFUSED] * 80
    assert len(world.gate().recent) <= 2 * Filing().enough
    assert world.run(audit(world.gates(A))) == []


def test_a_late_group_moves_the_slack_so_that_the_next_one_is_not_looked_up() -> None:
    world = World(STOCK)
    lateness_ms = 2_000
    for _ in range(12):
        world.now_ms += 60
        times = [world.now_ms - lateness_ms * n // 30 for n in range(30)]
        names = [tokens.keyed(COUNTER, f"{world.now_ms}.{n}", at_ms) for n, at_ms in enumerate(times)]
        some = dict.fromkeys(names, 1)
        world.run(add_group(world.gates(A), HERE, some))
    assert (world.gate().slack_ms or 0) > 1_000


def test_what_a_roll_that_lost_has_filed_stays_as_it_is() -> None:
    world = World(SEATS, EAGER)
    for _ in range(3):
        world.add(1)
    old = Delta(HERE, tokens.keyed(COUNTER, "old", world.now_ms - 86_400_000), 2)
    world.tables[A].refuses = PutMany
    world.run(decide_change(world.gates(A), old))
    copy = items.late_item(HERE, old.token, 2, world.gate().version + 1)
    world.tables[A].answer(Put(copy))
    world.tables[A].answer(Update(items.gate_key(HERE), (Add("version", 1),)))  # another roll was first
    world.tables[A].refuses = ()
    world.add(1)
    assert old.token not in world.gate().recent
    assert world.tables[A].items[items.late_key(HERE, old.token)] == copy
    assert world.run(outcomes(HERE, consistent=True))[old.token] == 2


def test_a_gate_that_is_gone_is_not_made_anew() -> None:
    for world, gone in ((World(SEATS, EAGER), HERE), (World(SEATS), THERE)):
        world.add(1)
        world.add(1, THERE, B)
        table = world.tables[gone.region]
        copy = world.tables[A].items[items.gate_key(HERE)]
        world.tables[B].answer(Put(copy))  # replicated
        table.answer(Delete(items.gate_key(gone)))
        with pytest.raises(GateLost, match=f"{HERE} shows .* Nothing was written"):
            world.add(1, gone, gone.region)
        assert items.gate_key(gone) not in table.items


def test_a_gate_that_is_gone_is_not_made_anew_where_it_had_filed_nothing_but_holds() -> None:
    world = World(SEATS, EAGER)
    for _ in range(2):
        world.run(decide_hold(world.gates(A), world.held(5)))
    notes = world.files()
    assert notes
    assert not any(sk.startswith((items.SEGMENTS_FROM, items.LATE_FROM)) for sk in notes)
    world.tables[A].answer(Delete(items.gate_key(HERE)))
    with pytest.raises(GateLost, match="Nothing was written"):
        world.add(10)  # a new gate would take what the holds keep
    assert items.gate_key(HERE) not in world.tables[A].items


def test_a_gate_is_not_made_while_what_its_lane_filed_cannot_be_read() -> None:
    world = World(SEATS)
    world.tables[A].refuses = Query
    with pytest.raises(Throttled):
        world.add(1)
    assert not world.tables[A].items


def test_a_process_with_another_limit_decides_nothing() -> None:
    world = World(SEATS)
    world.add(1)
    before = dict(world.tables[A].items)
    for limit in (STOCK, Limit(floor=0, ceiling=10, region=A)):
        world.limit = limit
        for program in (decide_change(world.gates(A), world.delta(-1)), decide_hold(world.gates(A), world.held(1))):
            with pytest.raises(LimitMismatch, match="Nothing was written"):
                world.run(program)
    assert world.tables[A].items == before


def test_a_damaged_gate_is_told_and_left_as_it_is() -> None:
    world = World(SEATS)
    world.add(1)
    damaged = {**world.tables[A].items[items.gate_key(HERE)], "low": {"N": "1"}}
    world.tables[A].answer(Put(damaged))
    with pytest.raises(DamagedItem, match="low"):
        world.add(20)
    assert world.tables[A].items[items.gate_key(HERE)] == damaged


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ceiling", {"N": "-1"}),
        ("ceiling", {"N": str(10**18 + 1)}),
        ("floor", {"N": str(-(10**18) - 1)}),
        ("floor", {"N": "11"}),
        ("epoch", {"N": "-1"}),
        ("slack", {"N": "-1"}),
    ],
)
def test_a_limit_that_no_gate_can_have_is_told_as_damage_of_what_is_wrong(name: str, value: Any) -> None:
    world = World(Limit(floor=0, ceiling=10, region=A))
    world.add(1)
    world.tables[A].answer(Put({**world.tables[A].items[items.gate_key(HERE)], name: value}))
    with pytest.raises(DamagedItem, match=name):
        world.run(standing(world.gates(A), consistent=True))


@pytest.mark.parametrize("name", ["floor", "ceiling", "epoch"])
def test_a_limit_is_not_set_where_the_gate_does_not_say_what_it_was(name: str) -> None:
    world = World(Limit(floor=-5, ceiling=10, region=A))
    world.add(8)
    item = world.tables[A].items[items.gate_key(HERE)]
    damaged = {each: value for each, value in item.items() if each != name}
    world.tables[A].answer(Put(damaged))
    with pytest.raises(DamagedItem, match=f"{name} is missing"):
        world.run(set_limit(world.gates(A), -6, 12))
    assert world.tables[A].items[items.gate_key(HERE)] == damaged


def test_a_limit_is_raised_at_once_and_lowered_as_far_as_nothing_is_sold() -> None:
    world = World(SEATS)
    world.add(8)
    gates = world.gates(A)
    assert world.run(set_limit(gates, None, 12)).rights == {UP: 4}
    world.add(2, THERE, B)
    assert world.run(set_limit(gates, None, 11)).bounds == {DOWN: None, UP: 11}
    with pytest.raises(LimitReached, match="Nothing was written"):
        world.run(set_limit(gates, None, 9))
    assert world.run(set_limit(gates, None, 10)).epoch == 3
    assert world.run(set_limit(gates, None, 10)).epoch == 3
    assert world.add(1).known == Known(REFUSED)
    for floor, ceiling in ((0, 10), (0, None), (None, None), (None, 0.5), (None, 10**19)):
        with pytest.raises(InvalidInput):
            world.run(set_limit(gates, floor, ceiling))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no region"):
        world.run(set_limit(replace(gates, limit=STOCK), 0, None))
    both = World(Limit(floor=-1, ceiling=1, region=A))
    for bounds in ((2, 1), (2, None), (None, -2)):
        with pytest.raises(InvalidInput, match="above the ceiling"):
            both.run(set_limit(both.gates(A), *bounds))
    assert both.run(set_limit(both.gates(A), None, 5)).bounds == {DOWN: -1, UP: 5}


def test_a_read_says_whether_it_is_certainly_within_the_limit() -> None:
    world = World(SEATS)
    world.add(1)
    world.add(3, THERE, B)
    seen = world.run(standing(world.gates(B), consistent=True), B)
    assert (seen.value, seen.count, seen.is_closed) == (3, 1, False)
    world.tables[B].answer(Put(world.tables[A].items[items.gate_key(HERE)]))
    seen = world.run(standing(world.gates(B), consistent=True), B)
    assert (seen.value, seen.count, seen.is_closed) == (4, 2, True)
    assert world.tables[B].asked[-1] == GetMany((items.gate_key(THERE), items.gate_key(HERE)), True)


def test_an_audit_finds_what_a_gate_cannot_have_come_to() -> None:
    world = World(SEATS, EAGER)
    for _ in range(3):
        world.add(1)
    world.add(2, THERE, B)
    world.run(decide_hold(world.gates(A), world.held(1)))
    filed = world.run(decide_hold(world.gates(A), world.held(1)))
    assert filed == Decision(Known(held=1), before=False)
    assert world.run(audit(world.gates(B)), B) == []
    table, key = world.tables[A], items.gate_key(HERE)
    whole, segment = table.items[key], next(k for k in table.items if k.sk.startswith("segment#"))
    note = next(k for k in table.items if k.pk.startswith("hold#"))
    token = next(iter(items.filed_of(HERE, table.items[segment]).outcomes))
    future = tokens.keyed(COUNTER, "never", world.now_ms)
    for write, said in (
        (Delete(segment), "its gate says"),
        (Delete(note), "its rights up"),
        (Delete(key), "its gate is gone"),
        (Put({**whole, "total": {"N": "9"}}), "its gate says"),
        (Put({**whole, "up": {"N": "9"}}), "its rights up"),
        (Put({**whole, f"given:{B}#0:up": {"N": "0"}}), "it got"),
        (Put({**whole, "recent": {"M": {token: {"N": "4"}}}}), "with another outcome than the gate has"),
        (Put({**whole, "held": {"M": {token: {"N": "1"}}}}), "is listed and held"),
        (Put(items.late_item(HERE, token, 4, 1)), "with two outcomes"),
        (Put(items.late_item(HERE, future, 4, 99)), "was never decided"),
    ):
        before = dict(table.items)
        table.answer(write)
        wrong = world.run(audit(world.gates(A)))
        assert any(said in each for each in wrong), (write, wrong)
        for changed in {*before, *table.items}:
            table.answer(Put(before[changed]) if changed in before else Delete(changed))
    assert world.run(audit(world.gates(A))) == []


def test_a_request_to_a_gate_goes_to_its_home() -> None:
    gates = World(SEATS).gates(B)
    request = Get(Key("gate", "gate"))
    assert gates.at(THERE, request) == request
    assert gates.at(HERE, request) == At(A, request)
