"""`Compactor` as its users see it: what it visits, what it reports, what it never writes."""

from typing import Any

import pytest

from compactor import Compactor, Report
from ledger import items
from ledger.errors import InvalidCounter, LaneDamaged, Throttled, Unavailable
from ledger.gate import items as gates
from ledger.lane import directory
from ledger.lane.add import pack_of
from ledger.limit import Limit
from ledger.requests import DeleteMany, Put, PutMany, Request, Scan, Transact, key_of
from ledger.values import Lane, Segment
from tests.world import (
    COUNTER,
    KEEP_MS,
    LANE,
    NOW_MS,
    A,
    B,
    Region,
    compactor,
    delta,
    settings,
    token,
    two_regions,
    value,
)


def written_pks(region: Region) -> set[str]:
    pks: set[str] = set()
    for request in region.asked:
        match request:
            case Put(item):
                pks.add(item["pk"]["S"])
            case Transact(writes):
                pks |= {write.key.pk for write in writes}
            case DeleteMany(deleted):
                pks |= {item["pk"]["S"] for item in deleted}
            case PutMany(listed):
                assert all(directory.lane_of(key_of(item)) for item in listed), "a compactor adds nothing"
    return pks


def test_a_visit_reports_what_it_folded_settled_and_cleaned() -> None:
    home, away = two_regions()
    home.put(delta(2), delta(3))
    assert compactor(home, away, fold_max=1).compact(COUNTER) == Report(lanes=1, folded=2, commits=2)
    home.put(delta(1))
    waits = Report(lanes=1, settled=1, commits=1, postponed=1, postponed_by=(B,))
    assert compactor(home, away).compact(COUNTER) == waits
    home.copy_to(away)
    assert compactor(home, away).compact(COUNTER) == Report(lanes=1)
    home.now_ms += KEEP_MS
    assert compactor(home, away).compact(COUNTER) == Report(lanes=1, cleaned=3)


def test_with_clean_switched_off_deltas_stay_for_ever() -> None:
    home, away = two_regions()
    home.put(delta(1))
    for _ in range(3):
        compactor(home, away, clean=False).compact(COUNTER)
        home.copy_to(away)
        home.now_ms += KEEP_MS
    assert items.delta_key(delta(1)) in home.items
    assert items.note_key(LANE) not in home.items


def test_run_visits_the_lanes_in_need_and_no_others() -> None:
    home, away = two_regions(page_size=2)
    long_tail, short_tail, stray, done, packed = (
        Lane(A, 0, name) for name in ("long", "short", "stray", "done", "packed")
    )
    theirs = Lane(B, 0, "long")
    for lane in (stray, done):
        home.put(delta(5, lane))
        compactor(home, away, clean=False).compact(lane.counter)
        home.drop(items.delta_key(delta(5, lane)))
    home.put(delta(1, stray))
    home.put(*(delta(n, lane) for n in (1, 2, 3) for lane in (long_tail, theirs)))
    home.put(*(delta(n, short_tail) for n in (1, 2)))
    home.store([items.pack_item(pack_of([delta(n, packed) for n in (1, 2, 3)]))])
    home.asked.clear()
    report = compactor(home, away, fold_min=3).run()
    assert (report.lanes, report.folded, report.settled, report.problems) == (3, 6, 1, {})
    listed = {directory.key_of(lane).pk for lane in (long_tail, short_tail, packed)}
    assert written_pks(home) == {items.fold_pk(lane) for lane in (long_tail, stray, packed)} | listed
    assert [request.after is None for request in home.asked if isinstance(request, Scan)].count(True) == 1


def test_run_reports_a_lane_that_lost_its_checkpoint_also_when_it_has_no_delta() -> None:
    home, away = two_regions(page_size=2)
    home.put(delta(1), delta(2))
    compactor(home, away, fold_max=1).compact(COUNTER)
    home.drop(items.checkpoint_key(LANE), items.delta_key(delta(1)), items.delta_key(delta(2)))
    home.store([items.segment_item(Segment.of(Lane(B, 0, COUNTER), token(1), 2, []))])
    report = compactor(home, away).run()
    assert list(report.problems) == [LANE]
    assert isinstance(report.problems[LANE], LaneDamaged)


def test_run_passes_by_items_that_are_not_ours() -> None:
    home, away = two_regions()
    theirs = ("delta#eu-west-1#one#a", "delta#eu-west-1#01#a", "order#eu-west-1#0#a", "delta#eu-west-1#0#a b")
    for pk in ("", "delta", "delta#", "delta#x", *theirs):
        home.store([{"pk": {"S": pk}, "sk": {"S": token(1)}, "change": {"N": "1"}}])
    home.put(delta(1))
    report = compactor(home, away).run()
    assert (report.lanes, report.folded) == (1, 1)


