"""What is counted of each design is what it claims, comes out the same again, and would be seen if it were wrong."""

from dataclasses import dataclass, replace
from functools import cache

import pytest

from lab.compare.accuracy import SETTINGS, Accuracy, mistakes
from lab.compare.changes import CEILING, EVENTS, Counted, Limit, Reads, worst
from lab.compare.one_counter import count, limit
from lab.compare.scenarios import DAY_MS, LIMITS, MINUTE_MS, OTHERS, SCENARIOS, Scenario
from lab.designs import Claims, Outcome, every
from lab.designs.item_collection import Ours
from lab.designs.with_limit import Limited
from ledger.requests import Program

SEEDS = range(2)
ALL = {design.name: design for design in every(SETTINGS)}
OURS = Ours(settings=SETTINGS)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
each = pytest.mark.parametrize("name", ALL)


@cache
def measured(name: str, fault: str) -> Counted:
    return sum((count(ALL[name], BY_NAME[fault], seed) for seed in SEEDS), Counted())


def remembers(claims: Claims, ms: float, writes: int) -> bool:
    """Whether a change that comes again so much later, after so many others and a merge, counts once."""
    return claims.memory.ms > ms and claims.memory.writes > writes and claims.memory.merges


@each
@pytest.mark.parametrize("fault", ["at once", "late"])
def test_writers_at_once_and_messages_that_wait_in_a_queue_are_neither_lost_nor_doubled(name: str, fault: str) -> None:
    found = measured(name, fault)
    assert (found.events, found.lost, found.doubled) == (EVENTS * len(SEEDS), 0, 0)


@each
def test_what_is_sent_until_it_is_answered_is_doubled_where_it_is_forgotten(name: str) -> None:
    for fault, ms, writes in (
        ("crash", MINUTE_MS, 1),
        ("twice", 0, 1),
        ("9 min", 9 * MINUTE_MS, EVENTS),
        ("11 min", 11 * MINUTE_MS, EVENTS),
        ("1 day", DAY_MS, OTHERS),
        ("8 days", 8 * DAY_MS, OTHERS),
    ):
        found = measured(name, fault)
        assert (found.doubled == 0) == remembers(ALL[name].claims, ms, writes), fault
        assert (found.lost, found.gave_up) == (0, 0), fault


def test_a_reply_that_is_lost_doubles_where_nothing_remembers() -> None:
    doubled = {name for name in ALL if measured(name, "no reply").doubled}
    assert doubled >= {"atomic ADD", "atomic ADD, no retries", "sharded atomic ADD", "optimistic, on the value"}
    assert not doubled & {name for name, design in ALL.items() if remembers(design.claims, MINUTE_MS, 1)}


def test_a_token_is_exact_for_ten_minutes_and_then_doubles_all() -> None:
    name = "transaction, client token"
    assert [measured(name, fault).doubled for fault in ("9 min", "11 min")] == [0, EVENTS * len(SEEDS)]


@each
def test_two_regions_lose_and_double_nothing_where_it_says_so(name: str) -> None:
    for fault in ("Regions", "cut off", "failover"):
        found = measured(name, fault)
        # A set of ids that is sent to the other Region, too, may by chance end complete in these seeds.
        if fault != "failover" or ALL[name].claims.regions:
            assert (found.lost + found.doubled == 0) == ALL[name].claims.regions, fault


@each
def test_a_limit_is_kept_where_it_says_so_in_one_region_or_in_all(name: str) -> None:
    one, two = (worst(limit(ALL[name], scenario, seed) for seed in SEEDS) for scenario in LIMITS)
    claimed = ALL[name].claims.limit
    assert (one is None, two is None) == (claimed == "none", claimed == "none")
    assert (one == Limit(0, 0)) == (claimed in ("hard", "everywhere"))
    assert two is None or (two == Limit(0, 0)) == (claimed == "everywhere")


def test_every_read_of_ours_is_true_and_holds_what_its_region_acknowledged_on_time() -> None:
    for fault in BY_NAME:
        found = measured("this library", fault)
        assert found.reads.made > 0
        assert (found.reads.false, found.reads.missed == 0) == (0, fault != "late")


def test_a_change_that_comes_later_than_is_allowed_is_read_after_the_next_settle() -> None:
    patient = Ours(settings=replace(SETTINGS, allowed_lateness_ms=2 * MINUTE_MS))
    for design, is_missed in ((OURS, True), (patient, False)):
        found = sum((count(design, BY_NAME["late"], seed) for seed in SEEDS), Counted())
        assert (found.lost, found.doubled, found.reads.missed > 0) == (0, 0, is_missed)


def test_a_naive_merge_is_read_by_halves_and_a_counter_that_the_stream_feeds_is_read_late() -> None:
    merged = measured("item collection, naive merge", "at once").reads
    assert min(merged.false, merged.missed) > 0
    fed = measured("hybrid, best effort and stream", "at once").reads
    assert (fed.false, fed.missed > 0) == (0, True)


def test_what_is_sent_in_both_regions_is_lost_less_by_a_set() -> None:
    assert measured("set of ids", "failover").lost < measured("set of ids", "Regions").lost / 2


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_seed_measures_the_same_again(scenario: Scenario) -> None:
    design = ALL["item collection, naive merge"]
    assert count(design, scenario, 3) == count(design, scenario, 3)


RIGHT = Counted(EVENTS, reads=Reads(made=18))


@pytest.mark.parametrize("name", [name for name in ALL if name.startswith("this library")])
@pytest.mark.parametrize(
    "wrong",
    [replace(RIGHT, lost=1), replace(RIGHT, doubled=1), replace(RIGHT, gave_up=1), replace(RIGHT, reads=Reads())],
)
def test_a_row_of_this_library_that_lost_doubled_or_did_nothing_is_a_mistake(name: str, wrong: Counted) -> None:
    faults = dict.fromkeys(BY_NAME, RIGHT)
    limits = dict.fromkeys((each.name for each in LIMITS), Limit(0, 0))
    assert list(mistakes(ALL[name], Accuracy(name, False, faults, limits))) == []
    (line,) = mistakes(ALL[name], Accuracy(name, False, faults | {"crash": wrong}, limits))
    assert line.startswith(f"{name}, crash: of ")


@pytest.mark.parametrize("kept", [Limit(1, 0), Limit(0, 1), Limit(0, 0, short=15), None])
def test_a_limit_of_this_library_that_is_passed_or_refuses_what_there_is_room_for_is_a_mistake(kept: Limit) -> None:
    limited = next(design for design in ALL.values() if design.claims.limit == "everywhere")
    (line,) = mistakes(limited, Accuracy(limited.name, False, {}, {"Regions": kept}))
    assert line.startswith(f"{limited.name}, Regions: the ceiling of 15 was not kept or not reached")


def test_who_refuses_or_loses_all_is_seen_in_what_is_played() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Refuses(Limited):
        def add(self, counter: str, change: int, key: str, at_ms: int) -> Program[Outcome]:
            yield from ()
            return "refused"

    refuses = Refuses(settings=SETTINGS)
    found = limit(refuses, LIMITS[0], 0)
    assert found == Limit(0, 0, short=CEILING)
