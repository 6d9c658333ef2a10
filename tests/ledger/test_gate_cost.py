"""What a change costs at a gate once a backlog, a clock that was ahead or an outage of those who hold is over."""

from collections.abc import Callable
from typing import Any

import pytest

import ledger.requests
from lab.histories.filing import SHIPPED, Filing, file_as
from lab.measure.charge import Charge
from lab.measure.metered_table import MeteredTable
from ledger import tokens
from ledger.errors import ItemTooLarge
from ledger.gate import items
from ledger.gate.bounds import set_limit
from ledger.gate.decide import Decision, add_group, decide_change, decide_hold, end
from ledger.gate.gate import Gate
from ledger.gate.gates import Gates
from ledger.gate.past import Known, roll
from ledger.limit import Limit
from ledger.requests import Instant, Program, Put, Result, run
from ledger.tokens import hold_token
from ledger.values import Delta, Lane

REGION = "eu-west-1"
LANE = Lane(REGION, 0, "stock:85123A")
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
MANY = 10**9


class Shop:
    """One gate, a clock, and what is asked of the table."""

    def __init__(self, stock: int = MANY, filing: Filing = SHIPPED) -> None:
        self.table = MeteredTable()
        self.gates = Gates((LANE,), Limit(floor=-stock, region=REGION), REGION)
        file_as(filing)
        self.now_ms = 1_800_000_000_000
        self.table.is_charged = True
        self._number = 0

    def run(self, program: Program[Result]) -> Result:
        return run(program, self.table, lambda: Instant(self.now_ms, self.now_ms))

    def sale(self, change: int = -1, *, after_ms: int = 100, old_ms: int = 0) -> Delta:
        """A change that was first asked for so long ago; ahead of now, below 0."""
        self.now_ms += after_ms
        self._number += 1
        return Delta(LANE, tokens.keyed("", str(self._number), self.now_ms - old_ms), change)

    def sell(self, change: int = -1, *, after_ms: int = 100, old_ms: int = 0) -> Decision:
        return self.run(decide_change(self.gates, self.sale(change, after_ms=after_ms, old_ms=old_ms)))

    def hold(self, length_ms: int, after_ms: int = 5) -> Delta:
        self.now_ms += after_ms
        self._number += 1
        held = Delta(LANE, hold_token("", str(self._number), self.now_ms, length_ms), -1)
        self.run(decide_hold(self.gates, held))
        return held

    def cost(self, act: Callable[[], object]) -> Charge:
        before = self.table.cost
        act()
        return self.table.cost - before

    def of_now(self, changes: int = 100) -> Charge:
        """What so many changes of now cost, ten a second."""
        return self.cost(lambda: [self.sell() for _ in range(changes)])

    @property
    def gate(self) -> Gate:
        return items.gate_of(LANE, self.table.table.items[items.gate_key(LANE)])

    @property
    def notes(self) -> int:
        return sum(key.pk == items.hold_pk(LANE) for key in self.table.table.items)


def is_usual(of_100: Charge) -> bool:
    """Neither dearer than a change of now may be, nor cheaper than it can be."""
    return 100 <= of_100.write_units <= 125 and of_100.requests <= 125 and of_100.read_units <= 2


