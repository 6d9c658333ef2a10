"""The program `settle`: a stray counts from the next settle on, once."""

from compactor.report import Tally
from compactor.settle import settle
from ledger.core import items
from ledger.core.errors import GaveUp, LaneDamaged
from ledger.core.values import Checkpoint
from tests.world import LANE, Region, delta, folded, in_one_day, refused, token, value


def settled(table: Region, *, upto: int = 2, fold_max: int = 8) -> Tally:
    table.run(settle(LANE, tally := Tally(), token(upto), fold_max=fold_max))
    return tally


def test_what_it_costs() -> None:
    """Candidates are sought cheaply, and confirmed by begin, then the covering segments
    strongly.
    """
    table, _ = folded(2)
    table.put(delta(1), delta(3))
    tally = settled(table)
    assert table.in_short == [
        "query delta",
        "query segment 1",
        *("get checkpoint strongly", "get segment strongly", "now", "query segment 1 strongly"),
        "transact checkpoint segment",
    ]
    checkpoint = Checkpoint(LANE, 4 + 16, 2, token(2), 2, token(2), table.now_ms, in_one_day(2, 20))
    assert table.items[items.checkpoint_key(LANE)] == items.checkpoint_item(checkpoint)
    assert items.segment_key(LANE, token(2), 2) in table.items
    assert (tally.settled, tally.commits) == (1, 1)
    assert value(table) == {1, 2, 3}


def test_what_is_damaged_or_gone_ends_it_and_nothing_is_written() -> None:
    table, _ = folded(2)
    table.alter(items.checkpoint_key(LANE), watermark={"S": token(5)})
    table.put(delta(4))
    with refused(table, LaneDamaged, token(4)):  # no segment covers it
        settled(table, upto=5)
    for gone in ("checkpoint", ""):
        table, _ = folded(2)
        table.put(delta(1))
        table.drop(
            *(key for key in table.items if key.pk == items.fold_pk(LANE) and gone in key.sk)
        )
        with refused(table, GaveUp):
            settled(table)
