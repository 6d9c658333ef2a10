"""What is seen without a visit: what waits in a lane, what there is to do, which there are,
which nobody reads.
"""

from typing import Any

import pytest

from compactor.inspection import BEYOND, LaneLag, Outlook, lag, outlook, unread_beyond
from compactor.lanes import Holding, every_lane
from compactor.listing import strays
from ledger import Ledger
from ledger.core import items
from ledger.core.errors import DamagedItem, LaneUnread, Unavailable
from ledger.core.requests import Get, Query, Scan, keyed
from ledger.core.values import Checkpoint, CleanNote, Lane
from ledger.lane.add import pack_of
from reader import Reader
from tests.world import (
    COUNTER,
    KEEP_MS,
    LANE,
    LATENESS_MS,
    NOW_MS,
    A,
    B,
    Region,
    compactor,
    delta,
    folded,
    in_one_day,
    refused,
    settings,
    token,
    two_regions,
)


def behind(page_size: int = 1_000) -> Region:
    """1 and 3 are strays, 0, 2 and 4 are folded and not yet cleaned, 5 and 6 are the tail."""
    return folded(0, 2, 4, later=(1, 3, 5, 6), fold_max=8, page_size=page_size)[0]


def test_what_waits_is_counted_and_unlisted_items_are_strays() -> None:
    for page_size in (1, 2, 1_000):
        home = behind(page_size)
        before = dict(home.items)
        waiting = LaneLag(
            LANE, tail=2, oldest_ms=5_000, watermark_ms=4_000, strays=2, to_clean=3, noted_ms=NOW_MS
        )
        assert home.run(lag(LANE)) == waiting
        assert {request.consistent for request in home.asked if isinstance(request, Query)} == {
            False
        }
        home.asked.clear()
        assert home.run(strays(LANE)) == [delta(1), delta(3)]
        assert all(request.consistent for request in home.asked if isinstance(request, Get | Query))
        assert home.items == before
    empty = Region()
    assert empty.run(lag(LANE)) == LaneLag(LANE)
    empty.put(delta(1))
    assert (empty.run(lag(LANE)), empty.run(strays(LANE))) == (
        LaneLag(LANE, tail=1, oldest_ms=1_000),
        [],
    )
    home.store([keyed(items.checkpoint_key(LANE))])
    found = home.run(lag(LANE))
    assert found == LaneLag(LANE, damage=found.damage)
    assert "sk='checkpoint' is damaged" in str(found.damage)


def test_a_clean_waits_from_its_note_or_the_first_commit() -> None:
    home, away = folded(0, 2, fold_max=8)
    committed_ms = home.now_ms
    assert home.run(lag(LANE)).noted_ms == committed_ms
    home.copy_to(away)
    home.now_ms += 5_000
    compactor(home, away).compact(COUNTER)
    assert home.run(lag(LANE)).noted_ms == committed_ms + 5_000
    home.drop(items.note_key(LANE))
    home.put(delta(6))
    compactor(home, away, clean=False).compact(COUNTER)
    # of a second commit, whose visit should have noted the first
    assert home.run(lag(LANE)).noted_ms is None


def test_every_lane_that_is_wanted_is_found_with_what_it_holds() -> None:
    for page_size in (1, 1_000):
        home = behind(page_size)
        other, lost = Lane(B, 0, "other"), Lane(B, 0, "lost")
        home.put(delta(1, lost), delta(1, Lane(B, 0, "x")))
        # a key does not tell how many
        home.store([items.pack_item(pack_of([delta(1, other), delta(2, other)]))])
        home.store([items.note_item(CleanNote(lost, 1, 0))])
        home.after(Scan, lambda _, page: page._replace(keys=page.keys[::-1]))  # a scan has no order
        found = home.run(every_lane(settings(), lambda lane: lane.counter != "x"))
        assert list(found.items()) == [
            (LANE, Holding(deltas=7, folded=True, whole=True, listed=True)),
            (lost, Holding(deltas=1, folded=True)),
            (other, Holding(deltas=1)),
        ]
        assert home.kinds.count(Scan) == (len(home.items) if page_size == 1 else 1)


# -- what there is to do


def seen(home: Region, *, below: bool = False, fold_min: int = 1, **given: Any) -> Outlook:
    home.asked.clear()
    return home.run(outlook(LANE, settings(fold_min=fold_min), below=below, **given))


def of_one_fold(upto: int) -> Checkpoint:
    """After one fold of these deltas."""
    total = sum(4**n for n in range(1, upto + 1))
    return Checkpoint(
        LANE, total, upto, token(upto), 1, token(upto), NOW_MS, in_one_day(upto, total)
    )


