"""Designs 2 and 3: what a look at the item can tell a writer, and what it cannot."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lab.designs.clients import Traffic
from lab.designs.design import TRIES_MAX, Contended, Outcome, SingleItem
from lab.designs.optimistic import EntityTag, OnValue
from lab.designs.optimistic_history import OptimisticHistory
from ledger.errors import OutcomeUnknown
from ledger.requests import Program, Update
from simulator.faults import Faults
from tests.lab.designs.conftest import START_MS, C, OnEngine, OnWorld, Place, add, adds, unanswered, value

ALL: list[SingleItem] = [EntityTag(), OnValue(), OptimisticHistory()]


@pytest.mark.parametrize("design", ALL, ids=lambda design: design.name)
def test_changes_made_at_once_all_count_and_some_are_tried_again(on_engine: OnEngine, design: SingleItem) -> None:
    traffic = Traffic(on_engine.client)
    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(lambda make: on_engine.run(make()), adds(design, 12)))
    assert outcomes == ["recorded"] * 12
    assert value(on_engine, design) == 12
    assert traffic.counts["calls"] == 12 * 2 + traffic.counts["refused"] * 2 + 1


def beaten(design: SingleItem, loser: Program[Outcome]) -> Program[Outcome]:
    """A writer before whose every write another one comes."""
    request = next(loser)
    for number in range(100):
        if isinstance(request, Update):
            yield from design.add(C, 1, str(number), START_MS)
        request = loser.send((yield request))
    raise AssertionError("it never gave up")


@pytest.mark.parametrize("design", ALL, ids=lambda design: design.name)
def test_who_loses_every_race_gives_up_and_has_written_nothing(on_world: OnWorld, design: SingleItem) -> None:
    with pytest.raises(Contended):
        on_world.run(beaten(design, design.add(C, 1_000, "loser", START_MS)))
    assert value(on_world, design) == TRIES_MAX


@pytest.mark.parametrize("design", [EntityTag(), OptimisticHistory()], ids=lambda design: design.name)
def test_a_writer_without_an_answer_finds_its_own_write(anywhere: Place, design: SingleItem) -> None:
    assert anywhere.run(unanswered(design.add(C, 5, "k", START_MS), {0})) == "recorded"
    assert add(anywhere, design, "k", 5) == "replayed"
    assert value(anywhere, design) == 5


def test_on_the_value_a_lost_answer_counts_twice_when_the_change_is_sent_again(anywhere: Place) -> None:
    with pytest.raises(OutcomeUnknown):
        anywhere.run(unanswered(OnValue().add(C, 5, "k", START_MS), {0}))
    assert add(anywhere, OnValue(), "k", 5) == "recorded"
    assert value(anywhere, OnValue()) == 10


@pytest.mark.parametrize("sdk_attempts", [1, 4])
def test_only_without_the_retries_of_the_sdk_does_a_tag_not_lie(sdk_attempts: int) -> None:
    """With them a failed condition may be one's own success, replaced before one looked: it counts twice, unseen."""
    doubled = []
    for seed in range(40):
        on_world = OnWorld(seed)
        told = on_world.at_once(*adds(EntityTag(), 6), sdk_attempts=sdk_attempts, faults=Faults(lost=150))
        recorded = told.count("recorded")
        unknown = sum(isinstance(each, OutcomeUnknown) for each in told)
        doubled.append(value(on_world, EntityTag()) > recorded + unknown)
    assert any(doubled) == (sdk_attempts > 1)


def test_the_history_forgets_who_is_followed_by_as_many_as_it_keeps_and_a_tag_who_is_followed_by_one(
    anywhere: Place,
) -> None:
    design = OptimisticHistory(keep=3)
    assert [add(anywhere, design, key) for key in ("k", "a", "b", "k")] == [*["recorded"] * 3, "replayed"]
    assert [add(anywhere, design, key) for key in ("c", "k")] == ["recorded", "recorded"]
    assert value(anywhere, design) == 5
    assert [add(anywhere, EntityTag(), key) for key in ("k", "other", "k")] == ["recorded"] * 3
    assert value(anywhere, EntityTag()) == 8
