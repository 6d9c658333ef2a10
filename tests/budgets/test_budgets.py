"""Budgets of any framework: what is reserved before a call, and what counts after it, in coroutines
too.

A coroutine asks a Ledger in threads, or an AsyncLedger; each way spends what `with` does, and
survives cancellation.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
from collections.abc import Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lab.histories.parts.budgets import REGIONS, TIMEOUT, FailingLedger, TwoRegions
from lab.measure.metered_table import MeteredTable
from ledger import Keep, Ledger, Limit, Settings
from ledger.budgets import Budgets, Call, NotCounted, OverBudget, SettledOtherwise, ask, reserving
from ledger.budgets.reserving import release
from ledger.client.aio import AsyncLedger
from ledger.core import errors
from ledger.core.again import TRIES_MAX
from ledger.core.checks import to_datetime, to_ms
from ledger.core.errors import (
    InvalidCounter,
    InvalidInput,
    InvalidKey,
    LedgerError,
    OutcomeUnknown,
    Throttled,
)
from ledger.tables.memory import MemoryTable
from reader import Reader
from tests.strategies import OPERATORS
from tests.world import writes_of

CAP = 1_000
A, B, C = "llm:key-1", "llm:team-1", "llm:model-1"


@pytest.fixture
def world() -> TwoRegions:
    return TwoRegions(CAP)


def named(
    world: TwoRegions, counters: list[str], estimate: int, at: datetime, ledger: Any = None
) -> Call:
    """A call under the name that every caller of it gives."""
    return world.budgets(ledger=ledger).reserve(counters, estimate, call="req-7", at=at)


def failing(
    world: TwoRegions, counter: str, error: LedgerError, times: int, *, after: int = 0
) -> Ledger:
    """A ledger whose table fails the writes of a counter's gate, so many times after so many."""
    table, writes = world.simulation.table(REGIONS[0]), count(1)

    class Failing:
        def answer(self, request: Any) -> Any:
            if writes_of(counter)(request) and after < next(writes) <= after + times:
                raise error
            return table.answer(request)

    return Ledger(world.settings(), table=Failing(), clock=world.clock)


def spend(call: Call, *costs: int, end: BaseException | None = None, awaits: bool = False) -> None:
    def said() -> None:
        for cost in costs:
            call.settle(cost)
        if end:
            raise end

    async def as_coroutine() -> None:
        async with call:
            said()

    if awaits:
        asyncio.run(as_coroutine())
    else:
        with call:
            said()


class AwaitedLedger(AsyncLedger):
    """An AsyncLedger, of the loop that asks first.

    While `goes_on` is cleared no answer comes; `waiting` says so.
    """

    def __init__(self, world: TwoRegions) -> None:
        super().__init__(
            world.settings(), table=world.simulation.table(REGIONS[0]), clock=world.clock
        )
        self.goes_on, self.waiting = asyncio.Event(), asyncio.Event()
        self.goes_on.set()

    async def _run(self, *args: Any) -> Any:
        self._loop = self._loop or asyncio.get_running_loop()
        return await super()._run(*args)

    async def _answer(self, request: Any) -> Any:
        if not self.goes_on.is_set():
            self.waiting.set()
        await self.goes_on.wait()
        return await super()._answer(request)


def test_an_estimate_is_held_and_its_cost_counts(
    world: TwoRegions,
) -> None:
    with world.budgets().reserve([A, B], 600) as call:
        assert world.stands(A) == world.stands(B) == (0, 600)
        call.settle(250)
        assert world.stands(A) == (0, 600)
    assert world.stands(A) == world.stands(B) == (250, 0)
    assert (call.ended, dict(call.over)) == (True, {})
    spend(world.budgets().reserve([C], 0), 5)
    assert world.stands(C) == (5, 0)


