"""What a process remembers of covers: a settle reads less, and counts the same."""

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor import known as module
from compactor.known import REMEMBERED_MS, Known, KnownCovers
from compactor.report import Tally
from compactor.settle_named import Naming, settle_named
from ledger.core import clocks, items
from ledger.core.entries import Entries, packed
from ledger.core.requests import Instant, Query
from ledger.core.values import Lane
from ledger.lane.named import Named
from tests.world import LANE, Region, delta, folded, token, value

NOW = Instant(1_000_000, 1_000_000)


def settled(table: Region, covers: KnownCovers | None, *numbers: int) -> list[Query]:
    """Settle these by name; the Queries of segments that this took."""
    table.asked.clear()
    named = Naming(Named.of(map(token, numbers)))
    table.run(settle_named(LANE, Tally(), named, fold_max=8, known=covers))
    return [each for each in table.asked if isinstance(each, Query) and "fold" in each.pk]


def late(table: Region, *numbers: int) -> None:
    for number in numbers:
        table.put(delta(number))


def warm(fold_max: int = 99) -> tuple[Region, KnownCovers]:
    """A lane of 5 and 9, in which 1 was settled under the first cover."""
    table, _ = folded(5, 9, fold_max=fold_max)
    late(table, 1)
    covers = KnownCovers()
    settled(table, covers, 1)
    return table, covers


def test_a_settle_reads_the_segments_that_came_since() -> None:
    table, covers = warm()
    late(table, 2, 3)
    (query,) = settled(table, covers, 2)
    known = items.segment_key(LANE, token(9), 1).sk  # the checkpoint's, when 1 was settled
    assert (query.after, query.upto) == (known, items.segments_of_hi(token(9)))
    assert query.consistent
    (query,) = settled(table, covers, 3)
    assert query.after == items.segment_key(LANE, token(9), 2).sk
    for again in (1, 2, 3, 5, 9):
        assert settled(table, covers, again)[0].limit is None
    assert value(table) == {1, 2, 3, 5, 9}


@pytest.mark.parametrize(
    "change",
    [
        lambda table: setattr(table, "now_ms", table.now_ms + REMEMBERED_MS + 1),
        lambda table: setattr(table, "steady_ms", table.steady_ms + REMEMBERED_MS + 1),
        lambda table: setattr(table, "now_ms", table.now_ms - REMEMBERED_MS - 1),
    ],
)
def test_either_clock_ages_what_is_known(change: Any) -> None:
    table, covers = warm()
    late(table, 2)
    change(table)
    assert settled(table, covers, 2)[0].limit == 1
    assert value(table) == {1, 2, 5, 9}


def test_a_lower_token_may_have_another_cover() -> None:
    table, covers = warm(fold_max=1)  # the covers are 5 and 9
    late(table, 7, 0)
    for number in (7, 0):
        assert settled(table, covers, number)[0].limit == 1
    assert value(table) == {0, 1, 5, 7, 9}


def test_a_checkpoint_that_went_back_ends_what_is_known() -> None:
    """A replica was made again: its checkpoint is older, and it lacks later segments."""
    table, _ = folded(5, 9)
    before = table.items.copy()
    late(table, 1, 2)
    covers = KnownCovers()
    for number in (1, 2):  # what is known is of version 2
        settled(table, covers, number)
    table.items.clear()
    table.items.update(before)
    late(table, 1)
    settled(table, covers, 1)
    assert value(table) == {1, 5, 9}


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), max_size=20))
def test_whoever_settles_what_and_when_it_counts_once(steps: list[tuple[int, int]]) -> None:
    """Two processes that remember, and one that does not."""
    table, _ = folded(4, 8, 12, fold_max=1)
    processes = (KnownCovers(), KnownCovers(), None)
    for number, process in steps:
        if number not in (4, 8, 12):
            table.drop(items.delta_key(delta(number)))
            late(table, number)
        settled(table, processes[process], number)
    assert value(table) == {4, 8, 12, *(number for number, _ in steps)}


def a_cover(number: int, entries: int = 1) -> Known:
    listed = Entries.of(packed(token(n), 1) for n in range(entries))
    return Known(token(0), token(number), 1, listed, NOW)


def test_it_holds_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_MAX", 10_000)
    shelf = module._Shelf()
    lanes = [Lane("eu-west-1", number, "stock") for number in range(30)]
    for lane in lanes:
        shelf.keep(lane, a_cover(1))
    held = [lane for lane in lanes if shelf.of(lane) is not None]
    assert held == lanes[-9:]
    shelf.keep(lanes[0], a_cover(1, 200))  # it is no room for that
    assert [lane for lane in lanes if shelf.of(lane) is not None] == held


def test_a_forked_child_begins_with_its_own() -> None:
    table, covers = warm()
    assert covers._own.value.of(LANE) is not None
    covers._own.value._lock.acquire()  # by a thread that the child has not
    clocks._in_the_child()
    late(table, 2)
    assert settled(table, covers, 2)[0].limit == 1


@pytest.mark.parametrize("event", ["line", "opcode"])
def test_who_is_interrupted_leaves_it_whole(event: str) -> None:
    shelf, nth, left = module._Shelf(), 0, 0
    while left <= 0:
        nth, left = nth + 1, nth + 1

        def trace(frame: FrameType, what: str, _: object) -> Any:
            nonlocal left
            if not frame.f_code.co_filename.endswith(("known.py", "cachetools/__init__.py")):
                return None
            frame.f_trace_opcodes = event == "opcode"
            is_with = frame.f_lineno is None or frame.f_lineno in WITHS
            if what == event and not is_with:
                left -= 1
                if left == 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            shelf.keep(LANE, a_cover(nth))
            shelf.of(LANE)
        except KeyboardInterrupt:
            left = 0
        finally:
            sys.settrace(before)
        assert shelf.of(LANE) in (None, a_cover(nth), a_cover(nth - 1))
        shelf.keep(LANE, a_cover(nth))
        assert shelf.of(LANE) == a_cover(nth)
    assert nth > 10


with open(module.__file__, encoding="utf-8") as source:
    WITHS = {n for n, line in enumerate(source, 1) if line.lstrip().startswith("with ")}