def test_what_an_outlook_costs() -> None:
    home, away = two_regions()
    for below in (False, True):
        assert seen(home, below=below, fold_min=7) == Outlook(None, below=False if below else None)
        assert home.in_short == ["get checkpoint", "query delta 7"]
    home.put(delta(1))
    compactor(home, away).compact(COUNTER)
    assert seen(home, below=True) == Outlook(of_one_fold(1), below=True)
    assert home.in_short == ["get checkpoint", "query delta 1", "query delta 1"]
    home.drop(items.delta_key(delta(1)))
    assert seen(home, below=True) == Outlook(of_one_fold(1), below=False)
    home.store([keyed(items.checkpoint_key(LANE))])
    with refused(home, DamagedItem):
        seen(home)


def test_a_fold_is_due_when_its_last_delta_is_old_enough() -> None:
    for page_size in (1, 2, 1_000):
        home, _ = two_regions(page_size=page_size)
        home.put(delta(1), delta(2))
        assert seen(home, fold_min=3) == Outlook(None, tail=2)
        home.put(delta(5), delta(9))
        assert seen(home, fold_min=3) == Outlook(None, tail=3, fold_ms=5_000 + LATENESS_MS)
        assert home.kinds.count(Query) == -(-3 // page_size)
    home, _ = two_regions()
    home.put(delta(1), delta(2))
    home.store([items.pack_item(pack_of([delta(1), delta(2)]))])
    assert seen(home, fold_min=3).tail == 2
    home.store([items.pack_item(pack_of([delta(n) for n in (1, 2, 3, 4)]))])
    assert seen(home, fold_min=3) == Outlook(None, tail=3, fold_ms=3_000 + LATENESS_MS)


def test_a_pack_over_the_watermark_is_a_stray_below_it() -> None:
    home, _ = folded(2, 4)  # two ranges
    home.drop(items.delta_key(delta(2)), items.delta_key(delta(4)))
    for numbers, below in (((2, 4, 5), False), ((2, 3, 5), True)):
        home.store([items.pack_item(pack_of(list(map(delta, numbers))))])
        assert seen(home, below=True).below is below
        assert not any(
            request.consistent for request in home.asked if isinstance(request, Get | Query)
        )


# -- lanes that no reader looks at


def test_lanes_of_a_producer_with_other_shards_are_told() -> None:
    home, away = two_regions()
    for _ in range(100):
        Ledger(
            settings(shards={"stock:": 4}, unshared_limits=True),
            table=home,
            clock=lambda: home.now_ms,
        ).add(COUNTER, 1)
    home.now_ms += KEEP_MS
    lanes = tuple(Lane(A, shard, COUNTER) for shard in (1, 2, 3))
    # found by their deltas, then by what is left of them once these are folded and cleaned
    for _ in range(3):
        report = compactor(home, away).run()
        assert tuple(report.problems) == lanes
        assert {type(problem) for problem in report.problems.values()} == {LaneUnread}
        checked = compactor(home, away).verify(COUNTER)
        assert (checked.ok, checked.unread) == (False, lanes)
        assert all(str(lane) in said for lane, said in zip(lanes, checked.differences, strict=True))
        assert (
            checked.value
            == Reader(settings(), table=home, clock=lambda: home.now_ms).read(COUNTER).value
        )
        home.copy_to(away)
        home.now_ms += KEEP_MS
    assert "see `lanes-unread` in docs/operations/values.md" in str(report.problems[lanes[0]])


def test_verify_looks_at_the_next_shards_and_not_further() -> None:
    for shards in (1, 4):
        home, away = two_regions()
        home.put(*(delta(n, Lane(A, n, COUNTER)) for n in range(12)))
        beyond = tuple(Lane(A, n, COUNTER) for n in range(shards, shards + BEYOND))
        assert home.run(unread_beyond(COUNTER, A, settings(shards={"stock:": shards}))) == list(
            beyond
        )
        at_once = ["getmany" + " checkpoint" * BEYOND, *["query delta 1"] * BEYOND]
        assert home.in_short[0] == f"together: {', '.join(at_once)}"
        assert compactor(home, away, shards={"stock:": shards}).verify(COUNTER).unread == beyond
    away.down = True
    with pytest.raises(Unavailable):
        compactor(home, away).verify(COUNTER)
    healthy = compactor(*two_regions()).verify(COUNTER)
    assert (healthy.ok, healthy.unread) == (True, ())
