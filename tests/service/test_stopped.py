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
from service.jobs import Job, Look, Settle, Sweep, Verify
from tests.service.support import NOTHING
from tests.service.test_compact import Shop
from tests.world import KEEP_MS, LANE, A, Region

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
    """A lane of so many full pages, folded; and strays, each after the so manieth folded change, that nobody names."""

    def __init__(self, pages: int, *strays: int, **changed: Any) -> None:
        self.dear = Dear(page_size=PAGE)
        super().__init__(self.dear, regions=(A,), **changed)
        self.table.now_ms = 10**7
        self.keys = [at(2 * n) for n in range(PAGE * pages)]
        self.table.store(items.delta_item(Delta(LANE, key, 1)) for key in self.keys)
        self.visit(Look(LANE))
        assert self.taken() == []
        self.dear.pages, self.dear.page_ms = 0, 1_000
        self.metrics.clear()
        self.strays = len(strays)
        self.table.store(items.delta_item(Delta(LANE, at(2 * n + 1), 1)) for n in strays)

    def serve(self, *jobs: Job, most: int = 12) -> int:
        """Serve these and what they send, each message alone and in its time; after how many calls nothing was left."""
        todo = [(self.table.now_ms, job) for job in jobs]
        for calls in range(most):
            if not todo:
                return calls
            todo.sort(key=lambda due: due[0])
            due_ms, job = todo.pop(0)
            began_ms = self.table.now_ms = max(due_ms, self.table.now_ms)
            assert self.visit(job, stop=lambda: self.table.now_ms > began_ms + FUNCTION_MS) == NOTHING  # noqa: B023
            todo += [(self.table.now_ms + 1_000 * delay_s, job) for job, delay_s in self.taken()]
        raise AssertionError(f"messages without end: {todo}")


@pytest.mark.parametrize("clean", [False, True])
def test_what_takes_twice_the_time_reads_each_page_once_and_settles_every_stray(clean: bool) -> None:
    first, last = at(0), at(2 * (PAGE * LONG - 1))
    between = Named((), ((first, last),))
    for job in (Sweep(LANE), Settle(LANE, between), Settle(LANE, between, again=True)):
        lane = Long(LONG, 0, 700, PAGE * LONG - 2, clean=clean)
        assert lane.serve(job) == 3
        assert lane.metrics[observe.STRAYS_SETTLED] == 3
        assert lane.dear.pages <= LONG + 3
        assert lane.metrics[observe.STOPPED_TRIES] == 1 + 2


def test_a_verify_that_does_not_fit_is_dropped_and_counted() -> None:
    lane = Long(LONG)
    assert lane.serve(Verify(LANE)) == 1
    assert lane.metrics[observe.VERIFIES_DROPPED] == 1
    assert observe.STOPPED_TRIES not in lane.metrics
    level, _, fields = lane.notes.lines[-1]
    assert (level, fields["outcome"], fields["dropped"]) == ("warning", "stopped", True)


def test_a_clean_that_finds_nothing_to_delete_in_its_time_notes_a_later_version_and_the_lane_is_cleaned() -> None:
    lane = Long(1)
    lane.serve(Sweep(LANE))  # notes version 1
    late = [tokens.make(500 + n, n.to_bytes(10, "big")) for n in range(PAGE * LONG)]
    lane.table.store(items.delta_item(Delta(LANE, key, 1)) for key in late)
    lane.serve(Settle(LANE, Named((), ((late[0], late[-1]),))), most=20)
    for _ in range(8):
        lane.table.now_ms += KEEP_MS
        lane.serve(Sweep(LANE))
    assert not [key for key in lane.table.items if key.pk == items.delta_pk(LANE)]
    assert lane.metrics[observe.DELTAS_CLEANED] == PAGE * (LONG + 1)
