"""Lanes that no reader of the settings looks at: whoever can see one tells of it, and its changes are not lost."""

import pytest

from compactor.unread import BEYOND, unread_beyond
from ledger import Ledger, Settings, items
from ledger.errors import LaneUnread, Unavailable
from ledger.requests import GetMany, Query, Together
from ledger.values import Lane
from reader import Reader
from tests.world import COUNTER, KEEP_MS, A, B, Region, compactor, delta, settings, two_regions

ELSEWHERE = "ap-south-1"


def added(home: Region, wrong: Settings, changes: int) -> None:
    for _ in range(changes):
        Ledger(wrong, table=home, clock=lambda: home.now_ms).add(COUNTER, 1)
    home.now_ms += KEEP_MS


def test_run_tells_of_every_lane_that_a_producer_with_other_shards_wrote_to() -> None:
    home, away = two_regions()
    added(home, settings(shards={"stock:": 4}), 100)
    for _ in range(3):  # found by their deltas, then by what is left of them once these are folded and cleaned
        report = compactor(home, away).run()
        assert list(report.problems) == [Lane(A, shard, COUNTER) for shard in (1, 2, 3)]
        assert {type(problem) for problem in report.problems.values()} == {LaneUnread}
        home.copy_to(away)
        home.now_ms += KEEP_MS
    said = str(report.problems[Lane(A, 3, COUNTER)])
    assert said == (
        f"{A}#3#{COUNTER}: there are changes in this lane, and no reader of these settings looks at it: they are in no "
        "value. Nothing is lost. Somebody adds with other regions or shards, or without its limit: see `lanes-unread` "
        "in docs/operations.md."
    )


def test_run_tells_of_a_lane_of_a_region_that_nobody_named_and_of_none_that_is_read() -> None:
    home, away = two_regions()
    home.put(delta(1), delta(2, Lane(B, 0, COUNTER)), delta(3, Lane(B, 3, "seats")))
    assert compactor(home, away, shards={"seats": 4}).run().problems == {}
    home, away = two_regions()
    added(home, settings(ELSEWHERE, regions=(A, B, ELSEWHERE)), 1)
    assert list(compactor(home, away).run().problems) == [Lane(ELSEWHERE, 0, COUNTER)]


def test_verify_is_not_content_with_a_counter_that_has_changes_beyond_its_shards() -> None:
    home, away = two_regions()
    added(home, settings(shards={"stock:": 4}), 100)
    checked = compactor(home, away).verify(COUNTER)
    assert not checked.ok
    assert checked.unread == tuple(Lane(A, shard, COUNTER) for shard in (1, 2, 3))
    assert all(f"{A}#{shard}#{COUNTER}" in said for shard, said in zip((1, 2, 3), checked.differences, strict=True))
    assert checked.value == Reader(settings(), table=home, clock=lambda: home.now_ms).read(COUNTER).value


@pytest.mark.parametrize("shards", [1, 4])
def test_verify_looks_at_the_next_shards_and_not_further(shards: int) -> None:
    home, away = two_regions()
    home.put(*(delta(n, Lane(A, n, COUNTER)) for n in range(12)))
    beyond = tuple(Lane(A, n, COUNTER) for n in range(shards, shards + BEYOND))
    home.asked.clear()
    assert home.run(unread_beyond(COUNTER, A, settings(shards={"stock:": shards}))) == list(beyond)
    folded = GetMany(tuple(map(items.checkpoint_key, beyond)), consistent=False)
    assert home.asked[0] == Together(
        (folded, *(Query(items.delta_pk(lane), limit=1, consistent=False) for lane in beyond))
    )
    assert compactor(home, away, shards={"stock:": shards}).verify(COUNTER).unread == beyond
    healthy = compactor(*two_regions()).verify(COUNTER)
    assert (healthy.ok, healthy.unread) == (True, ())
    away.down = True
    with pytest.raises(Unavailable):
        compactor(home, away).verify(COUNTER)
