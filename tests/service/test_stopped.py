"""Work that does not fit the time of a function goes on behind what was done, and ends.

Each page of a lane costs a second, of both clocks; a function has 110 of them.
"""

from typing import Any

import pytest

from compactor.named import Named
from ledger import items, tokens
from ledger.requests import Query, Request
from ledger.values import Delta
from service import observe
from service.work import Work
from tests.service.test_compact import NOTHING, Shop
from tests.support import KEEP_MS, LANE, A, Region

PAGE, FUNCTION_MS = 5, 110_000
LONG = 250
"""Pages that take more than twice the time of a function."""


class Dear(Region):
    pages = page_ms = 0

    def answer(self, request: Request, /) -> Any:
        answer = super().answer(request)
        if isinstance(request, Query) and request.pk == items.delta_pk(LANE) and len(answer.items) == PAGE:
            self.pages += 1
            self.now_ms, self.steady_ms = self.now_ms + self.page_ms, self.steady_ms + self.page_ms
        return answer


def at(n: int) -> str:
    return tokens.make(1_000 * n, n.to_bytes(10, "big"))


class Long(Shop):
    """A lane of so many full pages, folded."""

    def __init__(self, pages: int, **changed: Any) -> None:
        self.dear = Dear(page_size=PAGE)
        super().__init__(self.dear, regions=(A,), **changed)
        self.table.now_ms = 10**7
        self.keys = [at(2 * n) for n in range(PAGE * pages)]
        self.table.store(items.delta_item(Delta(LANE, key, 1)) for key in self.keys)
        self.visit(Work(LANE))
        self.strays = self.dear.pages = 0
        self.dear.page_ms = 1_000
        self.told.metrics.clear()
        assert self.taken() == []

    def stray(self, n: int) -> None:
        """One that comes between the n-th folded change and the next, and that nobody names."""
        self.table.store([items.delta_item(Delta(LANE, at(2 * n + 1), 1))])
        self.strays += 1

    def serve(self, *works: Work, most: int = 12) -> int:
        """Serve these and what they send, each message alone and in its time; after how many calls nothing was left."""
        todo = [(self.table.now_ms, work) for work in works]
        for calls in range(most):
            if not todo:
                return calls
            todo.sort(key=lambda due: due[0])
            due_ms, work = todo.pop(0)
            began_ms = self.table.now_ms = max(due_ms, self.table.now_ms)
            assert self.visit(work, stop=lambda: self.table.now_ms > began_ms + FUNCTION_MS) == NOTHING  # noqa: B023
            todo += [(self.table.now_ms + 1_000 * delay_s, work) for work, delay_s in self.taken()]
        raise AssertionError(f"messages without end: {todo}")


def settled(lane: Long) -> bool:
    return lane.told.metrics[observe.STRAYS_SETTLED] == lane.strays


@pytest.mark.parametrize("clean", [False, True])
def test_a_sweep_that_takes_twice_the_time_reads_each_page_once_and_settles_every_stray(clean: bool) -> None:
    lane = Long(LONG, clean=clean)
    for n in (0, 700, PAGE * LONG - 2):
        lane.stray(n)
    assert lane.serve(Work(LANE, sweep=True)) == 3
    assert settled(lane)
    assert lane.dear.pages <= LONG + 3
    assert lane.told.metrics[observe.STOPPED_TRIES] == 1 + 2


@pytest.mark.parametrize("pages", [80, LONG])
def test_a_message_that_asks_for_a_sweep_and_a_verify_is_two_of_which_each_has_the_time(pages: int) -> None:
    lane = Long(pages, clean=False)
    lane.stray(100)
    both = Work.from_json(f'{{"lane": "{LANE}", "sweep": true, "verify": true}}', A)
    assert lane.serve(both) == (2 if pages == 80 else 4)
    assert settled(lane)
    checks = lane.told.metrics.get(observe.VERIFY_DIFFERENCES)
    assert (checks, lane.told.metrics[observe.VERIFIES_DROPPED]) == ((0, 0) if pages == 80 else (None, 1))


def test_a_verify_that_does_not_fit_is_dropped_and_counted() -> None:
    lane = Long(LONG)
    assert lane.serve(Work(LANE, fold=False, verify=True)) == 1
    assert lane.told.metrics[observe.VERIFIES_DROPPED] == 1
    assert observe.STOPPED_TRIES not in lane.told.metrics
    level, _, told = lane.told.lines[-1]
    assert (level, told["outcome"], told["dropped"]) == ("warning", "stopped", True)


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("name", ["late", "again"])
def test_a_range_that_takes_twice_the_time_is_settled_page_by_page(name: str, clean: bool) -> None:
    lane = Long(LONG, clean=clean)
    for n in (3, 600, PAGE * LONG - 2):
        lane.stray(n)
    between = Named((), ((lane.keys[0], lane.keys[-1]),))
    assert lane.serve(Work(LANE, fold=False, **{name: between})) == 3  # type: ignore[arg-type]
    assert settled(lane)
    assert lane.dear.pages <= LONG + 3


def test_a_clean_that_finds_nothing_to_delete_in_its_time_notes_a_later_version_and_the_lane_is_cleaned() -> None:
    lane = Long(1)
    lane.serve(Work(LANE, sweep=True))  # notes version 1
    late = [tokens.make(500 + n, n.to_bytes(10, "big")) for n in range(PAGE * LONG)]
    lane.table.store(items.delta_item(Delta(LANE, key, 1)) for key in late)
    lane.serve(Work(LANE, fold=False, late=Named((), ((late[0], late[-1]),))), most=20)
    for _ in range(8):
        lane.table.now_ms += KEEP_MS
        lane.serve(Work(LANE, sweep=True))
    assert not [key for key in lane.table.items if key.pk == items.delta_pk(LANE)]
    assert lane.told.metrics[observe.DELTAS_CLEANED] == PAGE * (LONG + 1)


def test_a_sweep_and_a_ring_in_one_batch_with_one_that_goes_on_pass_by_nothing() -> None:
    lane = Long(LONG, clean=False)
    lane.stray(10)
    began_ms = lane.table.now_ms
    lane.visit(Work(LANE, sweep=True), stop=lambda: lane.table.now_ms > began_ms + FUNCTION_MS)
    ((rest, _),) = lane.taken()
    assert rest.since is not None
    lane.stray(20)
    lane.serve(rest | Work(LANE, sweep=True))
    assert settled(lane)