def test_a_budget_that_refuses_leaves_nothing_held_in_the_others(world: TwoRegions) -> None:
    """Nor does one of a call with a name: the refusal is final for all who make it."""
    budgets = world.budgets()
    with budgets.reserve([B], 900):
        alone, awaited = (budgets.reserve([A, B, C], 200) for _ in range(2))
        shared = named(world, [A, B, C], 200, budgets.now())
        for begin in (shared.open, alone.open, lambda: asyncio.run(awaited.aopen())):
            with pytest.raises(
                OverBudget, match="llm:team-1 has 100 left, and this call may cost 200"
            ) as refused:
                begin()
            assert [world.held(counter) for counter in (A, B, C)] == [0, 900, 0]
    refused.value.add_note("A release failed.")
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.counter, again.estimate, str(again)) == (B, 200, str(refused.value))
    assert again.__notes__ == refused.value.__notes__


def test_a_refusal_that_could_not_release_another_budget_says_so(world: TwoRegions) -> None:
    spend(world.budgets().reserve([A], 1), 0)
    budgets = world.budgets(ledger=failing(world, A, LedgerError("no"), 1, after=1))
    with (
        budgets.reserve([B], 900),
        pytest.raises(OverBudget, match="Nothing of this call counts") as refused,
    ):
        budgets.reserve([A, B], 200).open()
    assert refused.value.__notes__ == [
        f"{A}: 200 is held until the time of the call is over, because its release failed: no"
    ]
    assert world.stands(A) == (0, 200)
    world.wait(2 * TIMEOUT)
    world.budgets().reserve([A], CAP).open()


def test_a_call_counts_the_last_cost_said() -> None:
    """Who left without an answer may pay for it, too: a time-out, a cancelled task, a generator
    that is closed.
    """
    time_out = type("ReadTimeoutError", (Exception,), {})()
    outcomes: list[tuple[BaseException | None, tuple[int, ...], int]] = [
        (None, (), 600),
        (None, (700, 250), 250),
        (ZeroDivisionError(), (), 0),
        (ZeroDivisionError(), (70, 90), 90),
        (ExceptionGroup("", [ValueError()]), (), 0),
        (time_out, (), 600),
        (time_out, (0,), 0),
        (ExceptionGroup("", [ValueError(), ExceptionGroup("", [TimeoutError()])]), (), 600),
        (KeyboardInterrupt(), (), 600),
        (asyncio.CancelledError(), (), 600),
        (GeneratorExit(), (7, 14), 14),
    ]
    for end, costs, counts in outcomes:
        for way in (None, Ledger, AsyncLedger):
            world = TwoRegions(CAP)
            call = world.budgets(
                ledger=AwaitedLedger(world) if way is AsyncLedger else None
            ).reserve([A, B], 600)
            with suppress(*(type(end),) if end else ()):
                spend(call, *costs, end=end, awaits=way is not None)
            assert world.stands(A) == world.stands(B) == (counts, 0), (end, costs, way)


def test_a_cost_above_its_estimate_fills_the_budget(
    world: TwoRegions,
) -> None:
    with world.budgets().reserve([A, B], 600) as call:
        spend(world.budgets().reserve([B], 300), 300)
        call.settle(800)
    for _ in range(2):
        assert [world.spent(name) for name in (A, B, f"over:{A}", f"over:{B}")] == [
            800,
            CAP,
            0,
            100,
        ]
        assert dict(call.over) == {B: 100}
        call.close()  # again
    with pytest.raises(OverBudget):
        world.budgets().reserve([B], 1).open()
    with pytest.raises(InvalidInput, match="has ended"):
        call.settle(900)


def test_a_call_asked_for_again_reserves_once(
    world: TwoRegions,
) -> None:
    at = world.budgets().now()
    first, again = (named(world, [A], 600, at).open() for _ in range(2))
    assert world.stands(A) == (0, 600)
    first.settle(250)
    first.close()
    again.settle(300)
    with pytest.raises(
        SettledOtherwise, match=r"another cost than 300\. 250 of the first cost counts"
    ) as settled:
        again.close()
    assert (settled.value.counter, settled.value.actual, settled.value.is_least, again.ended) == (
        A,
        250,
        False,
        True,
    )
    for call in (first, again):
        ask.run(release(call.holds), world.ledger())  # which have ended
    assert world.stands(A) == (250, 0)