@pytest.mark.parametrize("moved_max", [30, 1_500])
def test_once_a_backlog_of_hours_has_ended_a_change_of_now_costs_what_it_did(moved_max: int) -> None:
    shop = Shop(filing=Filing(moved_max=moved_max))
    shop.of_now()
    assert is_usual(shop.of_now())
    for number in range(400):
        shop.sell(old_ms=HOUR_MS * 9 // 4 - number * HOUR_MS * 7 // 1_600)  # from 2.25 hours down to half an hour
        if number % 8 == 0:
            shop.sell()
    assert is_usual(shop.of_now())
    assert tokens.time_ms(shop.gate.low) <= shop.now_ms


def test_fingerprints_of_before_a_silence_of_hours_are_forgotten_at_its_end() -> None:
    for silent_ms in (HOUR_MS, HOUR_MS * 3 // 2, 2 * HOUR_MS, 3 * HOUR_MS):
        shop = Shop(filing=Filing(slack_ms=MINUTE_MS))
        shop.of_now(600)
        assert len(shop.gate.moved) > 500
        shop.now_ms += silent_ms
        shop.of_now(40)
        assert len(shop.gate.moved) <= 40


@pytest.mark.parametrize("every", [1, 5])
def test_what_is_ahead_of_now_makes_no_look_up_long_and_later_changes_no_dearer(every: int) -> None:
    """One in so many changes says that it is of in four minutes."""
    shop = Shop()
    for number in range(1_000):
        shop.sell(after_ms=20, old_ms=0 if number % every else -4 * MINUTE_MS)
    late = shop.cost(lambda: shop.sell(old_ms=15_000))
    assert late.requests <= 6
    assert late.read_units <= 4
    shop.now_ms += 5 * MINUTE_MS
    shop.of_now()
    assert is_usual(shop.of_now())


def test_a_few_changes_ahead_of_now_stay_in_the_gate_until_their_time_has_come() -> None:
    shop = Shop()
    sales = [shop.sale(old_ms=-MINUTE_MS) for _ in range(8)]
    shop.run(add_group(shop.gates, LANE, {sale.token: -1 for sale in sales}))
    ahead = {sale.token for sale in sales}
    shop.of_now()
    assert ahead <= shop.gate.recent.keys()
    shop.now_ms += MINUTE_MS
    shop.of_now()
    assert not ahead & shop.gate.recent.keys()


def test_one_change_pays_for_few_of_the_many_holds_that_are_over() -> None:
    shop = Shop(stock=2_000)
    for _ in range(2_000):
        shop.hold(5 * MINUTE_MS)
    shop.now_ms += 10 * MINUTE_MS
    for _ in range(3):
        costs = [shop.cost(shop.sell) for _ in range(30)]
        assert max(cost.requests for cost in costs) <= 12
        assert max(cost.write_units for cost in costs) <= 60
        assert max(cost.read_units for cost in costs) <= 5
    assert shop.notes > 1_800


def test_a_large_change_gets_what_many_holds_that_are_over_kept_and_its_gate_stays_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Shop(stock=1_000)
    for _ in range(1_000):
        shop.hold(5 * MINUTE_MS)
    shop.now_ms += 10 * MINUTE_MS
    monkeypatch.setattr(ledger.requests, "ITEM_BYTES_MAX", 4_000)
    cost = shop.cost(lambda: shop.sell(-1_000))
    assert (shop.gate.value, shop.notes) == (-1_000, 0)
    assert cost.requests <= 500
    assert cost.read_units <= 200
    assert cost.write_units <= 4_000


def test_holds_that_are_over_among_many_that_ended_cost_a_query_or_so_each() -> None:
    shop = Shop(stock=1_000)
    for number in range(600):
        held = shop.hold(5 * MINUTE_MS)
        if number % 20:
            shop.run(end(shop.gates, held, -1))
    shop.now_ms += 10 * MINUTE_MS
    cost = shop.cost(lambda: shop.sell(-430))
    assert shop.gate.value == -1_000
    assert cost.requests <= 90


FULL, OTHER = 2_000, Lane(REGION, 1, LANE.counter)


def fill(shop: Shop, lane: Lane = LANE) -> None:
    """The gate of a lane has more than an item may have, and all of it can be filed."""
    item = shop.table.table.items.get(items.gate_key(lane)) or items.new_gate(lane, shop.gates.limit)
    decided = {tokens.keyed("", f"{lane}{n}", shop.now_ms - n): {"N": "0"} for n in range(100)}
    shop.table.table.answer(Put({**item, "recent": {"M": {**item["recent"]["M"], **decided}}}))


def lend(shop: Shop, filled: Lane) -> object:
    """The last rights of one lane go to the other, of which one is full."""
    shop.gates = Gates((LANE, OTHER), shop.gates.limit, REGION)
    shop.run(shop.gates.create(OTHER))
    fill(shop, filled)
    return shop.run(decide_change(shop.gates, Delta(OTHER, tokens.keyed("", "lent", shop.now_ms), -9)))


WRITES: dict[str, Callable[[Shop], object]] = {
    "an add": lambda shop: shop.sell(),
    "a refusal": lambda shop: shop.sell(-11),
    "a hold": lambda shop: shop.hold(MINUTE_MS),
    "a group": lambda shop: shop.run(add_group(shop.gates, LANE, {shop.sale().token: -1 for _ in range(3)})),
    "a late change": lambda shop: shop.sell(old_ms=HOUR_MS),
    "another limit": lambda shop: shop.run(set_limit(shop.gates, -11, None)),
    "what gives": lambda shop: lend(shop, LANE),
    "what takes over": lambda shop: lend(shop, OTHER),
}


@pytest.mark.parametrize("what", WRITES)
def test_a_gate_that_is_full_is_filed_whatever_is_written(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(stock=10)
    shop.sell()
    if not what.startswith("what"):
        fill(shop)
    monkeypatch.setattr(ledger.requests, "ITEM_BYTES_MAX", FULL)
    WRITES[what](shop)
    assert shop.gate.version > 0 or what == "what takes over"


def test_a_hold_ends_at_a_gate_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger.requests, "ITEM_BYTES_MAX", FULL)
    for is_over in (False, True):
        shop = Shop(stock=10)
        held = shop.hold(MINUTE_MS)
        fill(shop)
        shop.now_ms += 2 * MINUTE_MS
        decision = shop.sell(-10) if is_over else shop.run(end(shop.gates, held, -1))
        assert decision == Decision(Known(-10 if is_over else -1), before=False)


def test_a_gate_that_another_call_filed_meanwhile_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was full, and is not when this call wants to file it."""
    shop = Shop(stock=10)
    shop.sell()
    fill(shop)
    monkeypatch.setattr(ledger.requests, "ITEM_BYTES_MAX", FULL)
    answer, done = shop.table.answer, list[bool]()

    def then(request: Any, /) -> Any:
        if isinstance(request, ledger.requests.PutMany) and not done:
            done.append(True)
            run(roll(shop.gates, shop.gate), shop.table.table, lambda: Instant(shop.now_ms, shop.now_ms))
        return answer(request)

    monkeypatch.setattr(shop.table, "answer", then)
    assert shop.sell() == Decision(Known(-1), before=False)
    assert done


def test_a_gate_that_is_full_of_what_cannot_be_filed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(stock=10)
    shop.sell()
    monkeypatch.setattr(ledger.requests, "ITEM_BYTES_MAX", 100)
    with pytest.raises(ItemTooLarge):
        shop.sell()
