"""What an audit finds, and what a rebuild makes of gates that were restored, deleted or damaged."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from compactor.gate_audit import Books
from compactor.gate_rebuild import Rebuilt, rebuild, settle
from ledger.core import tokens
from ledger.core.errors import GaveUp, LaneDamaged, LimitMismatch, NotYetReplicated
from ledger.core.limit import DOWN, UP, Limit
from ledger.core.ranges import CHANGE_MAX
from ledger.core.requests import At, Get, GetMany, Item, Key, Put, Query
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.copies import read_copies
from ledger.gate.decide import decide_change
from ledger.gate.gate import REFUSED, Gate
from ledger.gate.history import outcomes
from ledger.gate.set_limit import set_limit
from tests.ledger.seats import (
    COUNTER,
    EAGER,
    FROM_HERE,
    GATE,
    HERE,
    SEATS,
    STOCK,
    THERE,
    TO_THERE,
    Gated,
    at,
)
from tests.world import A, B, Region

ITEMS = {lane: items.gate_key(lane) for lane in (HERE, THERE)}


def backup(world: Gated) -> dict[str, dict[Key, Item]]:
    return {region: dict(table.items) for region, table in world.regions.items()}


def restore(world: Gated, backup: Mapping[str, Mapping[Key, Item]], kind: str) -> None:
    """The items of that kind ("gate", "past", "hold") become those of the backup."""
    for region, table in world.regions.items():
        table.drop(*[key for key in table.items if key.pk.startswith(kind)])
        table.store([item for key, item in backup[region].items() if key.pk.startswith(kind)])


def rebuilt(world: Gated) -> dict[Lane, Rebuilt]:
    """By lane; and an audit finds nothing wrong after it."""
    made = {each.gate.lane: each for each in world.home.run(rebuild(world.gates(COUNTER)))}
    assert world.audit() == []
    assert all(world.gate(lane) == each.gate for lane, each in made.items())
    return made


@pytest.fixture
def world() -> Gated:
    """Ten seats, of which five are sold here, one by one; all that is decided is filed at once."""
    world = Gated(filing=EAGER)
    for _ in range(5):
        world.sell(1)
    return world


# -- an audit


def test_an_audit_finds_what_a_gate_cannot_have_come_to(world: Gated) -> None:
    world.sell(2, THERE)
    for _ in range(2):
        world.hold(1)
    assert world.audit() == []
    table, whole = world.home, world.home.items[GATE]
    segment = next(key for key in table.items if key.sk.startswith("segment#"))
    note = next(key for key in table.items if key.pk.startswith("hold#"))
    token = next(iter(items.filed_of(HERE, table.items[segment]).outcomes))
    future = tokens.keyed(COUNTER, "never", world.now_ms)
    before = dict(table.items)
    for change, finding in (
        (segment, "its gate says"),
        (note, "its rights up"),
        (GATE, "its gate is gone"),
        ({**whole, "total": {"N": "9"}}, "its gate says"),
        ({**whole, "up": {"N": "9"}}, "its rights up"),
        ({**whole, f"given:{B}#0:up": {"N": "0"}}, "it got"),
        ({**whole, "recent": {"M": {token: {"N": "4"}}}}, "with another outcome than the gate has"),
        ({**whole, "held": {"M": {token: {"N": "1"}}}}, "is listed and held"),
        (items.late_item(HERE, token, 4, 1), "with two outcomes"),
        (items.late_item(HERE, future, 4, 99), "was never decided"),
    ):
        table.drop(change) if isinstance(change, Key) else table.store([change])
        assert [each for each in world.audit() if finding in each], (finding, world.audit())
        table.drop(*table.items)
        table.store(before.values())
    assert world.audit() == []


def test_an_audit_and_a_history_ask_as_strongly_as_they_must(world: Gated) -> None:
    world.sell(1, THERE)
    world.home.asked.clear()
    assert world.audit() == []
    made = [each.request if isinstance(each, At) else each for each in world.home.asked]
    reads = [each for each in made if isinstance(each, Get | GetMany | Query)]
    assert all(each.consistent for each in reads)
    assert [reads.count(Get(key)) for key in ITEMS.values()] == [2, 2]
    for consistent in (True, False):
        world.home.asked.clear()
        world.home.run(outcomes(HERE, consistent=consistent))
        world.home.run(read_copies([world.gates(COUNTER)], consistent=consistent))
        assert {getattr(each, "consistent", None) for each in world.home.asked} == {consistent}
    world.home.drop(next(key for key in world.home.items if key.sk.startswith("segment#")))
    with pytest.raises(NotYetReplicated, match="not all that its gate counts"):
        world.home.run(outcomes(HERE, consistent=True))


def test_a_gate_that_is_gone_is_missed_by_what_it_left() -> None:
    for elsewhere in (HERE, THERE):  # where another lane has rights of it, and where none has
        world = Gated(filing=EAGER)
        world.sell(1, elsewhere)
        world.hold(1)
        whole = backup(world)
        for kinds in (("past", "hold"), ("past",), ("hold",)):
            world.home.drop(*[key for key in world.home.items if not key.pk.startswith(kinds)])
            assert f"{HERE}: its gate is gone." in world.audit()
            restore(world, whole, "")
    for gone in (HERE, THERE):
        other = Gated()
        other.sell(1)
        assert other.audit() == []  # a lane that never had a gate is not missed
        other.sell(2, THERE)
        other[gone.region].drop(ITEMS[gone])
        assert [each for each in other.audit() if each.startswith(f"{gone}:")] == [
            f"{gone}: its gate is gone."
        ]


def test_what_happens_while_an_audit_goes_on_is_not_wrong(world: Gated) -> None:
    """A gate is made, and rights are given, after the first was read; one that is always written
    is given up.
    """
    made = Gated()
    made.sell(1)
    made.home.before(
        Get,
        lambda _: made.away.run(decide_change(made.gates(COUNTER, B), made.new(1, THERE))),
        times=1,
    )
    assert made.audit() == []
    world.sell(1, THERE)
    world.away.before(Get, lambda _: [world.sell(1, THERE) for _ in range(4)], times=1)
    assert world.audit() == []
    world.home.before(
        Query, lambda _: world.home.alter(GATE, slack={"N": f"{len(world.home.asked)}"})
    )
    with pytest.raises(GaveUp, match="during each of 5 recounts"):
        world.audit()


# -- a rebuild


def test_a_gate_older_than_its_files_counts_each_token_once(
    world: Gated,
) -> None:
    older, deltas = backup(world), [world.new(1) for _ in range(3)]
    for delta in deltas:
        world.decide(delta)
    restore(world, older, "gate")
    recent = world.home.items[GATE]["recent"]["M"]
    world.home.alter(GATE, recent={"M": {**recent, deltas[0].token: {"N": "2"}}})
    made = rebuilt(world)[HERE]
    assert (world.total(), world.gate().number, made.lost, made.twice) == (
        8,
        8,
        0,
        (deltas[0].token,),
    )
    assert "which counts" in " ".join(made.told)
    assert [world.decide(delta).before for delta in deltas] == [True] * 3
    restore(world, older, "gate")
    world.sell(1)  # before the rebuild: it files under a version that was used
    made = rebuilt(world)[HERE]
    assert (made.lost < 0, "that its gate did not count" in made.told[0], world.total()) == (
        True,
        True,
        9,
    )


def test_an_unlisted_count_of_a_gate_stays_in_the_value_once(world: Gated) -> None:
    older = backup(world)
    for change in (2, 1, 1):
        world.sell(change)
    restore(world, older, "past")
    half, top = world.home.items[GATE], world.gate().top
    made = rebuilt(world)[HERE]
    name = f"lost: {HERE} {made.gate.version - 1} 3 4"
    assert made.late == {tokens.keyed(COUNTER, name, tokens.time_ms(top)): 4}
    assert (made.lost, made.lost_sum, world.total()) == (3, 4, 9)
    assert world.gate().number == 6  # one entry in the place of three
    assert "3 changes of sum 4 are in the value and their tokens are lost" in made.told[0]
    entries = {*world.home.items}
    world.home.store([half])  # as if it had ended when the entry was written, and the gate was not
    rebuilt(world)
    assert (rebuilt(world)[HERE].lost, world.total(), {*world.home.items}) == (0, 9, entries)
    world.put(total=world.gate().total + 5)  # of as many changes: they sum to what they sum to
    assert (rebuilt(world)[HERE].late, world.total(), world.sell(2)) == ({}, 9, REFUSED)


def test_a_loss_above_the_largest_change_takes_several_entries() -> None:
    world = Gated(STOCK)
    world.sell(1)
    world.home.alter(GATE, total={"N": str(2 * CHANGE_MAX + 5)}, count={"N": "4"})
    made = rebuilt(world)[HERE]
    assert (made.lost, sorted(made.late.values())) == (4, [5, CHANGE_MAX, CHANGE_MAX])
    assert world.gate().value == 2 * CHANGE_MAX + 6


def test_a_limit_is_the_gates_or_the_settings_where_it_is_gone(
    world: Gated,
) -> None:
    world.home.run(set_limit(world.gates(COUNTER), None, 7))
    for epoch, ceiling in ((1, 7), (0, 10)):
        rebuilt(world)
        assert (world.gate().bounds[UP], world.gate().epoch) == (ceiling, epoch)
        world.home.drop(GATE)
    unused = Gated(Limit(floor=-2, ceiling=5, region=B))
    rebuilt(unused)  # lanes that were never used get gates with the first rights
    assert [unused.gate(lane).rights for lane in (HERE, THERE)] == [
        {DOWN: 0, UP: 0},
        {DOWN: 2, UP: 5},
    ]


OVER, BACK = TO_THERE, FROM_HERE


def test_rights_are_settled_until_none_owes() -> None:
    for sold, given, got, rights, sent in (
        ((1, 0), {}, {}, (9, 0), {}),
        ((1, 0), {OVER: 0}, {}, (9, 0), {OVER: 0}),
        ((1, 1), {}, {}, (8, 0), {OVER: 1}),
        ((1, 8), {OVER: 3}, {BACK: 2}, (1, 0), {OVER: 8}),
        ((1, 8), {OVER: 2}, {BACK: 3}, (1, 0), {OVER: 8}),
        ((1, 2), {OVER: 5}, {BACK: 3}, (4, 3), {OVER: 5}),
        ((1, 2), {OVER: 3}, {BACK: 5}, (4, 3), {OVER: 5}),
        ((8, 5), {}, {}, (0, -3), {OVER: 2}),
    ):
        here, there = settled(
            [
                replace(selling(HERE, sold[0]), given=given),
                replace(selling(THERE, sold[1]), got=got),
            ]
        )
        assert (here.rights[UP], there.rights[UP]) == rights
        assert (here.given, here.got, there.given) == (sent, {}, {})
        assert there.got == ({BACK: sent[OVER]} if sent else {})
    lanes = [replace(HERE, shard=shard) for shard in range(4)]
    after = settled(
        [selling(lane, change) for lane, change in zip(lanes, (6, -2, 3, 2), strict=True)]
    )
    assert [gate.rights[UP] for gate in after] == [0, 1, 0, 0]
    assert [dict(gate.given) for gate in after] == [
        {(f"{A}#2", UP): 3, (f"{A}#3", UP): 1},
        {(f"{A}#3", UP): 1},
        {},
        {},
    ]


def selling(lane: Lane, change: int) -> Gate:
    return replace(items.gate_of(lane, items.new_gate(lane, SEATS)), recent={at(0): change})


def settled(seen: list[Gate]) -> list[Gate]:
    return settle([Books(each.lane, None, [], [], {}) for each in seen], seen)


def test_a_gate_written_meanwhile_is_left_as_it_is(
    world: Gated,
) -> None:
    world.home.before(
        lambda each: is_put(each), lambda _: world.home.alter(GATE, slack={"N": "7"}), times=1
    )
    with pytest.raises(GaveUp, match="rebuild again"):
        world.home.run(rebuild(world.gates(COUNTER)))
    assert (world.gate().slack_ms, world.gate().version) == (7, 5)
    # as an SDK may
    world.home.before(is_put, lambda each: Region.answer(world.home, each), times=1)
    assert rebuilt(world)[HERE].gate == world.gate()


def is_put(request: Any) -> bool:
    return isinstance(request, Put) and request.key == GATE


def test_a_case_for_a_person_rebuilds_nothing(world: Gated) -> None:
    token = next(iter(world.home.run(outcomes(HERE, consistent=True))))
    late = items.late_item(HERE, token, 7, 1)
    for error, limit, stored in ((LaneDamaged, SEATS, [late]), (LimitMismatch, STOCK, [])):
        world.changed["limits"] = {COUNTER: limit}
        world.home.store(stored)
        before = backup(world)
        with pytest.raises(error):
            world.home.run(rebuild(world.gates(COUNTER)))
        assert backup(world) == before
        world.home.drop(items.late_key(HERE, token))
