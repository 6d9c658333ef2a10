"""What befalls one counter, minute by minute, that a design that is wrong is seen there, and what is said of a sum."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from lab.compare.accuracy import SETTINGS
from lab.compare.changes import BASE, CEILING, EVENTS, SLOTS, Counted, Limit, Reads, Record, worst
from lab.compare.one_counter import CALM_MINUTES, C, Died, OneCounter, count, dying, limit
from lab.compare.scenarios import EU, ONE, SCENARIOS, US
from lab.designs import Outcome
from lab.designs.atomic import Atomic
from lab.designs.item_collection import Ours
from lab.designs.transaction_marker import TransactionMarker
from ledger import items
from ledger.errors import Unavailable
from ledger.requests import Get, Instant, Key, Program, run
from ledger.values import Lane

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


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


def test_changes_that_are_dropped_or_repeated_and_wrong_reads_are_seen_and_do_not_hide_each_other() -> None:
    assert count(Planted(), ONE, 0) == Counted(EVENTS, reads=Reads(made=18))
    none, both = count(Planted(times=(0,)), ONE, 0), count(Planted(times=(0, 2)), ONE, 0)
    assert (none.lost, none.reads.missed > 0) == (EVENTS, True)
    assert (both.lost, both.doubled) == (EVENTS / 2, EVENTS / 2)
    assert count(Planted(times=(3,)), ONE, 0).doubled == 2 * EVENTS
    assert count(Planted(more=1), ONE, 0).reads.false > 0


def test_a_limit_that_is_not_kept_is_seen() -> None:
    assert limit(Planted(times=(2,)), ONE, 0) == Limit(0, EVENTS - CEILING)
    assert limit(Planted(more=3), ONE, 0) == Limit(3, 5)
    assert worst([Limit(0, 2), Limit(1, 0)]) == Limit(1, 2)


def test_in_the_second_minute_regions_are_cut_off() -> None:
    seen: list[set[str]] = []
    one = OneCounter(Planted(tell=lambda what: seen.append({*one.world.cut})), BY_NAME["cut off"], 0, units=False)
    one.play(EVENTS)
    assert seen.count({US}) == EVENTS / 2 + 2  # and two housekeepings
    assert seen[-1] == set()


@pytest.mark.parametrize("name", ["Regions", "cut off", "failover"])
def test_in_the_end_everything_is_everywhere(name: str) -> None:
    one = OneCounter(TransactionMarker(), BY_NAME[name], 0, units=False)
    one.play(EVENTS)
    assert one.world.deliverable() == []
    assert len({*one.values()}) == 1


def test_housekeeping_dies_after_one_answer_more_each_time() -> None:
    told: list[str] = []
    count(Planted(tell=told.append), ONE, 0)
    assert told.count("kept") == 2 + CALM_MINUTES
    told.clear()
    count(Planted(tell=told.append), BY_NAME["crash"], 0)
    assert told.count("kept") == 1 + CALM_MINUTES  # of three answers, the first two visits had one and two


def test_what_is_measured_of_ours_was_folded_and_cleaned() -> None:
    one = OneCounter(Ours(settings=SETTINGS), BY_NAME["1 day"], 0, units=False)
    one.play(EVENTS)
    cells = one.world.replicas[EU].cells
    lane = Lane(EU, 0, C)
    assert sum(sk.startswith("segment#") for sk in cells[items.fold_pk(lane)]) > 10
    assert all(cell.item is None for cell in cells[items.delta_pk(lane)].values())


def test_a_process_dies_after_an_answer_also_after_its_last() -> None:
    def program() -> Program[str]:
        first = yield Get(Key("a", "a"))
        try:
            yield Get(Key("b", "b"))
        except Unavailable:
            yield Get(Key(str(first), "c"))
        return "done"

    asked: list[str] = []

    def answer(request: Any) -> int:
        asked.append(request.key.pk)
        if request.key.pk == "b":
            raise Unavailable("No answer.")
        return 1

    for answers, expected in ((0, []), (1, ["a"]), (2, ["a", "b"]), (3, ["a", "b", "1"]), (9, ["a", "b", "1"])):
        asked.clear()
        with pytest.raises(Died):
            run(dying(program(), answers), SimpleNamespace(answer=answer), lambda: Instant(0, 0))
        assert asked == expected


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
