"""What is counted of each approach is what it claims, comes out the same again, and would be seen if it were wrong."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from lab.compare import on_engine
from lab.compare.accuracy import SETTINGS, measure, report
from lab.compare.events import EVENTS, Counted, Limit, worst
from lab.compare.on_simulator import count, limit
from lab.compare.scenarios import DAY_MS, LIMITS, MINUTE_MS, OTHERS, SCENARIOS, Scenario
from lab.compare.stage import A_MINUTE, CALM_MINUTES
from lab.designs import Claims, every
from lab.designs.atomic import Atomic
from lab.designs.item_collection import Ours
from lab.engines.ministack import Engine
from ledger.requests import Instant, Now, Program

SEEDS = range(2)
ALL = {approach.name: approach for approach in every(SETTINGS)}
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
def test_writers_at_once_lose_and_double_nothing(name: str) -> None:
    found = measured(name, "at once")
    assert (found.events, found.lost, found.doubled) == (EVENTS * len(SEEDS), 0, 0)


@each
def test_a_message_that_waits_in_a_queue_is_neither_lost_nor_doubled(name: str) -> None:
    found = measured(name, "late")
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
    assert not doubled & {name for name, approach in ALL.items() if remembers(approach.claims, MINUTE_MS, 1)}


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
def test_a_limit_is_kept_where_it_says_so_and_only_in_one_region(name: str) -> None:
    one, two = (worst(limit(ALL[name], scenario, seed) for seed in SEEDS) for scenario in LIMITS)
    claimed = ALL[name].claims.limit
    assert (one is None, two is None) == (claimed == "none", claimed == "none")
    assert (one == Limit(0, 0)) == (claimed == "hard")
    assert two is None or two.granted > 0


def test_every_read_of_ours_is_true_and_holds_what_its_region_acknowledged_on_time() -> None:
    for fault in BY_NAME:
        found = measured("this library", fault)
        assert found.reads.made > 0
        assert (found.reads.false, found.reads.missed == 0) == (0, fault != "late")


def test_a_change_that_comes_later_than_is_allowed_is_read_after_the_next_settle() -> None:
    patient = Ours(settings=replace(SETTINGS, allowed_lateness_ms=2 * MINUTE_MS))
    for approach, is_missed in ((OURS, True), (patient, False)):
        found = sum((count(approach, BY_NAME["late"], seed) for seed in SEEDS), Counted())
        assert (found.lost, found.doubled, found.reads.missed > 0) == (0, 0, is_missed)


def test_a_naive_merge_is_read_by_halves_without_any_fault() -> None:
    reads = measured("item collection, naive merge", "at once").reads
    assert reads.false > 0
    assert reads.missed > 0


def test_a_counter_that_the_stream_feeds_is_read_late() -> None:
    reads = measured("hybrid, best effort and stream", "at once").reads
    assert (reads.false, reads.missed > 0) == (0, True)


def test_what_is_sent_in_both_regions_is_lost_less_by_a_set() -> None:
    assert measured("set of ids", "failover").lost < measured("set of ids", "Regions").lost / 2


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_seed_measures_the_same_again(scenario: Scenario) -> None:
    approach = ALL["item collection, naive merge"]
    assert count(approach, scenario, 3) == count(approach, scenario, 3)


def test_the_tables_are_printed_in_100_columns() -> None:
    names = ["set of ids", "transaction, marker with TTL", "this library"]
    results = [measure(ALL[name], SEEDS) for name in names]
    assert results[0].faults["Regions"] == measured("set of ids", "Regions")
    lines = list(report(results, SEEDS))
    assert max(map(len, lines)) <= 100
    assert f"{'this library':45}" + f"{'0/0':>9}" * 6 in lines
    assert f"{'set of ids *':45}      0/0      0/5" in lines


def test_an_engine_loses_and_doubles_nothing_of_writers_at_once(engine: Engine) -> None:
    for name in ("atomic ADD", "optimistic, entity tag", "hybrid, best effort and stream", "this library"):
        found = on_engine.at_once(engine, ALL[name])
        assert found == Counted(EVENTS, reads=found.reads), name
        assert (found.reads.made, found.reads.false) == (6, 0)
        assert (found.reads.missed > 0) == (name == "hybrid, best effort and stream")


def test_on_an_engine_the_clock_leaps_a_minute_at_a_time(engine: Engine) -> None:
    asked_ms: list[int] = []

    class Clocked(Atomic):
        def housekeep(self, counter: str, region: str) -> Program[None]:
            now: Instant = yield Now()
            asked_ms.append(now.wall_ms)

    on_engine.at_once(engine, Clocked())
    assert all(later - earlier >= MINUTE_MS for earlier, later in pairwise(asked_ms))
    assert len(asked_ms) == EVENTS / A_MINUTE + CALM_MINUTES


def test_an_engine_whose_answers_are_lost_doubles_what_nothing_remembers(engine: Engine) -> None:
    forgotten = on_engine.answers_lost(engine, ALL["atomic ADD, no retries"], 1)
    assert (forgotten.events, forgotten.lost, forgotten.gave_up, forgotten.doubled > 0) == (EVENTS, 0, 0, True)
    assert on_engine.answers_lost(engine, ALL["atomic ADD, no retries"], 1) == forgotten
    kept = on_engine.answers_lost(engine, OURS, 1)
    assert kept == Counted(EVENTS, reads=kept.reads)
    assert (kept.reads.false, kept.reads.missed) == (0, 0)


def test_an_engine_keeps_a_hard_limit(engine: Engine) -> None:
    assert on_engine.limit(engine, ALL["atomic ADD"]) == Limit(0, 0)
    assert on_engine.limit(engine, OURS) is None