def settled(world: TwoRegions, call: Call, cost: int) -> None:
    """As whoever has the call's name and holds settles it, in any process."""
    name = reserving.CallName(call.id, call.at, shared=True, counters=call.counters)
    ask.run(reserving.settle(call.counters, call.holds, cost, name, "over:"), world.ledger())


@pytest.mark.parametrize(
    ("first", "second", "counts", "is_least"),
    [
        (5, 12, 5, False),  # a part of the hold, then more than it
        (0, 5, 0, False),
        (12, 5, 10, True),
        (12, 10, 12, False),
        (12, 13, 12, False),
        (12, 11, 12, False),
        (10, 4, 10, True),
        (60, 10, 10, True),  # the budget refused some of it
        (60, 9, 10, True),
        (60, 61, 10, True),
    ],
)
def test_a_second_settlement_counts_nothing(
    first: int, second: int, counts: int, is_least: bool
) -> None:
    world = TwoRegions(40)
    call = named(world, [A], 10, world.budgets().now()).open()
    settled(world, call, first)
    before = [world.spent(name) for name in (A, f"over:{A}")]
    assert sum(before) == first
    for _ in range(2):
        with pytest.raises(SettledOtherwise) as error:
            settled(world, call, second)
        assert (error.value.actual, error.value.is_least, error.value.state) == (
            counts,
            is_least,
            "captured",
        )
        for kind in (errors.HoldEnded, errors.TokenConflict):
            assert isinstance(error.value, kind)
    settled(world, call, first)
    assert [world.spent(name) for name in (A, f"over:{A}")] == before


@pytest.mark.parametrize("tries", [1, TRIES_MAX])
def test_a_first_cost_hides_no_budget_still_to_settle(world: TwoRegions, tries: int) -> None:
    """The process that settled first died between two budgets; the next one gives another cost,
    and gets no answer.
    """
    at = world.budgets().now()
    first, again = (named(world, [A, B], 100, at).open() for _ in range(2))
    world.ledger().capture(first.holds[0], 50)
    again.settle(60)
    again._budgets.ledger = failing(world, B, Throttled("slow"), times=tries)
    with pytest.raises(Throttled):
        asyncio.run(again.aclose(tries=tries))
    assert (world.stands(A), world.stands(B), again.ended) == ((50, 0), (0, 100), False)
    with pytest.raises(SettledOtherwise, match="50 of the first cost counts"):
        asyncio.run(again.aclose(tries=tries))
    assert (world.stands(A), world.stands(B), again.ended) == ((50, 0), (60, 0), True)


def test_a_call_is_one_whatever_its_processs_timeout(world: TwoRegions) -> None:
    """A rolling deployment: another process has another timeout, and the message comes again."""
    at = world.budgets().now()
    first = named(world, [A, B], 100, at).open()
    longer = world.budgets(timeout=2 * TIMEOUT)
    again = longer.reserve([B, A], 100, call="req-7", at=at).open()
    assert ({*again.holds}, world.held(A), world.held(B)) == ({*first.holds}, 100, 100)
    first.settle(70)
    first.close()
    for budgets in (longer, world.budgets(timeout=TIMEOUT / 2), world.budgets()):
        with pytest.raises(errors.HoldEnded):
            budgets.reserve([A, B], 100, call="req-7", at=at).open()
    assert world.stands(A) == world.stands(B) == (70, 0)


