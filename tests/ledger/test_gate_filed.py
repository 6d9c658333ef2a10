"""What a roll files and leaves in the gate, when one begins, and how what was filed is looked up."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lab.histories.filing import SHIPPED, Filing, file_as
from ledger import requests, tokens
from ledger.errors import ItemTooLarge, Throttled
from ledger.gate import items
from ledger.gate.bounds import set_limit
from ledger.gate.decide import add_group
from ledger.gate.gate import REFUSED, fingerprint
from ledger.gate.items import Filed
from ledger.gate.past import Known, look_up, outcomes_of, roll
from ledger.limit import Limit
from ledger.requests import PutMany, Query
from ledger.values import Delta, Lane
from tests.ledger.seats import BASE_MS, COUNTER, EAGER, HERE, MINUTE_MS, THERE, Gated, at
from tests.world import A, fail

BUSY = Throttled("This Region is busy. Nothing was written.")
NOW = 1_000_000
LATER = NOW + 3_600_000
FIVE = 100, 300, 500, 700, 900
AHEAD = tuple(range(NOW + 1_000, NOW + 10_000, 1_000))
FEW, MANY = range(0, 9_000, 1_000), range(0, 50_000, 1_000)
WIDE = Limit(ceiling=10**9, region=A)


def rolled(world: Gated, gate: Any) -> Any:
    return world.home.run(roll(world.gates(COUNTER), gate))


# (filing, slack, what it decided and holds; what is filed in a segment, as late entries, as notes; low, marks above it)
ROLLS: list[tuple[Any, ...]] = [
    ({}, 250, (0, 100, 900, 1_000), (), (0, 100, 900, 1_000), (), (), 750, (900, 1_000)),
    ({}, 12_800, (0, 20_000), (), (0, 20_000), (), (), 7_300, (20_000,)),
    ({"slack_ms": 0}, None, (0,), (), (0,), (), (), 0, (0,)),
    ({}, None, (0, 2 * NOW), (), (0,), (), (), NOW - 250, ()),
    ({}, None, (0, *AHEAD[:8]), (), (0,), (), (), NOW - 250, ()),
    ({}, None, (0, *AHEAD), (), (0,), AHEAD, (), NOW - 250, AHEAD),
    ({}, None, AHEAD, (), (), AHEAD, (), NOW - 250, AHEAD),
    ({"slack_ms": 0, "beside": 0}, 0, (LATER - 1, LATER), (), (), (LATER - 1,), (), NOW, (LATER - 1,)),
    ({"moved_max": 2}, 250, (0, *AHEAD), (), (0,), AHEAD, (), NOW, AHEAD),
    ({}, 250, (0,), (5_000,), (0,), (), (), 4_750, ()),
    ({}, 250, (-2_000, -1_000, 0), (), (0,), (-2_000, -1_000), (), -250, (0,)),
    ({}, 250, (-2_000,), (), (), (-2_000,), (), -2_250, ()),
    ({}, 250, (), FEW, (), (), FEW[:5], 7_750, ()),
    ({}, 250, (9_000,), FEW[:8], (9_000,), (), (), 8_750, (9_000,)),
    ({}, 250, (), MANY, (), (), MANY[:40], 48_750, ()),
    ({"holds_kept": 0, "holds_left": 0}, 250, (), (0, 5 * NOW), (), (), (0,), NOW - 250, ()),
    ({}, 250, range(0, 2_600, 10), (), range(0, 2_500, 10), (), (), 2_240, range(2_180, 2_500, 10)),
    ({"moved_max": 2, "slack_ms": 1_000}, 0, FIVE, (), FIVE, (), (), 511, FIVE[3:]),
    ({"moved_max": 2, "slack_ms": 300}, 0, (300, 700, 900), (), (300, 700, 900), (), (), 600, (700, 900)),
]  # fmt: skip


def test_a_roll_files_what_is_near_and_remembers_what_lies_above_low() -> None:
    for filing, slack_ms, recent, held, filed, late, noted, low, moved in ROLLS:
        world, kept = Gated(filing=Filing(**filing)), Filing(**filing)
        before = world.rolled(recent, held, slack_ms=slack_ms)
        assert rolled(world, before) == world.gate()
        assert world.gate() == replace(
            before,
            recent={at(ms): 1 for ms in recent if ms not in {*filed, *late}},
            held={at(ms): 1 for ms in held if ms not in noted},
            total=5 + len(filed) + len(late),
            count=4 + len(filed) + len(late),
            version=7,
            low=max(before.low, tokens.last_of(BASE_MS + low)),
            top=max([before.top, *map(at, filed)]),
            moved=frozenset(fingerprint(at(ms)) for ms in moved),
            slack_ms=max(kept.slack_ms, (slack_ms or 0) * 127 // 128),
        )
        stored = [items.late_item(HERE, at(ms), 1, 7) for ms in late]
        if filed:
            stored.append(items.filed_item(Filed(HERE, world.gate().top, 7, before.low, {at(ms): 1 for ms in filed})))
        stored += [items.hold_item(HERE, at(ms), 1) for ms in noted]
        assert world.asked(PutMany)[0] == PutMany(tuple(stored))


def test_fingerprints_of_earlier_rolls_stay_while_they_lie_above_low() -> None:
    world, marks = Gated(), frozenset(map(fingerprint, map(at, (-600, 500, 900))))
    before = world.rolled((0, 1_000), moved=marks, top=at(2_000))
    after = rolled(world, before)
    assert (after.moved, after.top) == ({fingerprint(at(900)), fingerprint(at(1_000))}, before.top)
    oldest = Gated()
    assert rolled(oldest, oldest.rolled((100 - BASE_MS,), low="0" * 26)).low == tokens.last_of(0)


def test_a_roll_that_has_nothing_to_file_is_overtaken_or_fails_takes_nothing_out_of_the_gate() -> None:
    for held in ((), range(8)):
        world = Gated()
        assert rolled(world, world.rolled((), held)) is None
        assert not world.home.kinds
    world = Gated()
    before = world.rolled((0,))
    assert rolled(world, replace(before, version=5)) is None
    world.home.after(PutMany, lambda *_: (BUSY,))
    with pytest.raises(Throttled):
        rolled(world, before)
    assert world.gate() == before


def test_a_roll_that_fails_is_no_failure_of_the_change_that_began_it() -> None:
    """Its "nothing was written" would be read as the change's, which counts."""
    world = Gated(filing=EAGER)
    world.sell(1)
    world.home.before(PutMany, fail(BUSY))
    assert (world.sell(2), world.gate().value, len(world.gate().recent)) == (2, 3, 1)


