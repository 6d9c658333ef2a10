"""Holds at a gate: how each ends once, in the gate and among those that were filed, and when its
time is over.
"""

from typing import Any

import pytest

from lab.histories.stage.filing import SHIPPED, Filing, file_as
from ledger.core import tokens
from ledger.core.errors import GaveUp, NoSuchHold
from ledger.core.limit import UP, Limit
from ledger.core.requests import DeleteMany, Instant, PutMany, Query, Update
from ledger.core.values import Delta
from ledger.gate import items, move
from ledger.gate.answer import Decision
from ledger.gate.decide import decide_change
from ledger.gate.gate import REFUSED, RELEASED, Gate
from ledger.gate.items import Filed
from ledger.gate.left import Left
from ledger.gate.move import free
from tests.ledger.seats import BASE_MS, COUNTER, EAGER, HERE, KEPT, MINUTE_MS, Gated, at
from tests.world import A

HUNDRED = Limit(ceiling=100, region=A)


def notes(world: Gated) -> set[str]:
    return {key.sk.rpartition("#")[2] for key in world.home.items if key.pk == items.hold_pk(HERE)}


def freed(
    world: Gated, seen: Gate, side: str | None = None, need: int = 0, gates: Any = None
) -> Gate:
    world.home.asked.clear()
    after = world.home.run(free(gates or world.gates(COUNTER), seen, side, need))
    assert after == world.gate()
    return after


@pytest.mark.parametrize("filing", [SHIPPED, EAGER], ids=["in-the-gate", "filed-at-once"])
def test_a_hold_that_was_never_granted_has_no_end(
    filing: Filing,
) -> None:
    world = Gated(filing=filing)
    refused, never, held = (
        world.new(11, length_ms=1_000),
        world.new(3, length_ms=1_000),
        world.hold(3),
    )
    assert (
        world.home.run(decide_change(world.gates(COUNTER), refused, hold=True)).outcome == REFUSED
    )
    for other, outcome in ((refused, 11), (refused, RELEASED), (never, 3)):
        with pytest.raises(NoSuchHold, match="there is no hold"):
            world.end(other, outcome)
    with pytest.raises(NoSuchHold, match="is of 3, not of 4"):
        world.end(Delta(HERE, held.token, 4), 3)
    assert world.end(held, 3) == Decision(3, before=False)


def test_holds_that_are_over_end_until_there_is_enough() -> None:
    """70 of 100 are held: 20 in the gate, 50 as notes, of which 25 are a page."""
    world = Gated(HUNDRED, EAGER, page_size=100)
    for n in range(70):
        file_as(EAGER if n < 50 else KEPT)
        world.hold(1)
    world.now_ms += 60_000
    page = [Query, Query, Query, Update, DeleteMany]
    for need, left, kinds in (
        (30, 70, []),
        (31, 50, [Update]),
        (50, 50, []),
        (51, 25, page),
        (100, 0, page),
    ):
        gates, now = world.gates(COUNTER), Instant(world.now_ms, 0)
        gates.sold_out.note(COUNTER, UP, 1, now, Left())
        assert 100 - freed(world, world.gate(), UP, need, gates).rights[UP] == left
        assert world.home.kinds == kinds
        assert bool(gates.sold_out.knows(COUNTER, UP, 1, now)) is (not kinds)


def test_ended_holds_leave_the_gate_though_a_roll_fails() -> None:
    for fails in (False, True):
        world = Gated(HUNDRED, EAGER)
        for _ in range(60):
            world.hold(1)
        file_as(Filing(enough=4))
        world.now_ms += 60_000
        if fails:
            world.home.before(PutMany, lambda _: (_ for _ in ()).throw(NoSuchHold("any error")))
        after = freed(world, world.gate())
        assert after.rights == {UP: 100}
        assert len(after.recent) == 60 if fails else len(after.recent) < 8


def crowded(number: int) -> tuple[Gated, list[str]]:
    """A gate without rights, whose filed holds of 1 keep them all."""
    world = Gated(Limit(ceiling=number, region=A), page_size=1_000)
    world.rolled(rights={UP: 0})
    held = [tokens.hold_token(COUNTER, str(n), BASE_MS + n, MINUTE_MS) for n in range(number)]
    world.home.store(items.hold_item(HERE, token, 1) for token in held)
    world.now_ms = BASE_MS + 60 * MINUTE_MS
    return world, held


def test_a_call_ends_no_more_holds_than_it_needs_or_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(move, "ENDED_PAGES_MAX", 4)
    world, _ = crowded(210)
    assert world.sell(1) == 1
    assert len(notes(world)) == 210 - 25
    with pytest.raises(GaveUp, match=r"100 holds that were over have ended.* Nothing was decided"):
        world.sell(209)
    assert len(notes(world)) == 85
    assert world.sell(209) == 209
    assert (notes(world), world.gate().rights) == (set(), {UP: 0})


def test_the_open_holds_of_a_counter_are_looked_up_by_the_page() -> None:
    world, held = crowded(1_000)
    late, listed, recent = held[100:110], held[500:510], held[990:]
    world.home.store([items.late_item(HERE, token, RELEASED, 6) for token in late])
    world.home.store(
        [items.filed_item(Filed(HERE, listed[-1], 6, at(-1_000), dict.fromkeys(listed, 1)))]
    )
    world.put(recent=dict.fromkeys(recent, 1), held={held[3]: 1})
    world.home.asked.clear()
    found = world.reader().holds(COUNTER)
    assert [hold.delta.token for hold in found] == [
        t for t in held if t not in {*late, *listed, *recent}
    ]
    assert len(world.home.kinds) == 22 + 1
