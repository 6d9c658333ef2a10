"""A limit is of all who add: the table's shape has it before the first use, or nobody is held to it."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from compactor import Compactor
from ledger import Change, Ledger, Limit, errors
from ledger.items import SHAPE_KEY, shape_of
from ledger.lane import directory
from ledger.lane.shape import write
from ledger.limit import Shape
from ledger.requests import Put, Update
from reader import Reader
from tests.world import A, B, World, fail, refused

SEATS, STOCK = "seats:gig", "stock:85123A"
LIMITS = {"seats:": Limit(ceiling=10, region=A), "stock:": Limit(floor=0)}
OTHERS = {
    "none": {},
    "one less": {"stock:": LIMITS["stock:"]},
    "another ceiling": {**LIMITS, "seats:": Limit(ceiling=11, region=A)},
    "another region": {**LIMITS, "seats:": Limit(ceiling=10, region=B)},
    "another side": {**LIMITS, "stock:": Limit(floor=0, ceiling=9, region=A)},
    "some of the counters of another": {**LIMITS, "seats:gig": Limit(ceiling=5, region=B)},
}


def is_of_shape(request: object) -> bool:
    return isinstance(request, Put) and request.key == SHAPE_KEY


def shaped(world: World, **changed: Any) -> str:
    return world.home.run(write(world.settings(**changed)))


def test_a_process_without_the_limits_of_the_table_is_refused_until_the_shape_has_grown() -> None:
    world = World(limits=LIMITS)
    world.shape()
    for name, limits in OTHERS.items():
        with refused(world.home, errors.SettingsMismatch, "LEDGER_LIMITS" if "some" not in name else "limits"):
            world.ledger(limits=limits).add(SEATS, 1)
        with refused(world.home, errors.SettingsMismatch, "as it is|would change the limit"):
            shaped(world, limits=limits)
    more = {**LIMITS, "wallet:": Limit(floor=0)}
    assert world.ledger(limits=more).add(SEATS, 1).outcome == "recorded"
    assert shaped(world, limits=more) == "grown"
    with refused(world.home, errors.SettingsMismatch, "wallet:"):
        world.ledger().add(SEATS, 1)


USES: dict[str, Callable[[Ledger, Reader, Compactor], Any]] = {
    "add": lambda ledger, _, __: ledger.add(SEATS, 1),
    "hold": lambda ledger, _, __: ledger.hold(SEATS, 1, expires=timedelta(minutes=1)).release(),
    "set_limit": lambda ledger, _, __: ledger.set_limit(SEATS, ceiling=11),
    "read": lambda _, reader, __: reader.read(SEATS),
    "values": lambda _, reader, __: reader.values(["plain", SEATS]),
    "history": lambda _, reader, __: list(reader.history(SEATS)),
    "history_page": lambda _, reader, __: reader.history_page(SEATS),
    "standing": lambda _, reader, __: reader.standing(SEATS),
    "holds": lambda _, reader, __: reader.holds(SEATS),
    "verify": lambda _, __, compactor: compactor.verify(SEATS),
    "rebuild": lambda _, __, compactor: compactor.rebuild(SEATS),
}


def test_a_limit_that_the_shape_lacks_is_refused_at_each_use_but_where_the_settings_let_it_pass() -> None:
    for name, use in USES.items():
        world = World(limits=LIMITS)
        shaped(world, limits={"stock:": LIMITS["stock:"]})
        process = world.ledger(), world.reader(), world.compactor()
        for _ in range(2):
            with refused(world.home, errors.SettingsMismatch, r"'seats:'.*ledgerctl init.*LEDGER_LIMITS="):
                use(*process)
        assert process[0].add("plain", 1).outcome == process[0].add(STOCK, 1).outcome == "recorded"
        assert [process[1].read(counter).value for counter in ("plain", STOCK)] == [1, 1], name
        shaped(world)
        use(*process)
        unshared = World(limits=LIMITS, unshared_limits=True)
        use(unshared.ledger(), unshared.reader(), unshared.compactor())
        assert SHAPE_KEY not in unshared.home.items


def test_in_a_batch_the_changes_below_other_prefixes_go_on() -> None:
    world = World(limits=LIMITS)
    shaped(world, limits={"stock:": LIMITS["stock:"]})
    for gather in (False, True):
        ledger = world.ledger(gather=gather)
        outcomes = ledger.add_many([Change(name, 1) for name in (SEATS, STOCK, "plain", SEATS)])
        assert [type(each).__name__ for each in outcomes] == ["SettingsMismatch", *["Receipt"] * 2, "SettingsMismatch"]
        with pytest.raises(errors.SettingsMismatch) as raised:
            ledger.add(SEATS, 1)
        assert raised.value.delta is not None
        ledger.close()


def test_where_there_is_no_shape_the_first_who_uses_a_limit_writes_it_and_asks_for_nothing_more() -> None:
    world = World(limits=LIMITS)
    world.reader().read(SEATS)
    ledger = world.ledger()
    assert ledger.add("plain", 1).outcome == "recorded"
    assert SHAPE_KEY not in world.home.items
    for counter in (SEATS, STOCK):
        ledger.add(counter, 1)
    assert shape_of(world.home.items[SHAPE_KEY]) == Shape((A, B), {}, limits=LIMITS)
    world.home.asked.clear()
    for counter in (SEATS, STOCK, "plain"):
        ledger.add(counter, 1)
    ledger.add_many([Change(SEATS, 1)])
    assert world.home.kinds == [Update, Update, Put, Update]


def test_a_first_use_that_cannot_write_the_shape_says_so_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """It had no answer; or counters below the prefix have changes, and they alone are refused."""
    silent, denied, before = (World(limits=LIMITS, allowed_lateness_ms=0) for _ in range(3))
    silent.home.before(is_of_shape, fail(errors.Unavailable("No answer.")))
    denied.home.before(is_of_shape, fail(errors.NotAllowed("This role may not write that.")))
    before.ledger(limits={}).add("seats:old", 1)
    before.now_ms += 3_600_000
    before.compactor(limits={}).compact("seats:old")  # which lists it
    no_shape = "the table has no shape"
    for world, says in ((silent, no_shape), (denied, no_shape), (before, "counters seats:old have changes")):
        caplog.clear()
        ledger = world.ledger()
        with caplog.at_level(logging.WARNING, logger="ledger"):
            assert [ledger.add(counter, 1).outcome for counter in (SEATS, STOCK) * 2] == ["recorded"] * 4
        (line,) = caplog.messages
        assert says in line
        assert SHAPE_KEY not in world.home.items
    with refused(before.home, errors.LimitMismatch, "from before the counter had a limit"):
        before.ledger().add("seats:old", 1)


def test_a_limit_is_not_added_for_counters_that_have_changes_or_while_a_region_cannot_be_asked() -> None:
    world = World(limits=LIMITS)
    for counter in ("seats:a", "seats:b", "other"):
        world.away.store([directory.item_of(world.ledger(B, limits={}).add(counter, 1).delta.lane)])
    for has_shape in (False, True):
        if has_shape:
            shaped(world, limits={})
        with refused(world.home, errors.SettingsMismatch, "counters seats:a seats:b have changes.*another name"):
            shaped(world)
    world.away.down = True
    with refused(world.home, errors.Unavailable, f"{B} was not asked .*a limit is added when every Region answers"):
        shaped(world)
    assert shaped(world, limits={}) == "kept"