def test_no_key_of_a_caller_is_the_name_of_a_step_of_a_call(world: TwoRegions) -> None:
    ledger, at = world.ledger(), world.budgets().now()
    with named(world, [A], 10, at) as call:
        ledger.hold_all([A], 10, expires=TIMEOUT, idempotency_key="req-7", at=at)
        assert world.held(A) == 20
        texts = (
            "req-7/rest",
            "req-7/0",
            *map(str, (call._name.rest, call._name.part(0), call._name.holds)),
        )
        for text in texts:
            ledger.add(A, 1, idempotency_key=text, at=at)
        call.settle(14)
    assert world.spent(A) == len(texts) + 14
    # another list is another call
    with world.budgets().reserve([A, B], 10, call="req-7", at=at) as other:
        other.settle(15)
    assert (world.spent(A), world.spent(B)) == (len(texts) + 29, 15)


def test_the_names_of_a_calls_steps_are_the_same_for_ever(world: TwoRegions) -> None:
    name = named(world, [B, A], 1, world.budgets().now())._name
    assert (name.holds, name.rest, name.part(3)) == (
        "12:budget/holds5:req-7",
        "11:budget/rest5:req-79:llm:key-110:llm:team-1",
        "11:budget/part1:35:req-79:llm:key-110:llm:team-1",
    )


def test_a_settlement_after_its_period_says_what_counts_nowhere() -> None:
    now_ms, days, kept = (
        [to_ms(datetime(2026, 11, 30, tzinfo=UTC))],
        86_400_000,
        timedelta(days=400),
    )
    keep = Keep(late=timedelta(days=15), keep=kept)
    limits, name = {"llm:": Limit(ceiling=CAP, region=REGIONS[0])}, f"{A}@2026-11"
    settings = Settings(
        table="counters", limits=limits, periods={"llm:": keep, "over:": keep}, region=REGIONS[0]
    )
    table = MemoryTable()
    ledger = Ledger(settings, table=table, clock=lambda: now_ms[0])
    budgets = Budgets(ledger, timeout=timedelta(days=20), clock=lambda: now_ms[0])
    call = budgets.reserve([name, C + "@2026-11"], 100).open()
    call.settle(160)
    now_ms[0] += 17 * days
    for _ in range(2):
        with pytest.raises(
            NotCounted, match="Of the cost of 160, 100 counts in it; the rest, 60, is in no counter"
        ) as late:
            call.close()
        over = {name: 60, C + "@2026-11": 60}
        assert (late.value.counter, late.value.over, dict(call.over), call.ended) == (
            name,
            over,
            over,
            False,
        )
        assert isinstance(late.value, errors.PeriodOver)
    reader = Reader(settings, table=table, clock=lambda: now_ms[0])
    assert [reader.value(each) for each in (name, f"over:{name}")] == [100, 0]


def test_a_refusal_says_what_is_left_needed_and_how_long_to_wait() -> None:
    said = OverBudget(A, 4_000, available=2_000, resets_at=datetime(2026, 12, 1, tzinfo=UTC))
    assert str(said) == (
        f"The budget {A} has 2,000 left, and this call may cost 4,000. Nothing of this call "
        "counts. Send a cheaper call, or wait until 2026-12-01."
    )
    said = OverBudget(A, 4_000, resets_at=datetime(2026, 12, 1, 8, tzinfo=UTC))
    assert str(said).startswith(f"The budget {A} has less than 4,000 left, and")
    assert str(said).endswith("Send a cheaper call, or wait until 2026-12-01 08:00 UTC.")
    again = str(OverBudget(A, 4_000, available=5_000, replayed=True))
    assert again.startswith(
        f"The budget {A} refused this call before. It has 5,000 left now, and this call may cost "
        "4,000"
    )
    assert again.endswith("Take a new name.")
    then = datetime(2026, 12, 1, tzinfo=UTC)
    room = OverBudget(A, 4_000, available=5_000, resets_at=then, replayed=True)
    assert str(room).endswith("Nothing of this call counts. Take a new name.")
    short = OverBudget(A, 4_000, available=2_000, resets_at=then, replayed=True)
    assert str(short).endswith("Send a cheaper call, under a new name, or wait until 2026-12-01.")
    unread = str(OverBudget(A, 4_000, replayed=True))  # nobody knows what is left now
    assert (
        unread
        == f"The budget {A} refused this call before. Nothing of this call counts. Take a new name."
    )
    said.add_note("a note")
    for same in (pickle.loads(pickle.dumps(said)), copy.copy(said)):
        assert (str(same), same.__notes__, same.counter, same.estimate) == (
            str(said),
            ["a note"],
            A,
            4_000,
        )


