"""What a change costs at a gate once a backlog, a clock that was ahead or an outage of those who hold is over."""

from collections.abc import Callable
from functools import partial

import pytest

import ledger.requests
from lab.histories.filing import SHIPPED, Filing, file_as
from ledger import tokens
from ledger.errors import ItemTooLarge
from ledger.gate import items
from ledger.gate.bounds import set_limit
from ledger.gate.decide import add_group, decide_change, decide_hold, end
from ledger.gate.gate import Gate
from ledger.gate.past import roll
from ledger.limit import Limit
from ledger.requests import Now, PutMany
from ledger.tokens import hold_token
from ledger.values import Delta, Lane
from tests.world import A, World

COUNTER = "stock:85123A"
LANE, OTHER = Lane(A, 0, COUNTER), Lane(A, 1, COUNTER)
MINUTE_MS, HOUR_MS = 60_000, 3_600_000


def shop(stock: int = 10**9, filing: Filing = SHIPPED, shards: int = 1) -> World:
    file_as(filing)
    return World((A,), limits={COUNTER: Limit(floor=-stock, region=A)}, shards={COUNTER: shards})


def sale(world: World, change: int = -1, *, after_ms: int = 100, old_ms: int = 0) -> Delta:
    """A change that was first asked for so long ago; ahead of now, below 0."""
    key = world.key()["idempotency_key"]
    world.now_ms += after_ms - 10
    return Delta(LANE, tokens.keyed("", key, world.now_ms - old_ms), change)


def sell(world: World, change: int = -1, **given: int) -> int | None:
    delta = sale(world, change, **given)
    return world.home.run(decide_change(world.gates(COUNTER), delta)).known.outcome


def hold(world: World, length_ms: int = 5 * MINUTE_MS) -> Delta:
    key = world.key()["idempotency_key"]
    held = Delta(LANE, hold_token("", key, world.now_ms, length_ms), -1)
    world.home.run(decide_hold(world.gates(COUNTER), held))
    return held


def spent(world: World, act: Callable[[], object]) -> int:
    """How many requests that takes; several at once are several, and one more."""
    world.home.asked.clear()
    act()
    return sum(not isinstance(request, Now) for request in world.home.asked)


def of_now(world: World, changes: int = 100) -> int:
    """What so many changes of now take, ten a second."""
    return spent(world, lambda: [sell(world) for _ in range(changes)])


def gate(world: World, lane: Lane = LANE) -> Gate:
    return items.gate_of(lane, world.home.items[items.gate_key(lane)])


def notes(world: World) -> int:
    return sum(key.pk == items.hold_pk(LANE) for key in world.home.items)


def test_once_a_backlog_of_hours_has_ended_a_change_of_now_costs_what_it_did() -> None:
    for moved_max in (30, 1_500):
        world = shop(filing=Filing(moved_max=moved_max))
        of_now(world)
        assert 100 <= of_now(world) <= 125
        for number in range(400):
            sell(world, old_ms=HOUR_MS * 9 // 4 - number * HOUR_MS * 7 // 1_600)  # from 2.25 hours to half an hour
            if number % 8 == 0:
                sell(world)
        assert 100 <= of_now(world) <= 125
        assert tokens.time_ms(gate(world).low) <= world.now_ms


def test_what_is_ahead_of_now_makes_no_look_up_long_and_later_changes_no_dearer() -> None:
    """All changes, or one in five, say that they are of in four minutes."""
    for every in (1, 5):
        world = shop()
        for number in range(500):
            sell(world, after_ms=20, old_ms=0 if number % every else -4 * MINUTE_MS)
        assert spent(world, partial(sell, world, old_ms=15_000)) <= 8
        world.now_ms += 5 * MINUTE_MS
        of_now(world)
        assert 100 <= of_now(world) <= 125


def test_one_change_pays_for_few_of_the_many_holds_that_are_over() -> None:
    world = shop(stock=500)
    for _ in range(500):
        hold(world)
    world.now_ms += 10 * MINUTE_MS
    assert max(spent(world, lambda: sell(world)) for _ in range(60)) <= 40  # one page of notes: each is deleted
    assert notes(world) > 400


def test_a_large_change_gets_what_many_holds_that_are_over_kept_and_its_gate_stays_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Among the holds are some that ended: each page of notes is looked up by a query or so."""
    world = shop(stock=600)
    for number in range(600):
        held = hold(world)
        if number % 3 == 0:
            world.home.run(end(world.gates(COUNTER), held, -1))
    world.now_ms += 10 * MINUTE_MS
    monkeypatch.setattr(ledger.requests, "ITEM_BYTES_MAX", 4_000)
    assert spent(world, lambda: sell(world, -400)) <= 900
    assert (gate(world).value, notes(world)) == (-600, 0)


# -- a gate that is full -----------------------------------------------------------------------------------------------


def fill(world: World, lane: Lane = LANE) -> None:
    """The gate of a lane has more than an item may have, and all of it can be filed."""
    item = world.home.items.get(items.gate_key(lane)) or items.new_gate(lane, world.gates(COUNTER).limit)
    decided = {tokens.keyed("", f"{lane}{n}", world.now_ms - n): {"N": "0"} for n in range(100)}
    world.home.store([{**item, "recent": {"M": {**item["recent"]["M"], **decided}}}])


def lent(world: World) -> object:
    """The last rights of the one lane go to the other."""
    delta = Delta(OTHER, tokens.keyed("", "lent", world.now_ms), -9)
    return world.home.run(decide_change(world.gates(COUNTER), delta))


def captured(world: World) -> object:
    (token,) = gate(world).held
    return world.home.run(end(world.gates(COUNTER), Delta(LANE, token, -1), -1))


def test_a_gate_that_is_full_is_filed_whatever_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    for write, full in (
        (sell, LANE),
        (lambda world: sell(world, -11), LANE),
        (hold, LANE),
        (lambda world: world.home.run(add_group(world.gates(COUNTER), LANE, {sale(world).token: -1})), LANE),
        (lambda world: sell(world, old_ms=HOUR_MS), LANE),
        (lambda world: world.home.run(set_limit(world.gates(COUNTER), -11, None)), LANE),
        (captured, LANE),
        (lambda world: sell(world, -9), LANE),  # what the hold kept, which is over
        (lent, LANE),
        (lent, OTHER),
    ):
        world = shop(stock=10, shards=2)
        hold(world, MINUTE_MS)
        world.home.run(world.gates(COUNTER).create(OTHER))
        fill(world, full)
        world.now_ms += 2 * MINUTE_MS
        with monkeypatch.context() as patch:
            patch.setattr(ledger.requests, "ITEM_BYTES_MAX", 2_000)
            write(world)
        assert gate(world, full).version > 0


def test_a_gate_that_another_call_filed_meanwhile_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was full, and is not when this call wants to file it; one that is full of what cannot be filed says so."""
    world = shop(stock=10)
    sell(world)
    fill(world)
    monkeypatch.setattr(ledger.requests, "ITEM_BYTES_MAX", 2_000)
    world.home.before(PutMany, lambda _: world.home.run(roll(world.gates(COUNTER), gate(world))), times=1)
    assert sell(world) == -1
    monkeypatch.setattr(ledger.requests, "ITEM_BYTES_MAX", 100)
    with pytest.raises(ItemTooLarge):
        sell(world)
