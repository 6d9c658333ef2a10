"""What the first call of a counter costs, and its first refusal, by the number of its lanes; what
the lanes of a Region share for that.
"""

from datetime import timedelta
from typing import Any

import pytest

from lab.measure.firsts import First, first, first_add
from lab.measure.metered_table import START_MS
from ledger import Change, Ledger, Limit
from ledger.core import errors
from ledger.core.checks import to_datetime
from ledger.core.limit import DOWN
from ledger.core.requests import At, Get, GetMany, Query, Together
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.gates import Gates
from ledger.gate.move import obtain
from ledger.tables.memory import MemoryTable
from tests.world import A, B, World


class Counted(MemoryTable):
    """Counts requests as they are sent, and the items that are read; an eventual read is half a
    one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.read = 0, 0.0

    def answer(self, request: Any, /) -> Any:
        self._count(request)
        return super().answer(request)

    def _count(self, request: Any) -> None:
        match request:
            case At():
                self._count(request.request)
            case Together():
                for part in request.requests:
                    self._count(part)
            case _:
                keys = len(request.keys) if isinstance(request, GetMany) else 1
                self.sent += -(-keys // 100)
                if isinstance(request, Get | GetMany | Query):
                    self.read += keys if request.consistent else keys / 2


def first_refusal(shards: int) -> tuple[int, float]:
    table = Counted()
    settings = Settings(
        table="counters",
        region=A,
        regions=(A, B),
        shards={"s:": shards},
        limits={"s:": Limit(ceiling=1_000, region=A)},
        unshared_limits=True,
    )
    # The token decides in which order the call goes through the lanes: one of chance costs up to 15
    # % more or less.
    ledger = Ledger(
        settings,
        tables=dict.fromkeys((A, B), table),
        clock=lambda: 1_790_000_000_000,
        entropy=lambda n: bytes(range(n)),
    )
    with pytest.raises(errors.LimitReached):
        ledger.add("s:x", 1_001)
    return table.sent, table.read


@pytest.mark.parametrize("shards", [8, 16, 32])
def test_a_first_refusal_costs_more_by_the_lanes_there_are(shards: int) -> None:
    for few, many in zip(first_refusal(shards), first_refusal(2 * shards), strict=True):
        assert many <= 2.2 * few, (few, many)


def held(ledger: Ledger) -> object:
    return ledger.hold("seats:gala", 1, expires=timedelta(minutes=5))


def in_a_group(ledger: Ledger) -> object:
    return ledger.add_many([Change("seats:gala", 1)] * 10)


def of_a_period(ledger: Ledger) -> object:
    return ledger.add(f"quota:ann@{to_datetime(START_MS):%Y-%m}", 1)


FIRST: dict[tuple[int, int], tuple[First, First]] = {
    # so many Regions, and in which one: of an add, a hold or a group, and of a counter of a period
    (1, 0): (First(6, 3, 2), First(6, 3, 2)),
    (2, 0): (First(7, 3, 2), First(7, 3, 2)),
    (2, 1): (First(22, 14, 6), First(22, 14, 6)),  # which gets rights from the first
    (10, 0): (First(15, 3, 2), First(15, 3, 2)),
    (10, 9): (First(38, 14, 6), First(38, 14, 6)),
}


@pytest.mark.parametrize(("regions", "at"), FIRST)
def test_the_first_call_makes_the_gate_with_what_it_decides(regions: int, at: int) -> None:
    plain, period = FIRST[regions, at]
    for call in (first_add, held, *([] if at else [in_a_group])):
        assert first(call, regions, at=at) == plain, call
    assert first(of_a_period, regions, at=at) == period


def test_the_first_add_of_all_lists_no_directory() -> None:
    assert first(first_add, shaped=False) == First(10, 7, 3)
    assert first(first_add, 2, shaped=False) == First(11, 7, 3)


def test_what_one_region_shows_opens_no_gate_in_another() -> None:
    """The Region of the caller shows nothing of the other one, where a gate names the one that
    is gone.
    """
    world = World(shards={"s:": 2}, limits={"s:": Limit(floor=-10, region=B)}, unshared_limits=True)
    gone = Lane(B, 1, "s:x")
    away = Gates.of(world.settings(B), "s:x")
    assert away is not None
    # from the first rights, whose gate names it now
    assert world.away.run(obtain(away, gone, DOWN, 3)) is None
    world.away.drop(items.gate_key(gone))
    with pytest.raises(errors.OutOfReach, match="its gate is gone"):
        world.add("s:x", -10, A)
    assert items.gate_key(Lane(A, 1, "s:x")) in world.home.items, (
        "no lane was opened before, with a look at its Region"
    )
    assert items.gate_key(gone) not in world.away.items
