"""The program `settle`: a stray counts from the next settle on, once."""

from compactor.report import Tally
from compactor.settle import settle
from ledger import items
from ledger.errors import GaveUp, LaneDamaged
from ledger.requests import Query
from ledger.values import Checkpoint
from tests.world import LANE, Region, delta, folded, refused, token, value


def settled(table: Region, *, upto: int = 2, fold_max: int = 8) -> Tally:
    table.run(settle(LANE, tally := Tally(), token(upto), fold_max=fold_max))
    return tally


def test_what_it_costs() -> None:
    """Candidates are sought cheaply, and confirmed by begin, then the covering segments strongly."""
    table, _ = folded(2)
    table.put(delta(1), delta(3))
    tally = settled(table)
    assert table.in_short == [
        "query delta",
        "query segment 1",
        *("get checkpoint strongly", "get segment strongly", "now", "query segment 1 strongly"),
        "transact checkpoint segment",
    ]
    checkpoint = Checkpoint(LANE, 4 + 16, 2, token(2), 2, token(2), table.now_ms)
    assert table.items[items.checkpoint_key(LANE)] == items.checkpoint_item(checkpoint)
    assert items.segment_key(LANE, token(2), 2) in table.items
    assert (tally.settled, tally.commits) == (1, 1)
    assert value(table) == {1, 2, 3}


def test_at_most_fold_max_are_settled_by_a_commit_and_none_is_left_whatever_the_pages() -> None:
    for page_size in (1, 2, 3, 1_000):
        table, _ = folded(9, page_size=page_size)
        table.put(*map(delta, range(1, 8)))
        tally = settled(table, upto=9, fold_max=3)
        assert tally.settled == 7
        assert tally.commits >= 3
        assert value(table) == {*range(1, 8), 9}
        table.asked.clear()
        assert settled(table, upto=9).commits == 0
        assert not any(each.consistent for each in table.asked if isinstance(each, Query))  # nothing to confirm


def test_items_at_or_below_a_token_may_be_passed_over() -> None:
    for since, left in ((-1, set[int]()), (0, {0}), (3, {0, 1, 3}), (4, {0, 1, 3, 4}), (9, {0, 1, 3, 4})):
        for page_size in (1, 1_000):
            table, _ = folded(2, 5, page_size=page_size)
            table.put(*map(delta, (0, 1, 3, 4)))
            token_since = None if since < 0 else token(since)
            table.run(settle(LANE, Tally(), token(5), fold_max=8, since=token_since))
            assert value(table) == {*range(6)} - left


def test_what_is_damaged_or_gone_ends_it_and_nothing_is_written() -> None:
    table, _ = folded(2)
    table.alter(items.checkpoint_key(LANE), watermark={"S": token(5)})
    table.put(delta(4))
    with refused(table, LaneDamaged, token(4)):  # no segment covers it
        settled(table, upto=5)
    for gone in ("checkpoint", ""):
        table, _ = folded(2)
        table.put(delta(1))
        table.drop(*(key for key in table.items if key.pk == items.fold_pk(LANE) and gone in key.sk))
        with refused(table, GaveUp):
            settled(table)
