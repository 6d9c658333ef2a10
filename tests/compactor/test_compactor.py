"""`Compactor` as its users see it: what it visits, what it reports, what it never writes, what
it cannot read.
"""

from functools import partial
from typing import Any

import pytest

from compactor import Compactor, Report
from ledger.core import items
from ledger.core.errors import DamagedItem, InvalidSettings, LaneDamaged, Throttled, Unavailable
from ledger.core.limit import Limit
from ledger.core.requests import DeleteMany, Put, PutMany, Scan, Transact, key_of
from ledger.core.values import Delta, Lane, Segment
from ledger.gate import items as gates
from ledger.lane import directory
from ledger.lane.add import pack_of
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
    folded,
    refused,
    settings,
    token,
    two_regions,
    value,
)

OTHER = Lane(A, 0, "healthy")


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
                assert all(directory.lane_of(key_of(item)) for item in listed), (
                    "a compactor adds nothing"
                )
    return pks


def test_a_visit_reports_what_it_folded_settled_and_cleaned() -> None:
    home, away = two_regions()
    assert compactor(home, away).run() == Report()
    home.put(delta(2), delta(3))
    assert compactor(home, away, fold_min=3).compact(COUNTER) == Report(lanes=1)
    assert written_pks(home) == set()
    assert compactor(home, away, fold_max=1).compact(COUNTER) == Report(
        lanes=1, folded=2, commits=2
    )
    home.put(delta(1))
    waits = Report(lanes=1, settled=1, commits=1, postponed=1, postponed_by=(B,))
    assert compactor(home, away).compact(COUNTER) == waits
    home.copy_to(away)
    assert compactor(home, away).compact(COUNTER) == Report(lanes=1)
    home.now_ms += KEEP_MS
    assert compactor(home, away, clean=False).compact(COUNTER) == Report(lanes=1)
    assert compactor(home, away).run() == Report(lanes=1, cleaned=3)
    assert compactor(home, away).run() == Report()
    home.put(Delta(LANE, token(1), 99))  # a retry with another change
    report = compactor(home, away).compact(COUNTER)
    assert (report.conflicts, value(home)) == ((token(1),), {1, 2, 3})


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
    for pk in (
        "",
        "delta#x",
        "delta#eu-west-1#01#a",
        "order#eu-west-1#0#a",
        "delta#eu-west-1#0#a b",
    ):
        home.store([{"pk": {"S": pk}, "sk": {"S": token(1)}, "change": {"N": "1"}}])  # not ours
    home.asked.clear()
    report = compactor(home, away, fold_min=3).run()
    assert (report.lanes, report.folded, report.settled, report.problems) == (3, 6, 1, {})
    listed = {directory.key_of(lane).pk for lane in (long_tail, short_tail, packed)}
    assert (
        written_pks(home) == {items.fold_pk(lane) for lane in (long_tail, stray, packed)} | listed
    )
    assert [request.after is None for request in home.asked if isinstance(request, Scan)].count(
        True
    ) == 1


def limited(table: Any, **given: Any) -> Compactor:
    limits = {"seats:": Limit(ceiling=10, region=A)}
    return Compactor(
        settings(limits=limits, **given), clock=lambda: NOW_MS, tables={A: table, B: table}
    )


def test_a_run_lists_the_lanes_the_scan_did_not_see_listed() -> None:
    home = Region(page_size=2)
    young, gate, theirs = Lane(A, 0, "young"), Lane(A, 0, "seats:gig"), Lane(B, 0, "seats:gig")
    home.put(delta(1, young))
    home.store(gates.new_gate(lane, Limit(ceiling=10, region=A)) for lane in (gate, theirs))
    assert limited(home, fold_min=2).run() == Report()
    assert {lane for key in home.items if (lane := directory.lane_of(key))} == {young, gate}
    home.asked.clear()
    assert limited(home, fold_min=2).run() == Report()
    assert written_pks(home) == set()


def test_a_lane_that_cannot_be_listed_stops_no_other() -> None:
    home, gate = Region(), Lane(A, 0, "seats:gig")
    home.after(PutMany, lambda request, _: tuple(Throttled("Slower.") for _ in request.items))
    home.store([gates.new_gate(gate, Limit(ceiling=10, region=A))])
    home.put(delta(1))
    report = limited(home).run()
    assert (report.folded, sorted(report.problems)) == (1, sorted([gate, LANE]))


def test_a_table_that_does_not_answer_fails_the_call() -> None:
    home, away = two_regions()
    mine = compactor(home, away)
    home.down = True
    for call in (mine.run, partial(mine.compact, COUNTER)):
        with pytest.raises(Unavailable):
            call()
    with pytest.raises(InvalidSettings, match=B):
        Compactor(settings(), tables={A: home})  # a Region without a table


