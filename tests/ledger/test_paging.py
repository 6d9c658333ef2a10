"""The pages of a range: all of them, no more than are wanted, and never a part for the whole."""

from collections.abc import Callable

import pytest

from compactor.lanes import every_lane
from compactor.listing import strays
from compactor.recount import recount
from compactor.verify import verify
from ledger.errors import Unavailable
from ledger.lane import tail
from ledger.lane.tail import Pages, every_item
from ledger.requests import Item, Key, KeyPage, Page, Program, Query, Scan
from reader.history import history
from reader.read import read
from tests.world import COUNTER, LANE, READ_MS, compactor, delta, two_regions


def item(sk: str) -> Item:
    return {"pk": {"S": "p"}, "sk": {"S": sk}}


def result(program: Program[list[Item]], answer: Page) -> list[Item]:
    with pytest.raises(StopIteration) as end:
        program.send(answer)
    found: list[Item] = end.value.value
    return found


def test_every_item_goes_on_after_each_page_until_there_is_no_more() -> None:
    program = every_item("p", "a", "z", consistent=False)
    assert next(program) == Query("p", "a", "z", None, False)
    assert program.send(Page((item("b"),), "b")) == Query("p", "b", "z", None, False)
    assert program.send(Page((), "c")) == Query("p", "c", "z", None, False)  # an empty page need not be the last
    assert result(program, Page((item("d"),), None)) == [item("b"), item("d")]


def test_every_item_takes_no_more_than_it_was_asked_for() -> None:
    program = every_item("p", None, None, most=3, consistent=True)
    assert next(program) == Query("p", None, None, 3, True)
    assert program.send(Page((item("a"), item("b")), "b")) == Query("p", "b", None, 1, True)
    assert result(program, Page((item("c"),), "c")) == [item("a"), item("b"), item("c")]


def test_the_pages_of_a_scan_go_on_after_each_key() -> None:
    pages = Pages(Scan())
    assert pages.more
    pages.turn(KeyPage((Key("p", "a"),), Key("p", "a")))
    assert (pages.next, pages.more) == (Scan(Key("p", "a")), True)
    pages.turn(KeyPage((), None))
    assert not pages.more


def test_as_many_pages_as_are_ever_read_are_read_and_one_more_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "PAGES_MAX", 3)
    last, more, scan = Pages(Query("p")), Pages(Query("p")), Pages(Scan())
    for pages in (last, more, scan):
        pages.turn(Page((), "a"))
        pages.turn(Page((), "b"))
    last.turn(Page((), None))
    assert not last.more
    with pytest.raises(Unavailable, match="p has more than 3 pages"):
        more.turn(Page((), "c"))
    with pytest.raises(Unavailable, match="The table has more than 3 pages"):
        scan.turn(KeyPage((), Key("p", "c")))


@pytest.mark.parametrize(
    "program",
    [
        lambda: read([LANE], consistent=True, read_time_max_ms=READ_MS),
        lambda: history(LANE, consistent=True, read_time_max_ms=READ_MS),
        lambda: every_lane(lambda lane: True),
        lambda: strays(LANE),
        lambda: recount(LANE),
        lambda: verify(LANE),
    ],
    ids=["read", "history", "every_lane", "strays", "recount", "verify"],
)
def test_nothing_is_silently_short(program: Callable[[], Program[object]], monkeypatch: pytest.MonkeyPatch) -> None:
    home, away = two_regions(page_size=1)
    home.put(*map(delta, (1, 2, 3)))
    compactor(home, away, fold_max=1, clean=False).compact(COUNTER)
    home.put(*map(delta, (4, 5, 6)))
    home.run(program())
    monkeypatch.setattr(tail, "PAGES_MAX", 2)
    with pytest.raises(Unavailable, match="more than 2 pages"):
        home.run(program())