def test_who_sees_enough_begins_a_roll_when_its_token_is_drawn_and_everyone_at_twice_as_much() -> None:
    """Four are enough, or six with holds; of the tokens every second one is drawn. A large group waits for more."""
    for times, held, versions in (
        ((1, 3, 5, 7, 9, 11, 13, 15, 17), 0, [0, 0, 0, 0, 0, 0, 0, 1, 1]),
        ((1, 3, 5, 8, 10), 0, [0, 0, 0, 1, 1]),
        ((2, 4, 6, 7, 8), 0, [0, 0, 0, 0, 1]),
        ((2, 4, 6, 8), 3, [0, 0, 1, 1]),
    ):
        world, rolls = Gated(filing=Filing(enough=4, beside=2, draw=2)), []
        world.sell(0)
        world.put(recent={}, held={at(-n - 1): 1 for n in range(held)})
        for ms in times:
            world.decide(Delta(HERE, at(ms), 0))
            rolls.append(world.gate().version)
        assert rolls == versions
    world, rolls = Gated(), []
    for n in range(0, 300, 30):
        world.home.run(add_group(world.gates(COUNTER), HERE, dict.fromkeys(map(at, range(n, n + 30)), 0)))
        rolls.append(world.gate().version)
    assert (rolls[:3], rolls[-1] in (1, 2)) == ([0, 0, 0], True)


def test_what_is_refused_is_filed_too() -> None:
    """Else the gate of a counter that is sold out grows until it is full."""
    world = Gated()
    world.sell(10)
    assert [world.sell(1) for _ in range(80)] == [REFUSED] * 80
    assert (len(world.gate().recent) <= 2 * SHIPPED.enough, world.audit()) == (True, [])


# -- a gate that is full -----------------------------------------------------------------------------------------------


def fill(world: Gated, lane: Lane = HERE) -> None:
    """The gate of a lane has more than an item may have, and all of it can be filed."""
    decided = {tokens.keyed("", f"{lane}{n}", world.now_ms - n): 0 for n in range(100)}
    world.put(lane, recent={**world.gate(lane).recent, **decided})