def test_a_value_is_read_past_its_classs_operators(
    world: TwoRegions,
) -> None:
    now = world.budgets().now()
    at = OPERATORS[datetime](*now.timetuple()[:6], now.microsecond, now.tzinfo)
    budgets = Budgets(
        world.ledger(),
        timeout=OPERATORS[timedelta](TIMEOUT.days, TIMEOUT.seconds),
        clock=world.clock,
    )
    call = budgets.reserve(
        [OPERATORS[str](A)], OPERATORS[int](600), call=OPERATORS[str]("req-7"), at=at
    ).open()
    named(world, [A], 600, now).open()  # the same call by plain values
    assert world.stands(A) == (0, 600)
    call.settle(OPERATORS[int](250))
    call.close()
    assert world.stands(A) == (250, 0)


def test_an_undecided_call_holds_nothing_and_can_be_made_again(
    world: TwoRegions,
) -> None:
    """The second budget does not answer.

    Nothing named is released: a hold that is released ends for ever.
    """
    at = world.budgets().now()
    second = failing(world, B, Throttled("slower"), 2 * TRIES_MAX)
    with pytest.raises(Throttled):
        world.budgets(ledger=second).reserve([A, B], 600).open()
    assert world.stands(A) == (0, 0)
    with pytest.raises(Throttled) as undecided:
        named(world, [A, B], 600, at, second).open()
    assert f"{A}: 600 each stay held" in undecided.value.__notes__[0]
    spend(named(world, [A, B], 600, at), 250)
    assert world.stands(A) == world.stands(B) == (250, 0)


def test_a_dead_processs_hold_comes_back_when_its_time_is_over(
    world: TwoRegions,
) -> None:
    dead = world.budgets().reserve([A], CAP).open()
    world.wait(TIMEOUT - timedelta(seconds=1))
    with pytest.raises(OverBudget):
        world.budgets().reserve([A], CAP).open()
    world.wait(timedelta(seconds=2))
    spend(world.budgets().reserve([A], CAP), 10)
    assert world.stands(A) == (10, 0)
    spend(world.budgets().reserve([A], CAP - 10), 800)
    dead.settle(150)
    dead.close()
    assert world.stands(A) == (960, 0)


def test_a_lost_answer_is_asked_for_again_and_counts_once() -> None:
    for name in ("capture", "release", "add"):
        for applied in (False, True):
            world = TwoRegions(CAP)
            lost = OutcomeUnknown("lost")
            budgets = world.budgets(
                ledger=FailingLedger(world.ledger(), name, lost, TRIES_MAX - 1, applied=applied)
            )
            spend(budgets.reserve([A], 600), 700)  # 100 are added
            with pytest.raises(ZeroDivisionError), budgets.reserve([A], 100):
                1 / 0
            assert world.stands(A) == (700, 0), (name, applied)


def test_an_unwritten_cost_is_raised_or_noted_for_the_next_end() -> None:
    for end in (None, ValueError()):
        world = TwoRegions(CAP)
        budgets = world.budgets(
            ledger=FailingLedger(world.ledger(), "capture", Throttled("slower"), TRIES_MAX)
        )
        call = budgets.reserve([A, B], 600)
        with pytest.raises(type(end) if end else Throttled) as failed:
            spend(call, 250, end=end)
        assert end is None or failed.value.__notes__ == [
            f"The cost of the call {call.id}, 250, is not settled: slower"
        ]
        assert (call.ended, world.stands(A), world.stands(B)) == (False, (0, 600), (250, 0))
        call.close()
        assert (call.ended, world.stands(A), world.stands(B)) == (True, (250, 0), (250, 0))


