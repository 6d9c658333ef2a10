"""The known faults of each design, and what holds in spite of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lab.designs.atomic import Atomic
from lab.designs.design import Contended, Design
from lab.designs.gap_free import GapFree
from lab.designs.hybrid import Hybrid
from lab.designs.item_collection import Ours
from lab.designs.optimistic import EntityTag, OnValue
from lab.designs.optimistic_history import OptimisticHistory
from lab.designs.powertools import Powertools
from lab.designs.sharded import Sharded
from lab.designs.string_set import IDS, StringSet
from lab.designs.transactions import TransactionMarker, TransactionToken
from lab.histories.stage import SETTINGS
from lab.measure.one_counter import Died, dying
from ledger.cost import item_bytes
from ledger.errors import ItemTooLarge, OutcomeUnknown
from ledger.requests import ITEM_BYTES_MAX, Program, Put, keyed
from simulator.faults import Faults
from tests.lab.designs.conftest import EU, START_MS, C, OnWorld, add, unanswered, until_answered, value

HYBRID, POWERTOOLS = Hybrid(), Powertools()
Spoil = Callable[[Program[Any]], Program[Any]]


def lost(write: int) -> Spoil:
    """The answer to this write is lost."""
    return lambda program: unanswered(program, {write})


def dies(answers: int) -> Spoil:
    """The process dies after so many answers."""
    return lambda program: dying(program, answers)


DELIVERIES: list[tuple[str, Design, Spoil, object, object, int]] = [
    # of a change of 5 under one key: the first, spoiled, and the second a minute later; then the value
    ("an ADD counts twice", Atomic(), lost(0), OutcomeUnknown, "recorded", 10),
    ("who fills a counter is refused", Atomic(ceiling=5), lost(0), OutcomeUnknown, "refused", 5),
    ("a tag finds its own write", EntityTag(), lost(0), "recorded", "replayed", 5),
    ("a history finds it", OptimisticHistory(), lost(0), "recorded", "replayed", 5),
    ("the value alone does not", OnValue(), lost(0), OutcomeUnknown, "recorded", 10),
    ("a token is known", TransactionToken(), lost(0), OutcomeUnknown, "recorded", 5),
    ("a marker is found", TransactionMarker(), lost(0), OutcomeUnknown, "replayed", 5),
    ("dead before the ADD: once", POWERTOOLS, dies(1), Died, "recorded", 5),
    ("dead between the ADD and its record: twice", POWERTOOLS, dies(2), Died, "recorded", 10),
    ("dead after its record: once", POWERTOOLS, dies(3), Died, "replayed", 5),
    ("the ADD's answer lost: twice", POWERTOOLS, lost(1), OutcomeUnknown, "recorded", 10),
    ("the record's answer lost: once", POWERTOOLS, lost(0), OutcomeUnknown, "recorded", 5),
    ("ours", Ours(settings=SETTINGS), lost(0), OutcomeUnknown, "replayed", 5),
]


@pytest.mark.parametrize(("design", "spoil", "first", "second", "counted"), [d[1:] for d in DELIVERIES],
                         ids=[d[0] for d in DELIVERIES])  # fmt: skip
def test_a_change_that_comes_again(design: Design, spoil: Spoil, first: Any, second: str, counted: int) -> None:
    world = OnWorld()
    try:
        end: object = world.run(spoil(design.add(C, 5, "k", START_MS)))
    except (OutcomeUnknown, Died) as error:
        end = type(error)
    world.wait(60_000)
    assert (end, add(world, design, "k", 5), value(world, design)) == (first, second, counted)


def test_powertools_keeps_who_comes_while_another_is_at_work_waiting() -> None:
    world = OnWorld()
    with pytest.raises(Died):
        world.run(dying(POWERTOOLS.add(C, 5, "k", START_MS), 1))
    with pytest.raises(Contended):
        add(world, POWERTOOLS, "k", 5)
    assert value(world, POWERTOOLS) == 0


def test_a_ceiling_of_shards_is_reached_by_changes_of_1_and_never_passed() -> None:
    for inner in (Atomic(), EntityTag(), TransactionToken(), TransactionMarker(), StringSet()):
        world, design = OnWorld(), Sharded(name="sharded", inner=inner, shards=4, ceiling=10)
        ends = world.at_once(*[partial(design.add, C, 1, f"key-{n}", START_MS) for n in range(16)])
        assert value(world, design) == ends.count("recorded") <= 10
        for number in range(10):
            add(world, design, f"more-{number}")
        assert value(world, design) == 10
    assert add(world, Sharded(name="sharded", inner=Atomic(), shards=3, floor=-7), "k", -4) == "refused"


def test_a_set_tells_full_from_duplicate_and_ends_at_400_kb() -> None:
    world, design = OnWorld(), StringSet(ceiling=2)
    assert [add(world, design, key) for key in "aabc"] == ["recorded", "replayed", "recorded", "refused"]
    assert [add(world, design, "a", change) for change in (-1, -1, 1)] == ["recorded", "replayed", "recorded"]
    ids = (ITEM_BYTES_MAX - item_bytes(keyed(design.item_key(C), **{IDS: {"SS": []}}))) // 36

    def fill() -> Program[None]:
        yield Put(keyed(design.item_key(C), **{IDS: {"SS": [f"{number:036}" for number in range(ids)]}}))

    world.run(fill())
    with pytest.raises(ItemTooLarge):
        add(world, StringSet(), "x" * 36)


def test_no_order_of_steps_and_no_fault_leaves_a_gap() -> None:
    faults, design = Faults(lost=150, dropped=50, late=50, throttled=50, crash=50), GapFree()
    for seed in range(15):
        world = OnWorld(seed)
        world.at_once(*(partial(until_answered, design, 1, f"item-{n % 5}") for n in range(7)), faults=faults)
        world.world.quiesce()
        assert sorted(world.run(design.numbers(C)).values()) == [1, 2, 3, 4, 5], seed


def test_consumers_of_a_stream_count_each_thing_once_and_heal_the_other_counter_when_all_are_gone() -> None:
    for seed in range(10):
        world = OnWorld(seed)
        for number in range(4):
            world.run(until_answered(HYBRID, 1, str(number)))
        for number in range(4):
            add(world, HYBRID, str(number), -1)
            calls = [partial(HYBRID.housekeep, C, EU)] * 3
            world.at_once(*calls, sdk_attempts=4, faults=Faults(lost=200, crash=50))
            for _ in range(3):
                world.run(HYBRID.housekeep(C, EU))
            assert value(world, HYBRID) == 3 - number, seed
        assert world.run(HYBRID.at_most(C)) == 0
