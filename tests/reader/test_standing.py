"""What is shown of a limit is what would be granted: by `standing`, by `periods` and to
thresholds.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ledger import Keep, Limit, Period, Threshold
from ledger.core import tokens
from ledger.core.checks import to_ms
from ledger.core.errors import LimitReached
from ledger.core.requests import Get, GetMany
from ledger.core.values import Lane
from ledger.gate import items
from reader import Room, Standing
from reader import standing as standings
from tests.world import A, B, World

SHELF, WALLET = "shelf:1", "wallet:1"
LIMITS = {
    "shelf:": Limit(ceiling=1_000, region=A),
    "wallet:": Limit(floor=0),
    "llm:": Limit(ceiling=1_000, region=A),
}
KEEP = Keep(late=timedelta(days=15), keep=timedelta(days=400), carry=300)
BASE, OLD, NEW = "llm:a", "llm:a@2026-11", "llm:a@2026-12"


def sale(**changed: Any) -> World:
    return World(limits=LIMITS, **changed)


def hold(world: World, counter: str, amount: int, seconds: float, region: str = A) -> object:
    return world.ledger(region).hold(
        counter, amount, expires=timedelta(seconds=seconds), **world.key()
    )


def later(world: World, seconds: float) -> None:
    world.now_ms += int(seconds * 1_000)


def is_granted(world: World, counter: str, change: int, region: str) -> bool:
    try:
        world.add(counter, change, region)
    except LimitReached:
        return False
    return True


# -- holds that are over


@pytest.mark.parametrize(("counter", "sign"), [(SHELF, 1), (WALLET, -1)])
def test_what_holds_that_are_over_set_aside_is_left(counter: str, sign: int) -> None:
    world = sale()
    if sign < 0:
        world.add(counter, 1_000)
    hold(world, counter, sign * 600, 5)
    hold(world, counter, sign * 400, 60)

    def seen() -> tuple[int | None, ...]:
        found = world.reader().standing(counter)
        return tuple(
            room.up if sign > 0 else room.down for room in (found.available, found.here, found.held)
        )

    assert seen() == (0, 0, 1_000)
    later(world, 10)
    assert seen() == (600, 600, 400)
    assert is_granted(world, counter, sign * 600, A)
    assert not is_granted(world, counter, sign, A)
    assert seen() == (0, 0, 400)
    later(world, 60)
    assert seen() == (400, 400, 0)


def test_filed_holds_that_are_over_are_left_by_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = sale()
    for n in range(200):
        hold(world, SHELF, 5, 5 if n % 2 else 3_600)
    notes = [key for key in world.home.items if key.pk == items.hold_pk(Lane(A, 0, SHELF))]
    assert len(notes) > 100
    assert world.reader().standing(SHELF).available.up == 0
    later(world, 10)
    world.home.asked.clear()
    found = world.reader().standing(SHELF)
    assert (found.available, found.here, found.held) == (
        Room(None, 500),
        Room(None, 500),
        Room(None, 500),
    )
    assert len(world.home.kinds) <= 6
    with monkeypatch.context() as of_page:
        of_page.setattr(standings, "NOTES_MAX", 10)
        assert 50 <= (world.reader().standing(SHELF).available.up or 0) < 500  # at least that
    assert is_granted(world, SHELF, 500, A)
    assert not is_granted(world, SHELF, 1, A)
    world.home.asked.clear()
    assert world.reader().standing(SHELF).available.up == 0


def sold_again(world: World) -> None:
    """Holds that were over have ended, and all of that is filed; what they set aside was sold,
    or is held anew.
    """
    later(world, 10)
    assert is_granted(world, SHELF, 1_000, A)
    for n in range(200):
        world.add(SHELF, -1 if n % 2 else 0)
        hold(world, SHELF, 1, 3_600) if n % 2 else None


def test_the_note_of_a_hold_that_ended_is_no_hold() -> None:
    """A process died between the end of a hold and the delete of its note: it says nothing of
    what is left.
    """
    world = sale()
    for _ in range(100):
        hold(world, SHELF, 10, 5)
    key = next(key for key in world.home.items if key.pk == items.hold_pk(Lane(A, 0, SHELF)))
    note = world.home.items[key]
    sold_again(world)
    world.home.store([note])
    assert world.reader().standing(SHELF).available.up == 0


def test_a_note_that_came_late_gives_no_more_than_was_filed() -> None:
    world = sale()
    for _ in range(100):
        hold(world, SHELF, 10, 3_600)
    lane, now_ms = Lane(A, 0, SHELF), world.now_ms
    late = items.hold_item(lane, tokens.hold_token(SHELF, "another", now_ms - 60_000, 1_000), 10**6)
    of_notes = items.hold_pk(lane)
    world.home.before(
        lambda asked: getattr(asked, "pk", "") == of_notes, lambda _: world.home.store([late])
    )
    kept = world.reader().standing(SHELF)
    assert (kept.available.up or 0) + (kept.held.up or 0) == 1_000
    assert (kept.available.up or 0) < 1_000


def test_filed_holds_of_another_region_are_left_where_they_are() -> None:
    """Whose notes an API's role may not read: they are shown as held until somebody ends them."""
    world = sale()
    world.add(SHELF, 1, B)
    for _ in range(60):
        hold(world, SHELF, 2, 5, B)
    world.replicate()
    later(world, 10)
    assert world.reader(B).standing(SHELF).held.up == 0
    world.home.asked.clear()
    assert (world.reader().standing(SHELF).held.up or 0) > 0
    assert world.home.kinds == [Get, GetMany]


