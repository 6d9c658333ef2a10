"""Budgets of any framework: what is reserved before a call, and what counts after it."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from integrations.asked import run
from integrations.budgets import Budgets, Call
from integrations.reserving import TRIES_MAX, OverBudget, release
from ledger.errors import (
    InvalidChange,
    InvalidCounter,
    InvalidInput,
    InvalidKey,
    InvalidTime,
    LedgerError,
    LimitReached,
    OutcomeUnknown,
    OutOfReach,
    Throttled,
)
from simulator import Faults
from tests.integrations.support import (
    CAP,
    HERE,
    THERE,
    TIMEOUT,
    Awaited,
    Failing,
    Town,
    cancelled_while_it_waits,
    others_end,
    when_the_loop_ends,
)

A, B, C = "llm:key-1", "llm:team-1", "llm:model-1"


@pytest.fixture
def town() -> Town:
    return Town()


def fails_after(call: Call, *costs: int) -> None:
    with call:
        for cost in costs:
            call.settle(cost)
        1 / 0


# -- the two halves of a call ------------------------------------------------------------------------------------------


def test_an_estimate_is_held_while_a_call_goes_on_and_its_cost_counts_after_it(town: Town) -> None:
    with town.budgets().reserve([A, B], 600) as call:
        assert town.stands(A) == town.stands(B) == (0, 600)
        call.settle(250)
        assert town.stands(A) == (0, 600)
    assert town.stands(A) == town.stands(B) == (250, 0)
    assert (call.ended, dict(call.over)) == (True, {})


def test_a_budget_that_refuses_leaves_nothing_held_in_the_others(town: Town) -> None:
    budgets = town.budgets()
    with budgets.reserve([B], 900):
        with (
            pytest.raises(OverBudget, match="llm:team-1 has less than 200 left") as refused,
            budgets.reserve([A, B, C], 200),
        ):
            pytest.fail("it was let in")
        assert (refused.value.counter, refused.value.estimate) == (B, 200)
        assert [town.held(each) for each in (A, B, C)] == [0, 900, 0]
    assert isinstance(refused.value, LimitReached)
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.counter, again.estimate, str(again)) == (B, 200, str(refused.value))


def test_a_refusal_that_could_not_release_another_budget_says_so(town: Town) -> None:
    budgets = town.budgets(ledger=Failing(town.ledger(), "release", LedgerError("no"), 1))
    with budgets.reserve([B], 900), pytest.raises(OverBudget, match="Nothing of this call counts") as refused:
        budgets.reserve([A, B], 200).open()
    assert "holds its estimate until the time of the call is over: no" in refused.value.__notes__[0]
    assert town.stands(A) == (0, 200)
    town.wait(2 * TIMEOUT)
    with town.budgets().reserve([A], CAP) as call:
        call.settle(0)


def test_a_call_that_fails_gives_all_of_it_back(town: Town) -> None:
    with pytest.raises(ExceptionGroup), town.budgets().reserve([A], 600):
        raise ExceptionGroup("", [ValueError()])
    with pytest.raises(ZeroDivisionError), town.budgets().reserve([A, B], 600):
        1 / 0
    assert town.stands(A) == town.stands(B) == (0, 0)


def test_a_call_that_fails_after_it_said_a_cost_counts_that(town: Town) -> None:
    call = town.budgets().reserve([A], 600)
    with pytest.raises(ZeroDivisionError):
        fails_after(call, 70, 90)
    assert town.stands(A) == (90, 0)


def test_a_call_of_which_no_cost_is_said_counts_its_estimate(town: Town) -> None:
    with town.budgets().reserve([A], 600):
        pass
    assert town.stands(A) == (600, 0)


def test_a_cost_above_its_estimate_fills_the_budget_and_what_does_not_fit_stands_beside_it(town: Town) -> None:
    with town.budgets().reserve([A, B], 600) as call:
        with town.budgets().reserve([B], 300) as other:
            other.settle(300)
        call.settle(800)
    assert [town.spent(each) for each in (A, B, f"over:{A}", f"over:{B}")] == [800, CAP, 0, 100]
    assert dict(call.over) == {B: 100}
    call.close()  # again
    assert [town.spent(each) for each in (A, B, f"over:{A}", f"over:{B}")] == [800, CAP, 0, 100]
    with pytest.raises(OverBudget):
        town.budgets().reserve([B], 1).open()


def test_a_call_without_an_estimate_holds_nothing_and_counts_what_it_cost(town: Town) -> None:
    with town.budgets().reserve([A], 0) as call:
        assert town.held(A) == 0
        call.settle(5)
    assert town.stands(A) == (5, 0)


# -- more than one at once, more than once -----------------------------------------------------------------------------


def test_calls_at_once_never_pass_a_budget_together(town: Town) -> None:
    budgets = town.budgets()

    def call(_: int) -> int:
        try:
            with budgets.reserve([A], 100) as one:
                one.settle(100)
        except OverBudget:
            return 0
        return 100

    with ThreadPoolExecutor(20) as threads:
        spent = sum(threads.map(call, range(20)))
    assert spent == town.spent(A) == CAP


def test_a_call_that_is_asked_for_again_reserves_once_in_any_process(town: Town) -> None:
    at = town.budgets().now()
    first = town.budgets().reserve([A], 600, call="req-7", at=at).open()
    again = town.budgets().reserve([A], 600, call="req-7", at=at).open()
    assert town.stands(A) == (0, 600)
    first.settle(250)
    again.settle(250)
    first.close()
    again.close()
    assert town.stands(A) == (250, 0)


@pytest.mark.parametrize("ends", [["close", "close"], ["release", "close"], ["close", "release"]])
def test_a_call_that_ends_twice_counts_once_and_gives_back_once(town: Town, ends: list[str]) -> None:
    budgets = town.budgets()
    other = budgets.reserve([A], 100).open()
    call = budgets.reserve([A], 600).open()
    call.settle(250)
    for end in ends:
        call.close() if end == "close" else run(release(call.holds), budgets.ledger)
    assert town.stands(A) == (250, 100)
    assert budgets.reserve([A], CAP - 350).open().holds
    with pytest.raises(OverBudget):
        budgets.reserve([A], 1).open()
    other.close()


def test_a_named_call_that_was_not_decided_can_be_made_again_and_counts_once(town: Town) -> None:
    """The second budget does not answer. Nothing is released: a hold that is released ends for ever."""
    at = town.budgets().now()
    second = Failing(town.ledger(), "hold", Throttled("slower"), TRIES_MAX, counter=B)
    with pytest.raises(Throttled) as undecided:
        town.budgets(ledger=second).reserve([A, B], 600, call="req-7", at=at).open()
    assert f"{A}: 600 each stay held" in undecided.value.__notes__[0]
    with town.budgets().reserve([A, B], 600, call="req-7", at=at) as call:
        call.settle(250)
    assert town.stands(A) == town.stands(B) == (250, 0)


def test_a_repetition_that_is_not_decided_or_is_cancelled_releases_no_hold_of_another(town: Town) -> None:
    at = town.budgets().now()
    first = town.budgets().reserve([A, B], 600, call="req-7", at=at).open()
    second = Failing(town.ledger(), "hold", Throttled("slower"), TRIES_MAX, counter=B)
    with pytest.raises(Throttled):
        town.budgets(ledger=second).reserve([A, B], 600, call="req-7", at=at).open()
    assert town.stands(A) == (0, 600)

    async def main() -> None:
        ledger = Awaited(town)
        again = town.budgets(ledger=ledger).reserve([A, B], 600, call="req-7", at=at)
        await cancelled_while_it_waits(ledger, again.aopen())
        await others_end()

    asyncio.run(main())
    assert town.stands(A) == town.stands(B) == (0, 600)
    with pytest.raises(OverBudget):
        town.budgets().reserve([A], 600).open()
    first.settle(600)
    first.close()
    assert town.stands(A) == (600, 0)


def test_a_refusal_releases_the_holds_of_a_named_call_because_it_is_final_for_all_who_make_it(town: Town) -> None:
    at = town.budgets().now()
    with town.budgets().reserve([B], 900) as other:
        with pytest.raises(OverBudget):
            town.budgets().reserve([A, B], 200, call="req-7", at=at).open()
        assert town.stands(A) == (0, 0)
        other.settle(0)


def test_of_two_ends_with_other_costs_the_first_counts(town: Town) -> None:
    at = town.budgets().now()
    calls = [town.budgets().reserve([A], 600, call="req-7", at=at).open() for _ in range(2)]
    for call, cost in zip(calls, (250, 300), strict=True):
        call.settle(cost)
        call.close()
    assert town.stands(A) == (250, 0)


def test_a_process_that_begins_knows_what_others_spent_and_hold(town: Town) -> None:
    with town.budgets().reserve([A], 600) as call:
        call.settle(500)
    held = town.budgets().reserve([A], 400).open()
    with pytest.raises(OverBudget):
        town.budgets().reserve([A], 101).open()
    held.close(failed=True)
    assert town.budgets().reserve([A], 500).open().holds


def test_a_call_over_midnight_counts_on_the_day_that_it_began() -> None:
    town = Town()
    town.world.world.now_ms = int(datetime(2026, 11, 22, 23, 59, 59, tzinfo=UTC).timestamp() * 1000)
    budgets = town.budgets()

    def today() -> str:
        return f"llm:key-1:{budgets.now():%Y-%m-%d}"

    before = budgets.reserve([today()], CAP).open()
    town.wait(timedelta(seconds=2))
    with budgets.reserve([today()], CAP) as after:  # the new day has all of its own
        after.settle(700)
    before.settle(900)
    before.close()
    assert [town.stands(f"llm:key-1:2026-11-{day}") for day in (22, 23)] == [(900, 0), (700, 0)]


def test_two_regions_that_are_cut_off_from_each_other_never_pass_a_budget_together(town: Town) -> None:
    here, there = town.budgets(HERE), town.budgets(THERE)
    for budgets in (here, there):
        with budgets.reserve([A], 100) as call:
            call.settle(100)
    town.world.cut_off(THERE)
    spent = 200
    for _ in range(20):
        for budgets in (here, there):
            try:
                with budgets.reserve([A], 100) as call:
                    call.settle(100)
                    spent += 100
            except (OverBudget, OutOfReach):
                pass
    town.world.come_to_rest()
    assert town.stands(A) == (spent, 0)
    assert 200 < spent <= CAP


# -- what fails in between ---------------------------------------------------------------------------------------------


def test_what_a_dead_process_held_comes_back_when_its_time_is_over(town: Town) -> None:
    town.budgets().reserve([A], CAP).open()
    town.wait(TIMEOUT - timedelta(seconds=1))
    with pytest.raises(OverBudget):
        town.budgets().reserve([A], CAP).open()
    town.wait(timedelta(seconds=2))
    with town.budgets().reserve([A], CAP) as call:
        call.settle(10)
    assert town.stands(A) == (10, 0)


def test_a_cost_that_is_told_after_its_hold_was_over_still_counts(town: Town) -> None:
    late = town.budgets().reserve([A], 600).open()
    town.wait(TIMEOUT + timedelta(seconds=1))
    with town.budgets().reserve([A], 900) as other:  # ends the hold
        other.settle(800)
    late.settle(150)
    late.close()
    assert town.stands(A) == (950, 0)


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("name", ["hold", "capture", "release", "add"])
def test_a_write_of_which_the_answer_is_lost_is_asked_again_and_counts_once(
    town: Town, name: str, applied: bool
) -> None:
    ledger = Failing(town.ledger(), name, OutcomeUnknown("lost"), TRIES_MAX - 1, applied=applied)
    budgets = town.budgets(ledger=ledger)
    with budgets.reserve([A], 600) as call:
        call.settle(700)  # 100 are added
    with pytest.raises(ZeroDivisionError), budgets.reserve([A], 100):
        1 / 0
    assert town.stands(A) == (700, 0)


def test_a_cost_that_could_not_be_written_is_told_and_written_by_the_next_end(town: Town) -> None:
    budgets = town.budgets(ledger=Failing(town.ledger(), "capture", Throttled("slower"), TRIES_MAX))
    call = budgets.reserve([A, B], 600)
    with pytest.raises(Throttled), call:
        call.settle(250)
    assert (call.ended, town.stands(A), town.stands(B)) == (False, (0, 600), (250, 0))
    call.close()
    assert (call.ended, town.stands(A), town.stands(B)) == (True, (250, 0), (250, 0))


def test_a_failure_of_the_call_is_told_and_what_could_not_be_written_is_its_note(town: Town) -> None:
    budgets = town.budgets(ledger=Failing(town.ledger(), "capture", Throttled("slower"), TRIES_MAX))
    call = budgets.reserve([A], 600)
    with pytest.raises(ZeroDivisionError) as failed:
        fails_after(call, 250)
    assert failed.value.__notes__ == [f"{call.id}, cost=250: not settled: slower"]


def test_a_reservation_that_is_not_decided_holds_nothing_in_the_budgets_before_it(town: Town) -> None:
    budgets = town.budgets(THERE)
    with budgets.reserve([A], 1) as call:  # some rights are here now
        call.settle(0)
    town.world.cut_off(THERE)
    with pytest.raises(OutOfReach):
        budgets.reserve([A, B], 1).open()
    town.world.come_to_rest()
    assert town.stands(A) == town.stands(B) == (0, 0)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_fails_on_the_way_what_counts_is_what_was_spent(seed: int) -> None:
    town = Town(seed=seed, faults=Faults(throttled=40, dropped=40, lost=80, late=40, lag_steps=20))
    told = 0
    budgets = [town.budgets(HERE), town.budgets(THERE)]
    for n in range(30):
        call = budgets[n % 2].reserve([A], 60)
        try:
            call.open()
        except Exception:
            continue
        with suppress(OutcomeUnknown, Throttled, OutOfReach):
            call.settle(50)
        while not call.ended:
            with suppress(OutcomeUnknown, Throttled, OutOfReach):
                call.close()
        told += 50
    town.world.come_to_rest()
    assert town.spent(A) == told <= CAP
    rest: Call | None = None
    while rest is None:
        town.wait(TIMEOUT)  # what an attempt held that was not decided is free again
        with suppress(OutOfReach):
            rest = town.budgets().reserve([A], CAP - told).open()
    assert rest.holds


# -- coroutines --------------------------------------------------------------------------------------------------------

Ledgers = Callable[[Town], Any]


@pytest.fixture(params=["threads", "awaited"])
def ledgers(request: pytest.FixtureRequest) -> Ledgers:
    return (lambda town: town.ledger()) if request.param == "threads" else (lambda town: Awaited(town))


def test_a_coroutine_reserves_and_settles_with_a_ledger_of_either_kind(town: Town, ledgers: Ledgers) -> None:
    async def main() -> None:
        budgets = town.budgets(ledger=ledgers(town))
        async with budgets.reserve([A, B], 600) as call:
            assert town.stands(A) == (0, 600)
            with pytest.raises(OverBudget):
                await budgets.reserve([C, B], 500).aopen()
            call.settle(250)
        with pytest.raises(ZeroDivisionError):
            async with budgets.reserve([C], 600):
                1 / 0

    asyncio.run(main())
    assert [town.stands(each) for each in (A, B, C)] == [(250, 0), (250, 0), (0, 0)]


def test_a_task_that_is_cancelled_counts_what_it_said_or_its_estimate(town: Town, ledgers: Ledgers) -> None:
    async def calls(budgets: Budgets, counter: str, cost: int | None, began: asyncio.Event) -> None:
        async with budgets.reserve([counter], 400) as call:
            if cost is not None:
                call.settle(cost)
            began.set()
            await asyncio.Event().wait()

    async def main() -> None:
        budgets = town.budgets(ledger=ledgers(town))
        for counter, cost in ((A, 70), (B, None)):
            began = asyncio.Event()
            task = asyncio.ensure_future(calls(budgets, counter, cost, began))
            await began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert (town.stands(A), town.stands(B)) == ((70, 0), (400, 0))


OF_BEDROCK = ReadTimeoutError(endpoint_url="https://bedrock-runtime.eu-west-1.amazonaws.com")
OF_A_TASK_GROUP = ExceptionGroup("", [ValueError(), ExceptionGroup("", [TimeoutError()])])
LEFT = (TimeoutError, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, OF_BEDROCK, OF_A_TASK_GROUP)


@pytest.mark.parametrize("left", LEFT)
def test_a_call_that_nobody_waits_for_any_more_counts_its_estimate(town: Town, left: Any) -> None:
    def call(counter: str, *costs: int) -> None:
        with town.budgets().reserve([counter], 400) as reserved:
            for cost in costs:
                reserved.settle(cost)
            raise left

    kind = left if isinstance(left, type) else type(left)
    with pytest.raises(kind):
        call(A)
    with pytest.raises(kind):
        call(B, 0)
    assert (town.stands(A), town.stands(B)) == ((400, 0), (0, 0))


def test_a_task_that_is_cancelled_while_a_budget_is_asked_leaves_nothing_held(town: Town) -> None:
    async def main() -> None:
        ledger = Awaited(town)
        ledger.waits.clear()
        opening = asyncio.ensure_future(town.budgets(ledger=ledger).reserve([A, B], 600).aopen())
        for _ in range(3):
            await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        ledger.waits.set()
        await others_end()

    asyncio.run(main())
    assert town.stands(A) == town.stands(B) == (0, 0)


def test_a_task_that_is_cancelled_while_it_settles_settles(town: Town) -> None:
    async def main() -> None:
        ledger = Awaited(town)
        call = await town.budgets(ledger=ledger).reserve([A], 600).aopen()
        call.settle(250)
        await cancelled_while_it_waits(ledger, call.aclose())
        assert call.ended  # now, because whoever is cancelled closes its ledger, or ends its loop

    asyncio.run(main())
    assert town.stands(A) == (250, 0)


def test_a_cancelled_task_says_why_it_did_not_settle_and_does_not_wait_when_it_is_cancelled_again(town: Town) -> None:
    class Refuses(Awaited):
        async def capture(self, *_: Any) -> Any:
            await self.waits.wait()
            raise LedgerError("no")

    async def main() -> None:
        ledger = Refuses(town)
        call = await town.budgets(ledger=ledger).reserve([A], 600).aopen()
        ledger.waits.clear()
        first, second = (asyncio.ensure_future(call.aclose()) for _ in range(2))
        for each in (first, second, second):
            await asyncio.sleep(0)
            each.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        ledger.waits.set()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await first
        assert isinstance(cancelled.value.__cause__, LedgerError)
        assert not call.ended

    asyncio.run(main())


@pytest.mark.parametrize("awaits", [False, True])
def test_what_a_loop_that_ends_cuts_off_is_settled_all_the_same(town: Town, awaits: bool) -> None:
    """asyncio.run cancels every task that is left: the one that settles, and what it waits for."""
    goes_on = threading.Event()

    class Slow:
        """A ledger whose first capture is begun, and not over, when the loop ends."""

        settings = town.settings()

        def __init__(self, begun: Callable[[], object]) -> None:
            self._inner, self._begun = town.ledger(), begun

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def capture(self, *given: Any) -> Any:
            self._begun()
            goes_on.wait()
            return self._inner.capture(*given)

    async def main() -> None:
        loop, awaited = asyncio.get_running_loop(), Awaited(town)
        begun = awaited.waiting
        ledger: Any = awaited if awaits else Slow(lambda: loop.call_soon_threadsafe(begun.set))

        async def call() -> None:
            async with town.budgets(ledger=ledger).reserve([A, B], 600) as call:
                call.settle(250)
                awaited.waits.clear()

        def go_on() -> None:
            awaited.waits.set()
            goes_on.set()

        _ = loop.create_task(call()), loop.create_task(when_the_loop_ends(go_on))
        await begun.wait()

    asyncio.run(main())
    assert (town.stands(A), town.stands(B)) == ((250, 0), (250, 0))


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [-1, 0.5, "7", None, True, 10**18 + 1])
def test_what_is_no_cost_is_refused_and_an_answer_that_came_with_it_counts_its_estimate(town: Town, cost: Any) -> None:
    with pytest.raises(InvalidChange):
        town.budgets().reserve([A], cost)
    with pytest.raises(InvalidChange), town.budgets().reserve([A], 600) as call:
        call.settle(cost)
    assert town.stands(A) == (600, 0)
    for counter, estimate, said in ((B, 100, 700), (C, 700, 0)):
        with town.budgets().reserve([counter], estimate) as call:
            call.settle(said)
            with pytest.raises(InvalidChange):
                call.settle(cost)
        assert town.stands(counter) == (700, 0)


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"counters": ["llm: key"]}, InvalidCounter, "without spaces"),
        ({"counters": ["llm:" + "k" * 252]}, InvalidCounter, "1 to 256"),
        ({"counters": None}, InvalidInput, r"the names of counters, \[\] for none, not None"),
        ({"counters": [["llm:key"]]}, InvalidCounter, "not"),
        ({"call": "req-7"}, InvalidKey, "call and at go together"),
        ({"call": "x" * 1_020, "at": datetime(2026, 1, 1, tzinfo=UTC)}, InvalidKey, "1,025"),
        ({"at": datetime(2026, 1, 1, tzinfo=UTC)}, InvalidKey, "call and at go together"),
        ({"call": "req-7", "at": datetime(2026, 1, 1)}, InvalidTime, "no time zone"),
    ],
)
def test_bad_input_is_told_before_anything_is_held(
    town: Town, given: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        town.budgets().reserve(**{"counters": [A], "estimate": 1, **given})


def test_a_counter_without_a_limit_is_no_budget(town: Town) -> None:
    with pytest.raises(InvalidInput, match="has no limit"):
        town.budgets().reserve(["key-1"], 1).open()


def test_what_counts_the_rest_of_a_cost_may_have_no_limit(town: Town) -> None:
    """It would refuse the rest of a cost when the call is over, and then that is counted nowhere."""
    with pytest.raises(InvalidInput, match="give another over="):
        Budgets(town.ledger(), over="llm:over:", clock=town.world.clock).reserve([A], 1)


def test_a_counter_that_is_named_twice_is_held_once_and_one_name_is_no_list_of_letters(town: Town) -> None:
    for counters in ([A, A], A):
        with town.budgets().reserve(counters, 100) as call:
            assert (call.counters, town.held(A)) == ((A,), 100)
            call.settle(0)


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(seconds=-1), 60])
def test_a_time_out_is_a_timedelta_above_0(town: Town, timeout: Any) -> None:
    with pytest.raises(InvalidInput, match="timeout is a timedelta above 0"):
        town.budgets(timeout=timeout)


def test_what_is_no_ledger_and_an_async_ledger_in_a_blocking_call_are_told(town: Town) -> None:
    with pytest.raises(InvalidInput, match="kept by a Ledger"):
        Budgets("counters")
    with pytest.raises(InvalidInput, match="cannot be asked by a function that blocks"):
        town.budgets(ledger=Awaited(town)).reserve([A], 1).open()
