"""A delta comes while a visit is at work: every order of their steps, and a crash at every one.

In every state that can be reached the delta is in the tail and, once the stream is delivered, its lane has a mark.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from compactor.outlook import outlook
from ledger import items
from service.compact.visit import Done, handle
from service.mark.handler import Marker
from service.marks import LEASE_MS, QUIET_MS, TOUCH_EVERY_MS, Claim, Mark, Touch
from service.runtime import Runtime
from service.work import Work
from tests.service.support import MemoryMarks, Told, never, stored
from tests.support import LANE, LATENESS_MS, NOW_MS, A, Region, Scene, delta, every_order, settings, steps

CLEANING = settings()
KEEPING = settings(clean=False)
TOUCHED_MS = {"spared": TOUCH_EVERY_MS - 1, "quiet": QUIET_MS + 1, "long ago": 10 * QUIET_MS}


class Marked(Region):
    """Its marks stand beside its items."""

    def __init__(self) -> None:
        super().__init__()
        self.marks = MemoryMarks(self)

    def answer(self, request: Any, /) -> Any:
        self.asked.clear()
        ours = type(request).__module__ == Touch.__module__
        return self.marks.answer(request) if ours else super().answer(request)


@pytest.mark.parametrize("tuned", [CLEANING, KEEPING])
@pytest.mark.parametrize("touched", TOUCHED_MS)
def test_no_order_of_a_visit_and_a_touch_leaves_a_delta_without_a_mark(touched: str, tuned: Any) -> None:
    def make() -> Scene:
        home, away = Marked(), Region()
        home.peers = {A: home, "us-east-1": away}
        told = Told()
        marker = Marker(tuned, Runtime(home, home, clock=lambda: home.now_ms, workers=1), told, told)  # type: ignore[arg-type]
        home.now_ms = NOW_MS - TOUCHED_MS[touched]
        marker({"Records": [stored(items.delta_item(delta(1)), made_ms=home.now_ms)]})
        home.put(delta(1, at_ms=NOW_MS - LATENESS_MS))
        home.now_ms = NOW_MS
        home.answer(Claim(home.marks.mark(LANE) or Mark(LANE), NOW_MS + LEASE_MS))
        fresh = delta(2, at_ms=NOW_MS)
        delivered = []

        def deliver() -> None:
            delivered.append(marker({"Records": [stored(items.delta_item(fresh), made_ms=NOW_MS)]}))

        def write() -> Iterator[object]:
            yield "put"
            home.put(fresh)
            yield "mark"
            deliver()

        def check() -> None:
            home.store(home.landing)
            home.landing = []
            home.put(fresh)
            if not delivered:
                deliver()
            assert home.run(outlook(LANE, tuned)).fold_ms is not None
            assert home.marks.mark(LANE) is not None

        visit = steps(handle(Work(LANE), Done(), tuned, never), home)
        return (home,), [write(), visit], check

    assert every_order(make) > 20