def test_a_bad_cost_is_refused_and_the_estimate_counts() -> None:
    for wrong in (-1, 0.5, "7", None, True, 10**18 + 1):
        cost: Any = wrong
        world = TwoRegions(CAP)
        with pytest.raises(errors.InvalidChange):
            world.budgets().reserve([A], cost)
        for counter, estimate, said in ((A, 600, None), (B, 100, 700), (C, 700, 0)):
            with world.budgets().reserve([counter], estimate) as call:
                if said is not None:
                    call.settle(said)
                with pytest.raises(errors.InvalidChange):
                    call.settle(cost)
            assert world.stands(counter) == (max(estimate, said or 0), 0)


def test_bad_input_is_refused_before_anything_is_held(world: TwoRegions) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"counters": ["llm: key"]}, InvalidCounter, "without spaces"),
        ({"counters": ["llm:" + "k" * 252]}, InvalidCounter, "1 to 256"),
        ({"counters": None}, InvalidInput, r"the names of counters, \[\] for none, not None"),
        ({"counters": [["llm:key"]]}, InvalidCounter, "not"),
        ({"counters": ["key-1"]}, InvalidInput, "has no limit"),
        ({"call": "req-7"}, InvalidKey, "call or at came alone"),
        ({"at": at}, InvalidKey, "call or at came alone"),
        ({"call": "x" * 1_020, "at": at}, InvalidKey, "1,025"),
        ({"call": "req-7", "at": at.replace(tzinfo=None)}, errors.InvalidTime, "no time zone"),
    ]
    for given, error, message in wrong:
        with pytest.raises(error, match=message):
            world.budgets().reserve(**{"counters": [A], "estimate": 1, **given}).open()


def test_a_call_is_opened_once_and_unopened_counts_nothing(world: TwoRegions) -> None:
    call = world.budgets().reserve([A], 10)
    with call:
        call.settle(5)
        with pytest.raises(InvalidInput, match="opened before"):
            call.open()
    for again in (call.open, lambda: asyncio.run(call.aopen())):
        with pytest.raises(InvalidInput, match="opened before"):
            again()
    refused = world.budgets().reserve([A], 10**9)
    with pytest.raises(OverBudget):
        refused.open()
    refused.close()
    assert world.stands(A) == (5, 0)


def test_a_budget_that_could_not_hold_is_refused_when_made(world: TwoRegions) -> None:
    for timeout in (timedelta(0), timedelta(seconds=-1), 60):
        with pytest.raises(InvalidInput, match="timeout is a timedelta above 0"):
            Budgets(world.ledger(), timeout=timeout)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="kept by a Ledger"):
        Budgets("counters")
    # it would refuse the rest of a cost
    with pytest.raises(InvalidInput, match="Give another over="):
        Budgets(world.ledger(), over="llm:over:").reserve([A], 1)
    now = Budgets(Ledger(world.settings(), table=MemoryTable())).now()
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=5)


def test_a_counter_named_twice_is_held_once(
    world: TwoRegions,
) -> None:
    for counters in ([A, A], A):
        with world.budgets().reserve(counters, 100) as call:
            assert (call.counters, world.held(A)) == ((A,), 100)
            call.settle(0)


