"""Each public method of a class that counts, reads or compacts knows that a period is over.

A further method is found by its signature, so a door that forgets to ask is red here.
"""

from collections.abc import Callable
from typing import Any

import pytest

from compactor import Compactor, Report
from ledger import Change, Delta, Hold, Ledger, Limit
from ledger.core.checks import to_datetime
from ledger.core.errors import PeriodOver
from reader import Reader
from tests.test_arguments import HOUR, PERIODS, calls_of
from tests.world import A, World

OVER, OTHER = "llm:key@2020-01", "llm:other@2020-01"
IN_IT_MS, LONG_AFTER_MS = 1_577_986_400_000, 1_790_000_000_000
AT = to_datetime(IN_IT_MS)

DOORS = {
    name: (use, right)
    for cls, of in (
        (Ledger, World.ledger),
        (Reader, World.reader),
        (Compactor, World.compactor),
    )
    for name, (use, right) in calls_of(cls, of).items()
}

LEAVES_IT_OUT: dict[str, Callable[[Any], bool]] = {
    "Ledger.add_many": lambda outcomes: [type(each) for each in outcomes] == [PeriodOver],
    "Reader.counters": lambda page: not page.counters,
    "Reader.periods": lambda found: bool(found) and OVER not in {each.counter for each in found},
    "Reader.top": lambda top: not top.rows,
    "Compactor.run": lambda report: report == Report(),
    "Compactor.compact": lambda report: report == Report(lanes=1),
}
"""What answers without it, or as if there were nothing to do."""

OF_NO_TABLE = {"Ledger.close", "Ledger.parse_hold", "Ledger.prepare"}
"""They ask nothing and write nothing; what they make is refused where it is sent."""


def world_after() -> tuple[World, Hold]:
    """A change and a hold, long after the end of their period."""
    limits = {"llm:": Limit(ceiling=100, region=A)}
    world = World(now_ms=IN_IT_MS, limits=limits, periods=PERIODS, unshared_limits=True)
    world.ledger().add(OVER, 5, idempotency_key="a", at=AT)
    hold = world.ledger().hold(OVER, 3, expires=HOUR, idempotency_key="h", at=AT)
    assert world.reader().value(OVER) == 5
    world.now_ms = LONG_AFTER_MS
    return world, hold


@pytest.mark.parametrize("door", sorted(DOORS.keys() - OF_NO_TABLE))
def test_a_door_knows_that_a_period_is_over(door: str) -> None:
    use, right = DOORS[door]
    world, hold = world_after()
    of_the_period: dict[str, object] = {
        "counter": OVER,
        "counters": [OVER],
        "changes": [Change(OVER, 1, idempotency_key="z", at=AT)],
        "delta": Delta(hold.delta.lane, hold.delta.token, 1),
        "hold": hold,
        "amount": 1,
        "id": hold.id,
        "source": OVER,
        "target": OTHER,
        "at": AT,
        "base": "llm:key",
        "prefix": "llm:",
        "since": to_datetime(IN_IT_MS - 3_600_000),
        "until": AT,
        "step": HOUR,
        "after": None,
    }
    given = {name: of_the_period.get(name, value) for name, value in right.items()}
    before = [dict(table.items) for table in world.regions.values()]
    if door in LEAVES_IT_OUT:
        assert LEAVES_IT_OUT[door](use(world, **given))
    else:
        with pytest.raises(PeriodOver):
            use(world, **given)
    assert [table.items for table in world.regions.values()] == before
