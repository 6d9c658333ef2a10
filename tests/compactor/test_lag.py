"""What waits for the compactor in a lane, and the strays by name."""

import pytest

from compactor.lag import LaneLag, lag
from compactor.lanes import Holding, every_lane
from compactor.listing import strays
from ledger import items
from ledger.lane.add import pack_of
from ledger.lane.tail import through
from ledger.requests import Get, KeyPage, Program, Query, Scan
from ledger.values import CleanNote, Lane
from tests.world import COUNTER, LANE, NOW_MS, B, Region, compactor, delta, two_regions


def behind(page_size: int = 1_000) -> Region:
    """1 and 3 are strays, 0, 2 and 4 are folded and not yet cleaned, 5 and 6 are the tail."""
    home, away = two_regions(page_size=page_size)
    home.put(delta(0), delta(2), delta(4))
    compactor(home, away, clean=False).compact(COUNTER)
    home.put(*map(delta, (1, 3, 5, 6)))
    return home


@pytest.mark.parametrize("page_size", [1, 2, 1_000])
def test_what_waits_is_counted_and_the_strays_are_what_no_segment_lists(page_size: int) -> None:
    home = behind(page_size)
    before = dict(home.items)
    home.asked.clear()
    waiting = LaneLag(LANE, tail=2, oldest_ms=5_000, watermark_ms=4_000, strays=2, to_clean=3, noted_ms=NOW_MS)
    assert home.run(lag(LANE)) == waiting
    assert {request.consistent for request in home.asked if isinstance(request, Query)} == {False}
    home.asked.clear()
    assert home.run(strays(LANE)) == [delta(1), delta(3)]
    assert all(request.consistent for request in home.asked if isinstance(request, Get | Query))
    assert home.items == before


def test_what_is_to_be_cleaned_waits_from_its_note_or_from_a_first_commit_on() -> None:
    home, away = two_regions()
    home.put(delta(0), delta(2))
    compactor(home, away).compact(COUNTER)
    committed_ms = home.now_ms
    assert home.run(lag(LANE)).noted_ms == committed_ms
    home.copy_to(away)
    home.now_ms += 5_000
    compactor(home, away).compact(COUNTER)
    assert home.run(lag(LANE)).noted_ms == committed_ms + 5_000
    home.drop(items.note_key(LANE))
    home.put(delta(6))
    compactor(home, away, clean=False).compact(COUNTER)
    assert home.run(lag(LANE)).noted_ms is None  # of a second commit, whose visit should have noted the first


@pytest.mark.parametrize("page_size", [1, 1_000])
def test_every_lane_that_is_wanted_is_found_with_what_it_holds(page_size: int) -> None:
    home = behind(page_size)
    other, lost, unwanted = Lane(B, 0, "other"), Lane(B, 0, "lost"), Lane(B, 0, "x")
    home.put(delta(1, lost), delta(1, unwanted))
    home.store([items.pack_item(pack_of([delta(1, other), delta(2, other)]))])  # how many it holds, a key does not tell
    home.store([items.note_item(CleanNote(lost, 1, 0))])
    pages: list[int] = []

    def backwards(request: Scan) -> Program[KeyPage]:
        page: KeyPage = yield request
        return page._replace(keys=page.keys[::-1])  # a scan has no order

    found = home.run(through(every_lane(lambda lane: lane != unwanted, lambda: pages.append(1)), backwards))
    assert list(found.items()) == [
        (LANE, Holding(deltas=7, folded=True, whole=True, listed=True)),
        (lost, Holding(deltas=1, folded=True)),
        (other, Holding(deltas=1)),
    ]
    assert len(pages) == (len(home.items) if page_size == 1 else 1)
