"""The program `evaluate` in memory: what is kept and told of a crossing, wherever it was stopped."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ledger import items as lanes
from ledger.actions import Set
from ledger.errors import DamagedItem, GaveUp, LedgerError, Unavailable
from ledger.gate import decide
from ledger.gate.gates import Gates
from ledger.limit import IN, OUT, Limit, Threshold
from ledger.requests import GetMany, Update, keyed, run
from ledger.settings import Settings
from ledger.values import Delta, Lane
from tests.support import COUNTER, LANE, NOW_MS, A, B, Region, settings, token
from thresholds import Crossing, Evaluated, Tell, evaluate, items

LOW, HIGH = Threshold(below=10), Threshold(above=100, name="high")
TOLD = settings(thresholds={"stock:": (LOW, HIGH)})


class Shop:
    """A Region with a counter, and an event bus. before sees each request first."""

    def __init__(self) -> None:
        self.table = Region()
        self.events: list[dict[str, Any]] = []
        self.down = False
        self.before: Callable[[Any], None] = lambda _: None
        self._changes = 0

    def answer(self, request: Any) -> Any:
        self.before(request)
        if not isinstance(request, Tell):
            return self.table.answer(request)
        if self.down:
            raise Unavailable("the bus does not answer")
        return self.events.append(request.crossing.event(request.table))

    def add(self, change: int, lane: Lane = LANE) -> None:
        self._changes += 1
        self.table.put(Delta(lane, token(self._changes, at_ms=NOW_MS), change))

    def evaluate(self, own: Settings = TOLD) -> Evaluated:
        done = Evaluated()
        run(evaluate(COUNTER, own, done), self, self.table.now)
        return done

    def kept(self, name: str = "below-10") -> Crossing | None:
        item = self.table.items.get(items.crossing_key(A, COUNTER, name))
        return None if item is None else items.crossing_of(A, COUNTER, name, item)

    def told(self) -> list[tuple[str, str, int]]:
        return [(each["threshold"], each["side"], each["value"]) for each in self.events]


def test_a_crossing_is_kept_and_told_once_however_often_it_is_looked_for() -> None:
    shop = Shop()
    shop.add(5)
    assert [shop.evaluate() for _ in range(3)] == [Evaluated(told=1), Evaluated(), Evaluated()]
    assert shop.events == [
        {
            "id": f"counters/{A}/{COUNTER}/below-10/1",
            "counter": COUNTER,
            "threshold": "below-10",
            "below": 10,
            "side": "in",
            "value": 5,
            "at": "1970-01-01T00:16:40.000Z",
            "number": 1,
            "region": A,
            "table": "counters",
        }
    ]
    assert shop.kept() == Crossing(
        region=A,
        counter=COUNTER,
        name="below-10",
        number=1,
        side=IN,
        value=5,
        at_ms=NOW_MS,
        told=1,
        below=10,
    )


def test_it_is_told_of_both_directions_and_of_each_threshold() -> None:
    shop = Shop()
    for change in (50, -45, 200, -199):
        shop.add(change)
        shop.evaluate()
    sides = [("below-10", IN, 5), ("below-10", OUT, 205), ("high", IN, 205), ("below-10", IN, 6), ("high", OUT, 6)]
    assert shop.told() == sides
    assert len({each["id"] for each in shop.events}) == 5
    assert [each["number"] for each in shop.events] == [1, 2, 1, 3, 2]


def test_what_nobody_wrote_and_what_has_no_threshold_here_is_not_told() -> None:
    shop = Shop()
    shop.add(50)
    assert shop.evaluate() == Evaluated()
    shop.add(-45)
    assert shop.evaluate(settings()) == shop.evaluate(replace(TOLD, region=B)) == Evaluated()
    assert shop.kept() is None


@pytest.mark.parametrize("stopped", [Update, Tell])
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_anywhere_neither_loses_a_crossing_nor_makes_another_of_it(stopped: type, after: bool) -> None:
    """Before a request, and after it with its answer lost."""
    for which in range(3):
        shop = Shop()
        shop.add(5)
        left = [which]

        def crash(request: Any, shop: Shop = shop, left: list[int] = left) -> None:
            if not isinstance(request, stopped):
                return
            left[0] -= 1
            if left[0] == -1:
                if after:
                    shop.before = lambda _: None
                    shop.answer(request)
                raise KeyboardInterrupt

        shop.before = crash
        try:
            shop.evaluate()
        except KeyboardInterrupt:
            shop.before = lambda _: None
            shop.evaluate()
        kept = shop.kept()
        assert kept is not None
        assert (kept.number, kept.told) == (1, 1)
        assert len({str(each) for each in shop.events}) == 1


def test_what_the_bus_did_not_take_is_told_by_the_next_one_before_it_looks_at_the_value() -> None:
    shop = Shop()
    shop.add(5)
    shop.down, done = True, Evaluated()
    with pytest.raises(Unavailable):
        run(evaluate(COUNTER, TOLD, done), shop, shop.table.now)
    kept = shop.kept()
    assert kept is not None
    assert (done, kept.is_told) == (Evaluated(untold=1), False)
    shop.down = False
    shop.add(50)
    assert shop.evaluate() == Evaluated(told=2)
    assert shop.told() == [("below-10", IN, 5), ("below-10", OUT, 55)]


def test_of_two_at_once_one_keeps_the_crossing_and_neither_tells_another() -> None:
    shop = Shop()
    shop.add(5)

    def meanwhile(request: Any) -> None:
        if isinstance(request, Update) and request.actions[0].path == "side":
            shop.before = lambda _: None
            assert shop.evaluate() == Evaluated(told=1)

    shop.before = meanwhile
    assert shop.evaluate() == Evaluated()
    assert shop.told() == [("below-10", IN, 5)]


def test_an_older_view_is_never_kept_over_a_newer_one() -> None:
    """Whoever read 5 is overtaken by one that read 5 and one that read 55: it looks again and has nothing to say."""
    shop = Shop()
    shop.add(5)

    def meanwhile(request: Any) -> None:
        if isinstance(request, Update):
            shop.before = lambda _: None
            shop.evaluate()
            shop.add(50)
            shop.evaluate()

    shop.before = meanwhile
    shop.evaluate()
    assert shop.told() == [("below-10", IN, 5), ("below-10", OUT, 55)]


def test_the_value_is_read_strongly_and_after_the_crossings() -> None:
    shop = Shop()
    shop.add(5)
    shop.evaluate()
    first, *reads = [request for request in shop.table.asked if isinstance(request, GetMany)]
    assert first == GetMany((items.crossing_key(A, COUNTER, "below-10"), items.crossing_key(A, COUNTER, "high")))
    assert reads[0] == GetMany((lanes.checkpoint_key(LANE), lanes.checkpoint_key(Lane(B, 0, COUNTER))))


def test_one_that_is_overtaken_each_time_gives_up() -> None:
    shop = Shop()
    shop.add(5)
    number = [0]

    def meanwhile(request: Any) -> None:
        if isinstance(request, Update):
            number[0] += 1
            key = items.crossing_key(A, COUNTER, "below-10")
            numbers = {name: {"N": str(2 * number[0])} for name in ("number", "told")}
            shop.table.store([keyed(key, side={"S": OUT}, value={"N": "99"}, at_ms={"N": "1"}, **numbers)])

    shop.before = meanwhile
    with pytest.raises(GaveUp, match="others kept crossings"):
        shop.evaluate()
    assert shop.events == []


@pytest.mark.parametrize(
    "wrong", [{"side": {"S": "under"}}, {"number": {"N": "1.5"}}, {"told": {"N": "2"}}, {"below": {"S": "10"}}]
)
def test_an_item_that_nobody_can_read_is_told_as_damage(wrong: dict[str, Any]) -> None:
    shop = Shop()
    shop.add(5)
    shop.evaluate()
    shop.table.alter(items.crossing_key(A, COUNTER, "below-10"), **wrong)
    with pytest.raises(DamagedItem, match="crossing#"):
        shop.evaluate()


def test_further_attributes_are_kept() -> None:
    shop = Shop()
    shop.add(5)
    shop.evaluate()
    key = items.crossing_key(A, COUNTER, "below-10")
    shop.table.alter(key, note={"S": "mine"})
    shop.add(50)
    shop.evaluate()
    assert shop.table.items[key]["note"] == {"S": "mine"}


def test_the_same_name_with_another_number_goes_on_from_its_side() -> None:
    shop = Shop()
    shop.add(5)
    shop.evaluate(settings(thresholds={"stock:": (Threshold(below=10, name="low"),)}))
    assert shop.evaluate(settings(thresholds={"stock:": (Threshold(below=4, name="low"),)})) == Evaluated(told=1)
    assert [(each["below"], each["side"], each["number"]) for each in shop.events] == [(10, IN, 1), (4, OUT, 2)]


def test_the_same_name_on_the_other_direction_is_told_by_its_own_number_also_after_a_crash() -> None:
    shop = Shop()
    shop.add(200)
    shop.evaluate(settings(thresholds={"stock:": (Threshold(above=100, name="alarm"),)}))
    shop.down = True
    with pytest.raises(Unavailable):
        shop.evaluate(settings(thresholds={"stock:": (Threshold(below=10, name="alarm"),)}))
    shop.down = False
    shop.evaluate(settings(thresholds={"stock:": (Threshold(below=10, name="alarm"),)}))
    [_, told] = shop.events
    assert ("above" in told, told["below"], told["side"], told["value"]) == (False, 10, OUT, 200)


def test_a_limited_counter_is_read_from_its_gates() -> None:
    shop = Shop()
    limits = {"stock:": Limit(floor=0)}
    own = settings(regions=(A,), limits=limits, thresholds={"stock:": (LOW,)})
    gates = Gates.of(own, COUNTER)
    assert gates is not None
    for n, change in enumerate((50, -45)):
        run(decide.decide_change(gates, Delta(LANE, token(n, at_ms=NOW_MS), change)), shop.table, shop.table.now)
        shop.evaluate(own)
    assert shop.told() == [("below-10", IN, 5)]


def test_each_update_may_come_again_or_late() -> None:
    """Whatever is applied once more changes nothing: the same at once, or after a further crossing."""
    shop = Shop()
    shop.add(5)
    written: list[Update] = []

    def note(request: Any) -> None:
        if isinstance(request, Update):
            written.append(request)

    shop.before = note
    shop.evaluate()
    shop.add(50)
    shop.evaluate()
    assert len(written) == 4
    assert all(any(isinstance(each, Set) for each in update.actions) for update in written)
    before = dict(shop.table.items)
    for update in written:
        shop.table.answer(update)
        assert dict(shop.table.items) == before  # after each: a later one would hide what an older one did


def test_the_counter_of_a_key_is_that_of_a_crossing_of_this_region_alone() -> None:
    pk = items.crossing_key(A, "a#b", "low").pk
    assert (items.counter_of(pk, A), items.counter_of(pk, B)) == ("a#b", None)
    for other in ("crossing#", f"crossing#{A}#", f"crossing#{A}#a b", f"delta#{A}#0#c", "crossing"):
        assert items.counter_of(other, A) is None


def test_failures_of_the_table_are_raised() -> None:
    shop = Shop()
    shop.add(5)
    shop.table.down = True
    with pytest.raises(LedgerError):
        shop.evaluate()