def test_a_gate_that_is_full_is_filed_whatever_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[tuple[Callable[[Gated, Delta], object], Lane]] = [
        (lambda world, _: world.sell(1), HERE),
        (lambda world, _: world.sell(11), HERE),
        (lambda world, _: world.hold(1), HERE),
        (lambda world, _: world.home.run(add_group(world.gates(COUNTER), HERE, {world.new(1).token: 1})), HERE),
        (lambda world, _: world.decide(Delta(HERE, at(-3_600_000), 1)), HERE),
        (lambda world, _: world.home.run(set_limit(world.gates(COUNTER), None, 11)), HERE),
        (lambda world, held: world.end(held, 1), HERE),
        (lambda world, _: world.sell(10), HERE),  # what the hold kept, which is over
        (lambda world, _: world.sell(9, THERE), HERE),
        (lambda world, _: world.sell(9, THERE), THERE),
    ]
    for write, full in writes:
        world = Gated()
        held = world.hold(1)
        world.sell(0, THERE)
        fill(world, full)
        world.now_ms += 2 * MINUTE_MS
        with monkeypatch.context() as patch:
            patch.setattr(requests, "ITEM_BYTES_MAX", 2_000)
            write(world, held)
        assert world.gate(full).version > 0


def test_a_gate_that_another_call_filed_meanwhile_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was full, and is not when this call wants to file it; one that is full of what cannot be filed says so."""
    world = Gated()
    world.sell(1)
    fill(world)
    monkeypatch.setattr(requests, "ITEM_BYTES_MAX", 2_000)
    world.home.before(PutMany, lambda _: rolled(world, world.gate()), times=1)
    assert world.sell(1) == 1
    monkeypatch.setattr(requests, "ITEM_BYTES_MAX", 100)
    with pytest.raises(ItemTooLarge):
        world.sell(1)


# -- looked up ---------------------------------------------------------------------------------------------------------


def test_a_look_up_reads_on_until_a_segment_lists_it_or_was_filed_later() -> None:
    """Five segments, of which three are a page."""
    for token, low, known, pages in (
        (0, -1, None, 2),
        (0, 0, None, 1),
        (1, 0, Known(1), 1),
        (5, 0, Known(5), 1),
        (0, 1, None, 1),
        (6, 0, None, 1),
    ):
        world = Gated()
        world.home.store(items.filed_item(Filed(HERE, at(n), n, at(low), {at(n): n})) for n in range(1, 6))
        assert world.home.run(look_up(world.gates(COUNTER), HERE, at(token))) == known
        assert len(world.asked(Query)) == pages


def test_many_are_looked_up_at_once_and_found_as_each_alone_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is late, ahead of now and in order, filed a few at a time; and what was never asked for, between them."""
    monkeypatch.setattr("ledger.gate.past.LATE_OF_PAGE", 2)
    world, times = Gated(WIDE, Filing(enough=3, beside=0, draw=1, slack_ms=500)), list[str]()
    for n in range(120):
        world.now_ms += 100
        times.append(at(n * 100 + (0, 0, 0, -3_000, 0, 2_000, -700)[n % 7] + n % 2))
        world.decide(Delta(HERE, times[-1], n))
    file_as(SHIPPED)
    unknown = sorted({*times, *(at(n * 100 + 50) for n in range(-40, 140))} - world.gate().recent.keys())
    gates = world.gates(COUNTER)
    alone = {token: known.outcome for token in unknown if (known := world.home.run(look_up(gates, HERE, token)))}
    assert len(alone) > 80
    for world.home.page_size in (1, 2, 1_000):
        for some in (unknown, unknown[::9], unknown[5:6], unknown[-3:]):
            found = world.home.run(outcomes_of(HERE, some))
            assert found == {token: alone[token] for token in some if token in alone}


def test_what_much_lies_between_is_passed_over() -> None:
    world = Gated(page_size=1_000)
    for n in range(1, 400):
        world.home.store([items.filed_item(Filed(HERE, at(n), n, at(n - 1), {at(n): n}))])
        world.home.store([items.late_item(HERE, at(n), n, n)])
    found = world.home.run(outcomes_of(HERE, [at(7), at(390), at(400)]))
    assert (found, world.home.kinds) == ({at(7): 7, at(390): 390}, [Query] * 3)
