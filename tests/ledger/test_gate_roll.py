"""What a roll files, what it leaves in the gate, and up to where must be looked up after it."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from lab.histories.filing import Filing
from ledger import tokens
from ledger.errors import Throttled
from ledger.gate import items
from ledger.gate.gate import SLICE_MS, Gate, fingerprint
from ledger.gate.items import Filed
from ledger.gate.past import roll
from ledger.requests import Put, PutMany, Request
from tests.ledger.test_gate import HERE, SEATS, A, World

BASE_MS = 1_700_000_000_000  # a slice of a fingerprint begins here, and one every 128 ms
NOW = 1_000_000
LATER = NOW + 3_600_000
FIVE = 100, 300, 500, 700, 900
AHEAD = tuple(range(NOW + 1_000, NOW + 10_000, 1_000))


def at(ms: int) -> str:
    return tokens.make(BASE_MS + ms, (ms % 2**40).to_bytes(tokens.RANDOM_BYTES, "big"))


def seen(world: World, recent: Collection[int] = (), held: Collection[int] = (), **changed: Any) -> Gate:
    """A gate that was rolled six times, up to a second before `BASE_MS`; what it decided and holds since."""
    world.add(0)
    world.now_ms = BASE_MS + NOW
    tables = {"recent": dict.fromkeys(map(at, recent), 1), "held": dict.fromkeys(map(at, held), 1)}
    given = {"low": at(-1_000), "top": at(-500), "version": 6, "total": 5, "count": 4, **tables, **changed}
    gate = replace(world.gate(), **given)
    world.tables[A].answer(Put(items.gate_item(gate)))
    world.tables[A].asked.clear()
    return gate


FEW = range(0, 9_000, 1_000)
MANY = range(0, 50_000, 1_000)


@pytest.mark.parametrize(
    ("filing", "slack_ms", "recent", "held", "filed", "late", "noted", "low", "moved"),
    [
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
    ],
)  # fmt: skip
def test_a_roll_files_what_is_near_and_remembers_what_lies_above_low(
    filing: Mapping[str, int],
    slack_ms: int | None,
    recent: Collection[int],
    held: Collection[int],
    filed: Collection[int],
    late: Collection[int],
    noted: Collection[int],
    low: int,
    moved: Collection[int],
) -> None:
    world = World(SEATS, Filing(**filing))
    gate = seen(world, recent, held, slack_ms=slack_ms)
    assert world.run(roll(world.gates(A), gate))
    slack_after = max(world.filing.slack_ms, (slack_ms or 0) * 127 // 128)
    assert world.gate() == replace(
        gate,
        recent={at(ms): 1 for ms in recent if ms not in {*filed, *late}},
        held={at(ms): 1 for ms in held if ms not in noted},
        total=5 + len(filed) + len(late),
        count=4 + len(filed) + len(late),
        version=7,
        low=max(gate.low, tokens.last_of(BASE_MS + low)),
        top=max([gate.top, *map(at, filed)]),
        moved=frozenset(fingerprint(at(ms)) for ms in moved),
        slack_ms=slack_after,
    )
    put = [items.late_item(HERE, at(ms), 1, 7) for ms in late]
    if filed:
        put.append(items.filed_item(Filed(HERE, world.gate().top, 7, gate.low, {at(ms): 1 for ms in filed})))
    assert world.tables[A].asked[0] == PutMany((*put, *(items.hold_item(HERE, at(ms), 1) for ms in noted)))


def test_fingerprints_of_earlier_rolls_stay_while_they_lie_above_low() -> None:
    world = World(SEATS)
    gate = seen(world, (0, 1_000), moved=frozenset(map(fingerprint, map(at, (-600, 500, 900)))), top=at(2_000))
    assert world.run(roll(world.gates(A), gate))
    assert world.gate().moved == {fingerprint(at(900)), fingerprint(at(1_000))}
    assert world.gate().top == gate.top
    first = world.tables[A].asked[0]
    assert isinstance(first, PutMany)
    assert [items.filed_of(HERE, item).hi for item in first.items] == [gate.top]


def test_a_late_token_with_the_fingerprint_of_one_above_low_takes_it_from_nobody() -> None:
    world, late = World(SEATS), 900 - 2**16 * SLICE_MS
    assert fingerprint(at(late)) == fingerprint(at(900))
    gate = seen(world, (late, 1_100), moved=frozenset({fingerprint(at(900))}), top=at(900))
    assert world.run(roll(world.gates(A), gate))
    assert world.gate().moved == {fingerprint(at(900)), fingerprint(at(1_100))}


def test_low_is_no_earlier_than_1970() -> None:
    world = World(SEATS)
    assert world.run(roll(world.gates(A), seen(world, (100 - BASE_MS,), low="0" * 26)))
    assert world.gate().low == tokens.last_of(0)


def test_where_there_is_nothing_to_file_nothing_is_asked() -> None:
    world = World(SEATS)
    for held in ((), range(8)):
        assert not world.run(roll(world.gates(A), seen(world, (), held)))
        assert not world.tables[A].asked


def test_who_was_overtaken_by_another_roll_takes_nothing_out_of_the_gate() -> None:
    world = World(SEATS)
    gate = seen(world, (0,))
    assert not world.run(roll(world.gates(A), replace(gate, version=5)))
    assert world.gate() == gate


def test_what_could_not_be_put_stays_in_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(SEATS)
    gate, answer = seen(world, (0,)), world.tables[A].answer

    def busy(request: Request, /) -> Any:
        return (Throttled("Nothing was written."),) if isinstance(request, PutMany) else answer(request)

    monkeypatch.setattr(world.tables[A], "answer", busy)
    with pytest.raises(Throttled):
        world.run(roll(world.gates(A), gate))
    assert world.gate() == gate
