"""What is counted of each approach is what it claims, comes out the same again, and would be seen if it were wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from bench.approaches import Claims, Outcome, every
from bench.approaches.atomic import Atomic
from bench.approaches.item_collection import Ours
from bench.approaches.writes import Program
from bench.compare import on_engine
from bench.compare.accuracy import SETTINGS, measure, report
from bench.compare.events import BASE, CEILING, EVENTS, SLOTS, Counted, Limit, Reads, Record, worst
from bench.compare.on_simulator import count, limit
from bench.compare.scenarios import DAY_MS, EU, LAG, LIMITS, MINUTE_MS, ONE, OTHERS, SCENARIOS, US, Scenario
from bench.compare.stage import CALM_MINUTES, C, Died, Stage, dying
from demo.engine import Engine
from ledger import items
from ledger.errors import Unavailable
from ledger.requests import Get, Instant, Key, run
from ledger.values import Lane

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
    name = "transaction, client request token"
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


def test_every_read_of_ours_is_true_and_holds_what_its_region_acknowledged() -> None:
    for fault in BY_NAME:
        found = measured("this library", fault)
        assert found.reads.made > 0
        assert (found.reads.false, found.reads.missed) == (0, 0)


def test_a_naive_merge_is_read_by_halves_without_any_fault() -> None:
    reads = measured("item collection, naive merge", "at once").reads
    assert reads.false > 0
    assert reads.missed > 0


def test_a_counter_that_the_stream_feeds_is_read_late() -> None:
    reads = measured("hybrid, best effort and stream", "at once").reads
    assert (reads.false, reads.missed > 0) == (0, True)


def test_what_is_measured_of_ours_was_folded_and_cleaned() -> None:
    stage = Stage(OURS, BY_NAME["1 day"], 0, units=False)
    stage.play(EVENTS)
    cells = stage.world.replicas[EU].cells
    lane = Lane(EU, 0, C)
    assert sum(sk.startswith("segment#") for sk in cells[items.fold_pk(lane)]) > 10
    assert all(cell.item is None for cell in cells[items.delta_pk(lane)].values())


def test_ours_has_a_lane_in_each_region_that_asks() -> None:
    stage = Stage(OURS, LAG, 0, units=False)
    stage.play(EVENTS)
    for region in (EU, US):
        assert len(stage.world.replicas[EU].cells[items.delta_pk(Lane(region, 0, C))]) == EVENTS / 2


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_seed_measures_the_same_again(scenario: Scenario) -> None:
    approach = ALL["item collection, naive merge"]
    assert count(approach, scenario, 3) == count(approach, scenario, 3)


@dataclass(frozen=True, kw_only=True)
class Planted(Atomic):
    """Makes changes so often, in turn; reads so much too much; tells when it adds and when its housekeeping is done."""

    times: tuple[int, ...] = (1,)
    more: int = 0
    tell: Callable[[str], None] = lambda what: None

    def add(self, counter: str, change: int, key: str, at_ms: int, shard: int = 0) -> Program[Outcome]:
        self.tell("add")
        for _ in range(self.times[int(key.partition("-")[2]) % len(self.times)]):
            yield from Atomic.add(self, counter, change, key, at_ms)
        return "recorded"

    def value(self, counter: str, *, consistent: bool = True) -> Program[int]:
        return self.more + (yield from Atomic.value(self, counter, consistent=consistent))

    def housekeep(self, counter: str, region: str) -> Program[None]:
        for _ in range(3):
            yield Get(Key("a", "a"))
        self.tell("kept")


def test_an_approach_that_drops_or_repeats_changes_is_seen() -> None:
    assert count(Planted(), ONE, 0) == Counted(EVENTS, reads=Reads(made=18))
    assert count(Planted(times=(0,)), ONE, 0).lost == EVENTS
    assert count(Planted(times=(3,)), ONE, 0).doubled == 2 * EVENTS


def test_a_lost_event_and_a_doubled_one_do_not_hide_each_other() -> None:
    found = count(Planted(times=(0, 2)), ONE, 0)
    assert (found.lost, found.doubled) == (EVENTS / 2, EVENTS / 2)


def test_a_read_of_too_much_or_too_little_is_seen() -> None:
    assert count(Planted(more=1), ONE, 0).reads.false > 0
    assert count(Planted(times=(0,)), ONE, 0).reads.missed > 0


def test_a_limit_that_is_not_kept_is_seen() -> None:
    assert limit(Planted(times=(2,)), ONE, 0) == Limit(0, EVENTS - CEILING)
    assert limit(Planted(more=3), ONE, 0) == Limit(3, 5)
    assert worst([Limit(0, 2), Limit(1, 0)]) == Limit(1, 2)


def test_in_the_second_minute_regions_are_cut_off() -> None:
    seen: list[set[str]] = []
    stage = Stage(Planted(tell=lambda what: seen.append({*stage.world.cut})), BY_NAME["cut off"], 0, units=False)
    stage.play(EVENTS)
    assert seen.count({US}) == EVENTS / 2 + 2  # and two housekeepings
    assert seen[-1] == set()


@pytest.mark.parametrize("name", ["Regions", "cut off", "failover"])
def test_in_the_end_all_regions_read_the_same(name: str) -> None:
    stage = Stage(Atomic(), BY_NAME[name], 0, units=False)
    stage.play(EVENTS)
    assert len({*stage.values()}) == 1


def test_what_is_sent_in_both_regions_is_lost_less_by_a_set() -> None:
    assert measured("set of ids", "failover").lost < measured("set of ids", "Regions").lost / 2


def test_housekeeping_dies_after_one_answer_more_each_time() -> None:
    told: list[str] = []
    count(Planted(tell=told.append), ONE, 0)
    assert told.count("kept") == 2 + CALM_MINUTES
    told.clear()
    count(Planted(tell=told.append), BY_NAME["crash"], 0)
    assert told.count("kept") == 1 + CALM_MINUTES  # of three answers, the first two visits had one and two


def test_a_read_of_an_event_that_nobody_has_asked_for_yet_is_false() -> None:
    record = Record(units=False)
    record.asked.add(0)
    record.saw(1, ())
    assert record.reads == Reads(1)
    record.saw(1 + BASE, ())
    assert record.reads == Reads(2, 1)


def test_an_event_that_is_never_answered_is_neither_lost_nor_acknowledged() -> None:
    record = Record(units=False)
    record.asked |= {0, 1}
    record.answered(0, EU, "recorded")
    assert record.ended([1]) == Counted(2, gave_up=1)
    assert record.ended([1 + BASE]) == Counted(2, gave_up=1)
    record.answered(1, EU, "refused")
    assert record.ended([1]) == Counted(2)


def test_a_sum_names_an_event_up_to_seven_times_and_the_worst_region_counts() -> None:
    record = Record(units=False)
    for number in range(SLOTS + 3):
        record.asked.add(number)
        record.answered(number, US, "replayed")
    right = sum(map(record.change, record.asked))
    assert record.ended([right, right + 6 * BASE**4]).doubled == 6
    assert record.ended([right, right - BASE**4]).lost == 1
    assert record.ended([right - 4 * BASE ** (SLOTS - 1)]).lost == 4


def test_changes_of_1_tell_only_the_difference() -> None:
    record = Record(units=True)
    record.asked |= {0, 1, 2}
    assert [record.change(number) for number in record.asked] == [1, 1, 1]
    for number in record.asked:
        record.answered(number, EU, "recorded")
    assert [record.ended([value]) for value in (2, 3, 5)] == [Counted(3, 1), Counted(3), Counted(3, 0, 2)]


def test_a_process_dies_after_an_answer_also_after_its_last() -> None:
    def program() -> Program[str]:
        first = yield Get(Key("a", "a"))
        try:
            yield Get(Key("b", "b"))
        except Unavailable:
            yield Get(Key(str(first), "c"))
        return "done"

    class Refusing:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def answer(self, request: Any, /) -> int:
            self.asked.append(request.key.pk)
            if request.key.pk == "b":
                raise Unavailable("No answer.")
            return 1

    for answers, asked in ((0, []), (1, ["a"]), (2, ["a", "b"]), (3, ["a", "b", "1"]), (9, ["a", "b", "1"])):
        table = Refusing()
        with pytest.raises(Died):
            run(dying(program(), answers), table, lambda: Instant(0, 0))
        assert table.asked == asked


def test_the_tables_are_printed_in_100_columns() -> None:
    names = ["set of ids", "transaction, marker with TTL in its own table", "this library"]
    results = [measure(ALL[name], SEEDS) for name in names]
    assert results[0].faults["Regions"] == measured("set of ids", "Regions")
    lines = list(report(results, SEEDS))
    assert max(map(len, lines)) <= 100
    assert f"{'this library':45}" + f"{'0/0':>9}" * 6 in lines
    assert f"{'set of ids *':45}      0/0      0/5" in lines


def test_an_engine_loses_and_doubles_nothing_of_writers_at_once(engine: Engine) -> None:
    for name in ("atomic ADD", "optimistic, entity tag", "this library"):
        found = on_engine.at_once(engine, ALL[name])
        assert found == Counted(EVENTS, reads=found.reads), name
        assert (found.reads.made, found.reads.false, found.reads.missed) == (6, 0, 0)


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