def test_a_cost_that_does_not_fit_costs_what_the_recipe_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a budget that is full; every part of the rest is refused by what the first refusal
    showed.
    """
    monkeypatch.setattr("time.monotonic_ns", lambda: 0)  # a slow machine forgets nothing
    now_ms, table = 1_793_000_000_000, MeteredTable()
    limits = {"llm:": Limit(ceiling=10**6, region=REGIONS[0])}
    of = Settings(table="counters", region=REGIONS[0], limits=limits)
    ledger = Ledger(of, table=table, clock=lambda: now_ms)
    ledger.add(A, 10**6 - 32, idempotency_key="full", at=to_datetime(now_ms))
    with Budgets(ledger).reserve([A], 32, call="req-7", at=to_datetime(now_ms)) as call:
        held = table.cost
        call.settle(58_032)
    charge = table.cost - held
    page = Path("docs/recipes/llm-budgets.md").read_text(encoding="utf-8")
    said = re.search(r"(\d+)\s+write\s+units\s+for\s+a\s+rest\s+of\s+58,000", page)
    assert said
    assert (charge.write_units, dict(call.over)) == (int(said[1]), {A: 58_000})
    assert charge.requests < charge.write_units + 5


# -- cancelled


async def cancelled_while_it_waits(ledger: AwaitedLedger, call: Coroutine[Any, Any, Any]) -> None:
    """A task is cancelled while it waits for an answer, which comes then."""
    before = asyncio.all_tasks()
    ledger.goes_on.clear()
    ledger.waiting.clear()
    task = asyncio.ensure_future(call)
    await ledger.waiting.wait()
    task.cancel()
    await asyncio.sleep(0)
    ledger.goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    while asyncio.all_tasks() - before:  # what goes on ends
        await asyncio.sleep(0)


@pytest.mark.anyio
async def test_a_cancelled_task_holds_nothing_and_settles_if_it_began(
    world: TwoRegions,
) -> None:
    """A repetition that is cancelled releases no hold of another."""
    ledger = AwaitedLedger(world)
    budgets, at = world.budgets(ledger=ledger), world.budgets().now()
    await cancelled_while_it_waits(ledger, budgets.reserve([A, B], 600).aopen())
    assert world.stands(A) == world.stands(B) == (0, 0)
    first = await named(world, [A, B], 600, at, ledger).aopen()
    await cancelled_while_it_waits(ledger, named(world, [A, B], 600, at, ledger).aopen())
    assert world.stands(A) == world.stands(B) == (0, 600)
    first.settle(250)
    await cancelled_while_it_waits(ledger, first.aclose())
    assert (first.ended, world.stands(A), world.stands(B)) == (True, (250, 0), (250, 0))


def test_a_cancelled_task_says_why_it_did_not_settle(
    world: TwoRegions,
) -> None:
    class RefusingLedger(AwaitedLedger):
        async def capture(self, *_: Any) -> Any:
            await self.goes_on.wait()
            raise LedgerError("no")

    async def main() -> None:
        ledger = RefusingLedger(world)
        call = await world.budgets(ledger=ledger).reserve([A], 600).aopen()
        ledger.goes_on.clear()
        first, second = (asyncio.ensure_future(call.aclose()) for _ in range(2))
        for task in (first, second, second):
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        ledger.goes_on.set()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await first
        assert isinstance(cancelled.value.__cause__, LedgerError)
        assert not call.ended

    asyncio.run(main())


def test_what_a_loop_that_ends_cuts_off_is_settled_all_the_same(world: TwoRegions) -> None:
    """asyncio.run cancels every task that is left: the one that settles, and what it waits for."""
    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        ledger = AwaitedLedger(world)

        async def call() -> None:
            async with world.budgets(ledger=ledger).reserve([A, B], 600) as call:
                call.settle(250)
                ledger.goes_on.clear()

        async def answers_at_the_end() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ledger.goes_on.set()

        tasks.extend(asyncio.ensure_future(work()) for work in (call, answers_at_the_end))
        await ledger.waiting.wait()

    asyncio.run(main())
    assert (world.stands(A), world.stands(B)) == ((250, 0), (250, 0))


def test_an_awaited_ledger_is_refused_by_a_call_that_blocks(world: TwoRegions) -> None:
    with pytest.raises(InvalidInput, match="A call that blocks got an AsyncLedger"):
        world.budgets(ledger=AwaitedLedger(world)).reserve([A], 1).open()
