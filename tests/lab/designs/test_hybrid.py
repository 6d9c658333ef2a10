"""Design 10: what the stream brings, twice or not at all, and what the best-effort counter is good for."""

from functools import partial
from typing import Any

import pytest

from lab.designs.design import Contended
from lab.designs.expressions import integer, text
from lab.designs.hybrid import THING, Hybrid
from lab.engines.ministack import Engine
from lab.engines.streams import StreamReader
from ledger.requests import Get, Item, Key, Program
from simulator.faults import Faults
from tests.lab.designs.conftest import EU, START_MS, C, OnEngine, OnWorld, Place, add, adds, value

HYBRID = Hybrid()
LIMITED = Hybrid(ceiling=3)


def swept(place: Place, region: str = EU) -> int:
    for _ in range(3):
        place.run(HYBRID.housekeep(C, region), region)
    return value(place, HYBRID, region)


def test_the_stream_of_an_engine_feeds_the_exact_counter(engine: Engine, on_engine: OnEngine) -> None:
    stream = StreamReader(on_engine.client, engine.stream_client(EU), on_engine.table.name)
    for key, change in [("a", 1), ("b", 1), ("c", 1), ("b", -1), ("a", 1)]:
        add(on_engine, HYBRID, key, change)
    assert (value(on_engine, HYBRID), on_engine.run(HYBRID.at_most(C))) == (0, 2)
    images: list[Item] = []
    while page := stream.read():
        images += [change.image for change in page if change.image and change.image["pk"]["S"].startswith(THING)]
    for _ in range(2):  # all of it once more, as a stream may
        for image in images:
            on_engine.run(HYBRID.consume(image))
        assert value(on_engine, HYBRID) == 2


def test_consumers_at_once_count_and_remove_each_thing_once() -> None:
    for seed in range(15):
        on_world = OnWorld(seed)
        for make in adds(HYBRID, 4):
            on_world.run(make())
        add(on_world, HYBRID, "key-0", -1)
        on_world.at_once(*[partial(HYBRID.housekeep, C, EU)] * 3, sdk_attempts=4, faults=Faults(lost=200, crash=50))
        assert swept(on_world) == 3, seed


def test_the_larger_counter_holds_a_limit_that_is_asked_for_one_after_another(anywhere: Place) -> None:
    assert [add(anywhere, LIMITED, key) for key in "abcda"] == [*["recorded"] * 3, "refused", "replayed"]
    swept(anywhere)
    assert add(anywhere, LIMITED, "d") == "refused"
    add(anywhere, LIMITED, "a", -1)
    assert add(anywhere, LIMITED, "d") == "refused"  # the exact counter has not heard of it
    assert swept(anywhere) == 2
    assert add(anywhere, LIMITED, "d") == "recorded"


def only(program: Program[Any], requests: int) -> Program[None]:
    """A process that ends after so many requests."""
    request = next(program)
    for _ in range(requests):
        request = program.send((yield request))


def best(place: Place) -> int:
    def read() -> Program[int]:
        return integer((yield Get(Key(f"best#{C}", "counter"))), "value")

    return place.run(read())


def test_when_all_are_gone_the_best_effort_counter_is_set_to_0_as_well(anywhere: Place) -> None:
    for key in "abc":
        anywhere.run(only(HYBRID.add(C, 1, key, START_MS), 1))  # it ends before its second write
    assert (best(anywhere), swept(anywhere)) == (0, 3)
    for key in "abc":
        add(anywhere, HYBRID, key, -1)
    assert (best(anywhere), swept(anywhere)) == (-3, 0)
    assert best(anywhere) == 0


def test_a_consumer_that_ends_before_it_has_healed_does_so_when_its_record_comes_again(anywhere: Place) -> None:
    anywhere.run(only(HYBRID.add(C, 1, "a", START_MS), 1))
    add(anywhere, HYBRID, "a", -1)
    anywhere.run(HYBRID.housekeep(C, EU))
    record = {"pk": text(f"thing#{C}"), "sk": text("a")}
    anywhere.run(only(HYBRID.consume(record), 2))
    assert (best(anywhere), value(anywhere, HYBRID)) == (-1, 0)
    anywhere.run(HYBRID.consume(record))
    assert best(anywhere) == 0


def test_a_thing_that_is_being_deleted_cannot_be_created_before_it_is_gone(anywhere: Place) -> None:
    add(anywhere, HYBRID, "a")
    add(anywhere, HYBRID, "a", -1)
    with pytest.raises(Contended):
        add(anywhere, HYBRID, "a")
    assert swept(anywhere) == 0
    assert add(anywhere, HYBRID, "a") == "recorded"
    assert swept(anywhere) == 1
