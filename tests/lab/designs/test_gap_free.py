"""Design 9: no gap and no number twice, also when many insert at once and some inserts fail."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lab.designs.gap_free import GapFree
from simulator.faults import Faults
from tests.lab.designs.conftest import C, OnEngine, OnWorld, Place, add, until_answered, value

IDS = GapFree()
FAULTS = Faults(lost=150, dropped=50, late=50, throttled=50, crash=50)


def test_numbers_follow_each_other_and_a_failing_insert_uses_none_up(anywhere: Place) -> None:
    told = [add(anywhere, IDS, key) for key in ("kirk", "spock", "kirk", "uhura")]
    assert told == ["recorded", "recorded", "replayed", "recorded"]
    assert anywhere.run(IDS.numbers(C)) == {"kirk": 1, "spock": 2, "uhura": 3}
    assert value(anywhere, IDS) == 3


def test_many_threads_that_insert_some_of_it_twice_leave_no_gap(on_engine: OnEngine) -> None:
    with ThreadPoolExecutor(4) as threads:
        told = list(threads.map(lambda n: on_engine.run(until_answered(IDS, 1, f"item-{n % 12}")), range(18)))
    assert told.count("recorded") == 12
    assert sorted(on_engine.run(IDS.numbers(C)).values()) == list(range(1, 13))


def test_no_order_of_steps_and_no_fault_leaves_a_gap() -> None:
    for seed in range(15):
        on_world = OnWorld(seed)
        on_world.at_once(*(partial(until_answered, IDS, 1, f"item-{n % 5}") for n in range(7)), faults=FAULTS)
        on_world.world.quiesce()
        assert sorted(on_world.run(IDS.numbers(C)).values()) == [1, 2, 3, 4, 5], seed
        assert value(on_world, IDS) == 5


def test_at_the_ceiling_an_insert_that_is_sent_again_is_still_told_from_a_new_one(anywhere: Place) -> None:
    design = GapFree(ceiling=1)
    assert [add(anywhere, design, key) for key in "aba"] == ["recorded", "refused", "replayed"]
