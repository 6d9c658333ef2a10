"""Changes of which a part may count: what counts, what each call is told, what is refused."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lab.measure.metered_table import MeteredTable
from ledger import Change, Keep, Ledger, Limit, Settings
from ledger.aio import AsyncLedger
from ledger.core import errors, tokens
from ledger.core.checks import to_datetime
from ledger.core.requests import Update
from ledger.core.running import or_error
from tests.ledger.test_limits import SEATS, STOCK, Pair, raised
from tests.world import A, B, World, fail

ROOT = Path(__file__).parents[2]


def test_what_is_left_counts_and_every_call_is_told_the_same() -> None:
    pair = Pair()
    pair.add(SEATS, 4)
    all_of_it, part, none = pair.key(), pair.key(), pair.key()
    first = pair.here.add_up_to(SEATS, 2, **all_of_it)
    assert (first.outcome, first.change) == ("recorded", 2)
    second = pair.there.add_up_to(SEATS, 9, **part)
    assert (second.outcome, second.change, second.delta.lane.region) == ("recorded", 4, B)
    refused = raised(errors.LimitReached, "had 0 left", pair.there.add_up_to, SEATS, 9, **none)
    assert (refused.available, refused.limit, refused.replayed) == (0, 10, False)
    pair.add(SEATS, -5)  # whatever comes back
    for ledger in (pair.here, pair.there):
        for asked in (9, 5, 4):
            again = ledger.add_up_to(SEATS, asked, **part, region=B)
            assert (again.outcome, again.change) == ("replayed", 4)
        again = raised(
            errors.LimitReached, "have [0-9] left", ledger.add_up_to, SEATS, 1, **none, region=B
        )
        assert (again.replayed, again.delta) == (True, None)
        less = raised(
            errors.TokenConflict, "a change of 4", ledger.add_up_to, SEATS, 3, **part, region=B
        )
        assert (less.counts, less.delta) == (4, None)
        assert ledger.apply(second.delta).outcome == "replayed"
    assert pair.value() == 5
    assert pair.here.add_up_to(SEATS, 10**18, **pair.key()).change == 5


def test_a_key_names_another_change_than_that_of_an_add() -> None:
    pair = Pair()
    key = pair.key()
    part = pair.here.add_up_to(SEATS, 12, **key)
    raised(errors.LimitReached, ".", pair.here.add, SEATS, 12, **key)
    pair.add(SEATS, -3)
    assert pair.here.add(SEATS, 2, idempotency_key="k", at=key["at"]).change == 2
    assert pair.here.add_up_to(SEATS, 2, idempotency_key="k", at=key["at"]).change == 1
    at_ms = tokens.time_ms(part.delta.token)
    assert part.delta.token == tokens.keyed(SEATS, key["idempotency_key"], at_ms, "up to:")


def test_it_costs_what_an_add_costs_to_the_request() -> None:
    def asked(name: str, change: int, counts: int) -> list[type]:
        pair = Pair()
        pair.add(SEATS, 1)
        pair.add(SEATS, 1, pair.there)
        pair.home.asked.clear()
        pair.away.asked.clear()
        made = or_error(lambda: getattr(pair.here, name)(SEATS, change, **pair.key()))
        assert getattr(made, "change", 0) == counts
        return [*pair.home.kinds, *pair.away.kinds]

    assert asked("add_up_to", 3, 3) == asked("add", 3, 3) == [Update]
    refused = asked("add", 99, 0)
    assert asked("add_up_to", 99, 8) == refused, "its second Update counts, that of add refuses"


def test_a_side_below_zero_and_a_first_change() -> None:
    pair = Pair()
    raised(errors.LimitReached, ".", pair.here.add_up_to, STOCK, -5, **pair.key())
    pair.add(STOCK, 3, pair.there)
    pair.world.now_ms += 2_000
    assert pair.here.add_up_to(STOCK, -5, **pair.key()).change == -3
    other = Pair()
    assert other.there.add_up_to(SEATS, 12, **other.key()).change == 10


def test_a_process_that_remembers_that_nothing_is_left_asks_once() -> None:
    pair = Pair()
    pair.add(SEATS, 10)
    raised(errors.LimitReached, ".", pair.here.add_up_to, SEATS, 5, **pair.key())
    pair.home.asked.clear()
    pair.away.asked.clear()
    refused = raised(errors.LimitReached, ".", pair.here.add_up_to, SEATS, 7, **pair.key())
    assert (refused.remembered, pair.home.kinds, pair.away.kinds) == (True, [Update], [])


def test_nothing_is_decided_while_a_lane_does_not_answer() -> None:
    pair = Pair()
    pair.add(SEATS, 1)
    pair.add(SEATS, 1, pair.there)
    pair.away.down = True
    key = pair.key()
    error = raised(errors.OutOfReach, "Nothing was decided", pair.here.add_up_to, SEATS, 20, **key)
    assert error.delta is None
    pair.away.down = False
    pair.world.now_ms += 2_000
    assert pair.here.add_up_to(SEATS, 20, **key).change == 8


def test_an_answer_that_is_lost_is_found_by_the_next_call() -> None:
    pair = Pair()
    pair.add(SEATS, 6)
    key = pair.key()
    pair.home.after(Update, fail(errors.OutcomeUnknown("no answer")), 1)
    error = raised(errors.OutcomeUnknown, ".", pair.here.add_up_to, SEATS, 3, **key)
    assert error.delta is None
    pair.add(SEATS, 1)
    assert pair.there.add_up_to(SEATS, 3, **key, region=A).change == 3
    assert pair.value() == 10


WRONG: dict[str, tuple[dict[str, Any], type[errors.LedgerError], str]] = {
    "0": ({"change": 0}, errors.InvalidChange, "of 0 no part can count"),
    "a side without a limit": ({"change": -1}, errors.InvalidChange, "has no floor.*Call add"),
    "no limit": ({"counter": "plain"}, errors.InvalidInput, "has no limit"),
    "no number": ({"change": 1.0}, errors.InvalidChange, "."),
    "no key": ({"idempotency_key": None}, errors.InvalidKey, "."),
    "no time": ({"at": None}, errors.InvalidKey, "came without at"),
    "no key and no time": ({"idempotency_key": None, "at": None}, errors.InvalidKey, "."),
    "a Region of others": ({"region": "mars"}, errors.InvalidInput, "."),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_count_in_part_is_refused_unsent(wrong: str) -> None:
    pair = Pair()
    pair.home.asked.clear()
    pair.away.asked.clear()
    given, error, says = WRONG[wrong]
    call = {"counter": SEATS, "change": 1, "idempotency_key": "k", "at": to_datetime(0)} | given
    for ledger in (pair.here, AsyncLedger(pair.here.settings, table=pair.home)):

        def asked(ledger: Any = ledger) -> Any:
            answer = ledger.add_up_to(
                call["counter"],
                call["change"],
                **{name: call[name] for name in call if name not in ("counter", "change")},
            )
            return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer

        caught = raised(error, says, asked)
        assert ("Nothing was written" in str(caught), caught.delta) == (True, None)
    assert (pair.home.asked, pair.away.asked) == ([], [])


def test_a_change_in_a_list_is_whole() -> None:
    pair = Pair()
    change = Change(SEATS, 12, **pair.key(), partial=True)
    pair.home.asked.clear()
    for pack in (False, True):
        (error,) = pair.here.add_many([change], pack=pack)
        assert isinstance(error, errors.InvalidInput)
        assert "Call add_up_to" in str(error)
    assert pair.home.asked == []


def test_a_key_that_brings_its_time_needs_no_at() -> None:
    pair = Pair()
    key = tokens.make(pair.world.now_ms - 5, bytes(10))
    receipt = pair.here.add_up_to(SEATS, 12, idempotency_key=key)
    assert (receipt.change, tokens.time_ms(receipt.delta.token)) == (10, pair.world.now_ms - 5)


def test_a_period_that_is_over_takes_no_part() -> None:
    world = World(
        limits={"q:": Limit(ceiling=6, region=A)},
        periods={"q:": Keep(late=timedelta(hours=1), keep=timedelta(days=9))},
    )
    ledger = world.ledger(A)
    old = to_datetime(world.now_ms - 9 * 86_400_000)
    over = raised(
        errors.PeriodOver,
        ".",
        ledger.add_up_to,
        f"q:a@{old:%Y-%m-%d}",
        9,
        idempotency_key="k",
        at=old,
    )
    assert over.delta is None


def test_the_asynchronous_ledger_counts_the_same_part() -> None:
    pair = Pair()
    pair.add(SEATS, 4)
    key = pair.key()

    async def asked() -> Any:
        async with AsyncLedger(
            pair.here.settings, tables={A: pair.home, B: pair.away}, clock=pair.world.clock
        ) as ledger:
            return await ledger.add_up_to(SEATS, 9, **key)

    assert asyncio.run(asked()).change == 6
    assert pair.here.add_up_to(SEATS, 9, **key).outcome == "replayed"


def test_a_gathering_ledger_counts_a_part_by_itself() -> None:
    pair = Pair(gather=True)
    assert pair.here.add_up_to(SEATS, 12, **pair.key()).change == 10
    pair.here.close()


def test_a_receipt_says_what_counts() -> None:
    world = World()
    assert world.ledger(A).add("plain", 7).change == 7


COSTS: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "enough is here": ({A: 50}, ("k",)),
    "enough is in the other Region": ({B: 50}, ("k",)),
    "a part, all of it here": ({A: 3}, ("k",)),
    "a part, of it some in the other Region": ({A: 2, B: 2}, ("k",)),
    "nothing is left": ({}, ("k",)),
    "nothing, and the process remembers that": ({}, ("before", "k")),
    "the same call again, of a part": ({A: 3}, ("k", "k")),
    "the same call again, of a refusal": ({}, ("k", "k")),
}


@pytest.mark.parametrize("row", COSTS)
def test_a_row_of_the_list_of_units_is_what_it_costs(row: str) -> None:
    left, keys = COSTS[row]
    table, at_ms = MeteredTable(), 1_800_000_000_000
    made: dict[str, Any] = {"table": "counters", "regions": (A, B), "limits": {"s": Limit(floor=0)}}
    ledgers = {
        region: Ledger(
            Settings(region=region, **made), tables={A: table, B: table}, clock=lambda: at_ms
        )
        for region in (A, B)
    }
    for region, ledger in ledgers.items():
        ledger.add("s", 0)
        ledger.add("s", left.get(region, 0))
    before = table.cost
    for key in keys:
        before = table.cost
        or_error(
            lambda key=key: ledgers[A].add_up_to(
                "s", -5, idempotency_key=key, at=to_datetime(at_ms)
            )
        )
    cost = table.cost - before
    said = [*row.split(), f"{cost.requests}", f"{cost.read_units:g}", f"{cost.write_units}"]
    assert said in [
        line.split() for line in (ROOT / "docs/units.txt").read_text("utf-8").split("\n")
    ]
