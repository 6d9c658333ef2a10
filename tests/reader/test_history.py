"""`history`: every change once, in the order of time, from segments and tail."""

from datetime import UTC, datetime

import pytest

from ledger import items
from ledger.errors import NotYetReplicated, ReadTooSlow
from ledger.requests import Get, Now, Query
from reader import Entry
from reader.history import history
from reader.read import STARTS_MAX
from tests.world import (
    COUNTER,
    LANE,
    READ_MS,
    A,
    B,
    Region,
    compact_for_long,
    compactor,
    delta,
    reader,
    token,
    two_regions,
)


def second(n: int) -> datetime:
    return datetime.fromtimestamp(n, UTC)


def entry(n: int, region: str = A) -> Entry:
    return Entry(token(n), second(n), 4**n, region)


def folded_settled_and_pending() -> tuple[Region, Region]:
    """Deltas 2, 4 and 6 folded one by one, 1, 3 and 5 settled afterwards, 7 in the tail."""
    home, away = two_regions(page_size=2)
    home.put(*map(delta, (2, 4, 6)))
    compactor(home, away, fold_max=1).compact(COUNTER)
    home.put(*map(delta, (1, 3, 5)))
    compactor(home, away).compact(COUNTER)
    home.put(delta(7))
    return home, away


def test_the_checkpoint_comes_before_the_segments_and_the_segments_before_the_tail() -> None:
    table = Region()
    table.put(delta(1))
    compactor(table, Region()).compact(COUNTER)
    for consistent in (True, False):
        table.asked.clear()
        table.run(history(LANE, consistent=consistent, read_time_max_ms=READ_MS))
        assert table.asked == [
            Now(),
            Get(items.checkpoint_key(LANE), consistent),
            Query(items.fold_pk(LANE), "segment#", "segment$", None, consistent),
            Query(items.delta_pk(LANE), f"{token(1)}$", None, None, consistent),
            Now(),
        ]


def test_every_change_comes_once_in_the_order_of_time_also_after_the_deltas_are_cleaned() -> None:
    assert list(reader(Region()).history("nobody:wrote")) == []
    home, away = folded_settled_and_pending()
    everything = [entry(n) for n in range(1, 8)]
    found = list(reader(home).history(COUNTER))
    assert found == everything
    assert {each.at.tzinfo for each in found} == {UTC}
    assert compact_for_long(home, away, 3).cleaned == 7
    assert list(reader(home).history(COUNTER)) == list(reader(away, region=B).history(COUNTER)) == everything


def test_a_segment_that_has_not_arrived_is_an_error_before_the_first_entry() -> None:
    home, away = folded_settled_and_pending()
    home.copy_to(away)
    missing = next(key for key in home.items if key.sk == f"segment#{token(4)}#0000000002")
    away.drop(missing)
    away.asked.clear()
    with pytest.raises(NotYetReplicated):
        reader(away, region=B).history(COUNTER)
    assert sum(request == Get(items.checkpoint_key(LANE)) for request in away.asked) == STARTS_MAX
    home.copy_to(away, missing)
    assert len(list(reader(away, region=B).history(COUNTER))) == 7


def test_a_history_that_takes_too_long_says_so() -> None:
    with pytest.raises(ReadTooSlow, match=f"^{LANE}: "):
        reader(Region().takes(READ_MS)).history(COUNTER)