# -- what is damaged


def lanes() -> tuple[Region, Region]:
    """Deltas 2 and 4 folded one by one, 6 in the tail; 1 in another lane."""
    home, away = folded(2, 4, later=(6,))
    home.put(delta(1, OTHER))
    return home, away


DAMAGED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (items.delta_pk(LANE), "!junk", {"change": {"N": "1"}}),
    (items.delta_pk(LANE), f"{token(5)}junk", {"change": {"N": "1"}}),
    (items.delta_pk(LANE), token(1), {"change": {"S": "1"}}),
    (items.delta_pk(LANE), token(5), {"change": {"N": "1.5"}}),
    (items.delta_pk(LANE), token(5), {}),
    (items.delta_pk(LANE), token(5), {"change": {"N": str(10**18 + 1)}}),
    (items.fold_pk(LANE), "checkpoint", {"count": {"N": "1"}}),
    (items.fold_pk(LANE), f"segment#{token(4)}#0000000002", {"entries": {"B": b"half"}}),
    # it covers, and has no version
    (items.fold_pk(LANE), f"segment#{token(3)}#", {"entries": {"B": b""}}),
    (items.fold_pk(LANE), "clean", {"version": {"N": "1"}}),
)


def test_a_damaged_item_is_named_and_stops_no_other_lane() -> None:
    for pk, sk, attributes in DAMAGED:
        home, away = lanes()
        damaged = {"pk": {"S": pk}, "sk": {"S": sk}, **attributes}
        home.store([damaged])
        home.put(delta(3))  # a stray, so that settle looks at the segments
        mine = compactor(home, away)
        rebuilt_from = [mine.rebuild] if sk.startswith("segment") else []
        for call in ([] if sk == "clean" else [mine.verify]) + rebuilt_from + [mine.compact]:
            with pytest.raises(DamagedItem) as raised:
                call(COUNTER)
            assert (raised.value.pk, raised.value.sk) == (pk, sk)
        report = compactor(home, away).run()
        assert list(report.problems) == [LANE]
        assert str(report.problems[LANE]) == str(raised.value)
        assert items.checkpoint_key(OTHER) in home.items
        assert home.items[key_of(damaged)] == damaged


def a_version_that_none_can_follow(home: Region) -> None:
    home.alter(items.checkpoint_key(LANE), version={"N": "9999999999"})
    home.alter(items.segment_key(LANE, token(4), 2), sk={"S": f"segment#{token(4)}#9999999999"})


def test_a_damaged_lane_is_reported_and_stays_as_it_is() -> None:
    def lost_all_but_segments(home: Region) -> None:
        home.drop(items.checkpoint_key(LANE), *(items.delta_key(delta(n)) for n in (2, 4, 5, 6)))

    def without_its_last_segment(home: Region) -> None:
        home.drop(items.segment_key(LANE, token(4), 2))
        home.now_ms += 300_000

    for harm in (
        *(a_version_that_none_can_follow, lost_all_but_segments, without_its_last_segment),
        lambda home: home.alter(items.checkpoint_key(LANE), watermark={"S": token(6)}),
        lambda home: home.forget_days(count={"N": str(10**20 - 1)}),
    ):
        home, away = lanes()
        home.put(delta(5))
        home.store([items.segment_item(Segment.of(Lane(B, 0, COUNTER), token(1), 2, []))])
        harm(home)
        before = {
            key: item
            for key, item in home.items.items()
            if key.pk in (items.delta_pk(LANE), items.fold_pk(LANE))
        }
        problems = compactor(home, away).run().problems
        assert {lane: type(problem) for lane, problem in problems.items()} == {LANE: LaneDamaged}
        assert before.items() <= home.items.items()


def test_a_version_that_none_can_follow_is_not_rebuilt() -> None:
    home, away = lanes()
    a_version_that_none_can_follow(home)
    says = (
        rf"^{LANE}: no checkpoint can follow the one in the table: .*9999999999.* "
        r"Nothing was written\. Look at"
    )
    with refused(home, LaneDamaged, says):
        compactor(home, away).rebuild(COUNTER)
    home, away = lanes()
    home.alter(items.checkpoint_key(LANE), version={"N": "1" * 38})
    with pytest.raises(DamagedItem, match="version"):
        compactor(home, away).compact(COUNTER)
    assert compactor(home, away).rebuild(COUNTER) == {LANE: 4**2 + 4**4}
    assert compactor(home, away).verify(COUNTER).ok