def limited(table: Any, **given: Any) -> Compactor:
    limits = {"seats:": Limit(ceiling=10, region=A)}
    return Compactor(settings(limits=limits, **given), clock=lambda: NOW_MS, tables={A: table, B: table})


def test_run_lists_the_lanes_of_its_region_that_the_scan_did_not_see_listed_once_and_those_of_gates_too() -> None:
    home = Region(page_size=2)
    young, gate, theirs = Lane(A, 0, "young"), Lane(A, 0, "seats:gig"), Lane(B, 0, "seats:gig")
    home.put(delta(1, young))
    home.store(gates.new_gate(lane, Limit(ceiling=10, region=A)) for lane in (gate, theirs))
    assert limited(home, fold_min=2).run() == Report()
    assert {lane for key in home.items if (lane := directory.lane_of(key))} == {young, gate}
    home.asked.clear()
    assert limited(home, fold_min=2).run() == Report()
    assert written_pks(home) == set()


def test_a_lane_that_cannot_be_listed_is_a_problem_and_the_others_are_compacted() -> None:
    class Refuses(Region):
        def answer(self, request: Request, /) -> Any:
            if isinstance(request, PutMany):
                return tuple(Throttled("Slower.") for _ in request.items)
            return super().answer(request)

    home = Refuses()
    gate = Lane(A, 0, "seats:gig")
    home.store([gates.new_gate(gate, Limit(ceiling=10, region=A))])
    home.put(delta(1))
    report = limited(home).run()
    assert (report.folded, sorted(report.problems)) == (1, sorted([gate, LANE]))


@pytest.mark.parametrize(("mine", "other"), [(A, B), (B, A)])
def test_it_writes_nothing_for_another_regions_lane_and_nothing_in_another_region(mine: str, other: str) -> None:
    tables = dict(zip((A, B), two_regions(), strict=True))
    for n, region in enumerate((A, B, A, B)):
        for table in tables.values():
            table.put(delta(n, Lane(region, 0, COUNTER)))
    for table in tables.values():
        compactor(table, tables[B if table is tables[A] else A], region=A, regions=(A,), clean=False)
    shipped = Compactor(settings(mine), clock=lambda: tables[mine].now_ms, tables=tables)
    for table in tables.values():
        table.asked.clear()
    for _ in range(3):
        shipped.run()
        shipped.compact(COUNTER)
        tables[mine].copy_to(tables[other], items.checkpoint_key(Lane(mine, 0, COUNTER)))
        tables[mine].now_ms += KEEP_MS
    shipped.rebuild(COUNTER)
    shipped.verify(COUNTER)
    listed = directory.key_of(Lane(mine, 0, COUNTER)).pk
    assert written_pks(tables[mine]) == {f"fold#{mine}#0#{COUNTER}", f"delta#{mine}#0#{COUNTER}", listed}
    assert written_pks(tables[other]) == set()


def test_a_lane_where_another_compactor_won_is_left_to_the_next_run_and_is_no_problem() -> None:
    class Contended(Region):
        def answer(self, request: Request, /) -> Any:
            return ({}, None) if isinstance(request, Transact) else super().answer(request)

    home, away = Contended(), Region()
    home.put(delta(1))
    listed = {**home.items, directory.key_of(LANE): directory.item_of(LANE)}
    assert compactor(home, away).run() == Report(lanes=1, gave_up=1)
    assert compactor(home, away).compact(COUNTER) == Report(lanes=1, gave_up=1)
    assert home.items == listed


def test_a_commit_whose_outcome_is_unknown_is_a_problem_and_the_next_run_goes_on() -> None:
    class Lossy(Region):
        lost = False

        def answer(self, request: Request, /) -> Any:
            answer = super().answer(request)
            if isinstance(request, Transact) and not self.lost:
                self.lost = True
                raise Unavailable("the answer was lost")
            return answer

    home, away = Lossy(), Region()
    home.put(delta(1))
    assert list(compactor(home, away).run().problems) == [LANE]
    home.put(delta(2))
    assert compactor(home, away).run().folded == 1
    assert value(home) == {1, 2}


@pytest.mark.parametrize("name", ["", "a b", None])
def test_a_name_that_is_no_counter_is_refused_and_nothing_is_sent(name: Any) -> None:
    home, away = two_regions()
    mine = compactor(home, away)
    for call in (mine.compact, mine.verify, mine.rebuild):
        with pytest.raises(InvalidCounter):
            call(name)
    assert home.asked == away.asked == []