def test_a_standing_without_filed_holds_is_one_request() -> None:
    world = sale()
    hold(world, SHELF, 10, 5)
    later(world, 10)
    world.home.asked.clear()
    assert world.reader().standing(SHELF).available.up == 1_000
    assert world.home.kinds == [Get, GetMany]  # the table's shape, once, and the gates


@pytest.mark.parametrize("seed", range(25))
def test_all_that_is_shown_is_granted_and_no_more(seed: int) -> None:
    draw = random.Random(seed)
    world = sale()
    counter, sign = draw.choice(((SHELF, 1), (WALLET, -1)))
    if sign < 0:
        world.add(counter, 1_000, draw.choice((A, B)))
    for _ in range(draw.randint(1, 120)):
        region, amount = draw.choice((A, A, A, B)), sign * draw.randint(1, 20)
        try:
            if draw.random() < 0.7:
                hold(world, counter, amount, draw.choice((1, 5, 60, 3_600)), region)
            else:
                world.add(counter, draw.choice((amount, -amount)), region)
        except LimitReached:
            pass
        later(world, draw.choice((0, 0, 1, 4)))
    later(world, draw.choice((1, 10, 100)))
    world.replicate()
    here, there = (world.reader(region).standing(counter) for region in (A, B))
    (unfiled,) = world.home.run(
        standings.read_standings([world.gates(counter)], consistent=True, filed=False)
    )
    left, elsewhere, least = (room(found, sign) for found in (here, there, unfiled))
    assert least <= left
    left += elsewhere - least  # of filed holds each Region knows its own
    assert not is_granted(world, counter, sign * (left + 1), A)
    later(world, 2)
    assert left == 0 or is_granted(world, counter, sign * left, A)


def room(found: Standing, sign: int) -> int:
    return (found.available.up if sign > 0 else found.available.down) or 0


# -- periods and what they pass on


def at(world: World, month: int, day: int) -> None:
    world.now_ms = to_ms(datetime(2026, month, day, tzinfo=UTC))


def carried(**changed: Any) -> World:
    """November used 750 of 1,000; December 1,200, of which November left 200; it may still take
    50 of it.
    """
    world = sale(periods={"llm:": KEEP}, **changed)
    at(world, 11, 20)
    world.add(OLD, 750)
    at(world, 12, 2)
    world.add(NEW, 1_000)
    world.add(NEW, 200)
    return world


def rows(world: World) -> list[tuple[int | None, ...]]:
    found = [each.standing for each in world.reader().periods(BASE, Period("month"), 2)]
    return [
        (s.value, s.ceiling, s.available.up, s.held.up, s.carried, s.took)
        for s in found
        if s is not None
    ]


def test_a_period_that_passed_some_on_is_shown_with_it() -> None:
    world = carried()
    old, new = rows(world)
    assert old == (750, 1_000, 0, 0, 250, 0)
    assert new == (1_200, 1_250, 50, 0, 0, 250)
    found = world.reader().standing(OLD)
    assert (found.ceiling, found.available.up, found.carried, found.took) == (1_000, 0, 250, 0)
    assert not is_granted_late(world, 1)


def is_granted_late(world: World, change: int) -> bool:
    when = datetime(2026, 11, 21, tzinfo=UTC)
    try:
        world.ledger().add(OLD, change, idempotency_key=str(change), at=when)
    except LimitReached:
        return False
    return True


def test_holds_of_periods_that_are_over_are_left() -> None:
    world = sale(periods={"llm:": replace(KEEP, carry=0)})
    at(world, 11, 20)
    hold(world, OLD, 400, 60)
    assert rows(world)[-1] == (0, 1_000, 600, 400, 0, 0)
    later(world, 61)
    assert rows(world)[-1] == (0, 1_000, 1_000, 0, 0, 0)


def test_shares_of_a_limit_follow_a_carry_and_another_limit() -> None:
    thresholds = {"llm:": (Threshold(of_ceiling=0.9), Threshold(left=1))}
    world = carried(thresholds=thresholds)

    def bounds(counter: str) -> tuple[int, list[int | None]]:
        """The ceiling that is shown, and the numbers of those thresholds that hold."""
        reader = world.reader()
        return reader.standing(counter).ceiling or 0, [
            each.above for each in reader.crossed(counter)
        ]

    # 750 of its 1,000 used: "December publishes that November was full" is wrong
    assert bounds(OLD) == (1_000, [])
    assert bounds(NEW) == (1_250, [1_125])
    world.ledger().set_limit(OLD, ceiling=1_000)  # beside the 250 that it passed on
    assert bounds(OLD) == (1_000, [])
    assert is_granted_late(world, 250)
    assert bounds(OLD) == (1_000, [900, 999])
    assert not is_granted_late(world, 1)
    assert world.reader().standing(OLD).carried == 250
    world.ledger().set_limit(NEW, ceiling=1_200)
    assert bounds(NEW) == (1_200, [1_080, 1_199])
    assert [world.compactor().verify(name).differences for name in (OLD, NEW)] == [(), ()]


def test_a_limit_set_to_what_a_carry_made_it_is_that_limit() -> None:
    world = carried()
    world.ledger().set_limit(OLD, ceiling=750)
    assert rows(world)[0] == (750, 750, 0, 0, 250, 0)
    written = dict(world.home.items)
    world.ledger().set_limit(OLD, ceiling=750)  # once
    assert world.home.items == written
    world.ledger().set_limit(OLD, ceiling=900)
    assert rows(world)[0] == (750, 900, 150, 0, 250, 0)
