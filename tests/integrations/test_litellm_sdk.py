"""Budgets on LiteLLM's hooks without its proxy: `acompletion` and a Router, with the real package."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import logging
from collections.abc import Coroutine, Iterator
from contextlib import aclosing, contextmanager
from types import FunctionType
from typing import Any, cast

import litellm
import pytest
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

from integrations.litellm import LedgerBudgets
from integrations.litellm_calls import OpenCall, OpenCalls
from integrations.litellm_errors import RepeatsUnasked
from integrations.litellm_prices import Asked, micro_dollars
from integrations.litellm_requests import mark_of
from integrations.reserving import TRIES_MAX
from ledger.errors import InvalidInput, Throttled
from tests.docs.pages import RECIPES, blocks
from tests.integrations.litellm_support import HELLO, INPUT, MODEL, Provider, all_ended, dearer, hooks, installed
from tests.integrations.support import (
    CAP,
    TIMEOUT,
    Awaited,
    Failing,
    Town,
    cancelled_while_it_waits,
    others_end,
    when_the_loop_ends,
)

ANN = "llm:ann"
ASKED: dict[str, Any] = {"model": MODEL, "messages": HELLO, "user": "ann", "max_tokens": 100}
ESTIMATE = INPUT + 2 * 100


@pytest.fixture
def town() -> Town:
    return Town()


def stands_after(town: Town, budgets: LedgerBudgets, *calls: Any, provider: Provider | None = None) -> tuple[int, int]:
    """What is spent of Ann's budget, and held, after some calls: functions that answer coroutines."""

    async def main() -> None:
        for call in calls:
            await call()
        await all_ended(budgets)

    with installed(provider or Provider(), budgets):
        asyncio.run(main())
    return town.stands(ANN)


@contextmanager
def taken(town: Town, counter: str, amount: int) -> Iterator[None]:
    """Somebody else holds so much meanwhile."""
    with town.budgets().reserve([counter], amount) as call:
        yield
        call.settle(0)


async def acompletion(**given: Any) -> Any:
    return await litellm.acompletion(**(ASKED | given))


@pytest.mark.parametrize("kind", ["threads", "awaited"])
def test_an_estimate_is_held_while_a_call_goes_on_and_its_real_cost_counts(town: Town, kind: str) -> None:
    provider, held = Provider(), []

    async def call() -> None:
        provider.go_on.clear()
        going = asyncio.ensure_future(acompletion())
        await provider.called(going)
        held.append(town.held(ANN))
        provider.go_on.set()
        await going
        held.append(town.held(ANN))  # settled before the caller has its answer

    budgets = hooks(town, ledger=Awaited(town) if kind == "awaited" else town.ledger())
    assert stands_after(town, budgets, call, provider=provider) == (11, 0)
    assert held == [ESTIMATE, 0]


def test_a_call_whose_arguments_are_given_by_place_is_known(town: Town) -> None:
    async def call() -> None:
        await litellm.acompletion("gpt-4o", HELLO, user="ann", max_tokens=1, mock_response="hi")

    assert stands_after(town, hooks(town), call) == (225, 0)  # LiteLLM's mock is of 10 and 20 tokens


def test_tokens_are_a_unit_too(town: Town) -> None:
    assert stands_after(town, hooks(town, unit="tokens"), acompletion) == (8, 0)


def test_a_refusal_is_litellms_own_error_and_the_provider_is_not_called(town: Town) -> None:
    provider = Provider()

    async def call() -> None:
        with pytest.raises(litellm.BudgetExceededError, match="llm:ann has less than 2008 left") as refused:
            await acompletion(max_tokens=1_000)
        assert refused.value.entity_id == ANN

    assert stands_after(town, hooks(town), call, provider=provider) == (0, 0)
    assert provider.calls == 0


def test_a_provider_that_fails_gives_all_of_it_back(town: Town) -> None:
    provider = Provider()
    provider.failures = [litellm.RateLimitError("slower", "ours", MODEL)]

    async def call() -> None:
        with pytest.raises(litellm.RateLimitError):
            await acompletion()

    assert stands_after(town, hooks(town), call, provider=provider) == (0, 0)


def test_a_provider_that_timed_out_may_bill_the_input(town: Town) -> None:
    provider = Provider()
    provider.failures = [litellm.Timeout("late", MODEL, "ours")]

    async def call() -> None:
        with pytest.raises(litellm.Timeout):
            await acompletion()

    assert stands_after(town, hooks(town), call, provider=provider) == (INPUT, 0)


def test_a_stream_counts_all_of_it_at_its_end(town: Town) -> None:
    async def call() -> None:
        async for _ in await acompletion(stream=True):
            assert town.held(ANN) == ESTIMATE

    spent, held = stands_after(town, hooks(town), call)
    assert held == 0
    assert INPUT < spent < ESTIMATE


def test_a_stream_that_fails_on_the_way_counts_what_it_gave(town: Town) -> None:
    provider = Provider()
    provider.failures = [litellm.APIConnectionError("gone", "ours", MODEL)]

    async def call() -> None:
        with pytest.raises(litellm.exceptions.MidStreamFallbackError):
            async for _ in await acompletion(stream=True):
                pass

    spent, held = stands_after(town, hooks(town), call, provider=provider)
    assert held == 0
    assert INPUT < spent < ESTIMATE


class Clocked(asyncio.SelectorEventLoop):
    """A loop whose time a test turns on."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


def test_a_call_whose_task_is_cancelled_pays_the_input_at_once(town: Town) -> None:
    budgets, provider = hooks(town), Provider()

    async def main() -> None:
        provider.go_on.clear()
        calling = asyncio.ensure_future(acompletion())
        await provider.called(calling)
        assert town.stands(ANN) == (0, ESTIMATE)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await all_ended(budgets)

    with installed(provider, budgets):
        asyncio.run(main())
    assert town.stands(ANN) == (INPUT, 0)


def test_a_task_that_is_cancelled_while_its_call_ends_waits_for_the_end(town: Town) -> None:
    async def main() -> None:
        ledger, calls = Awaited(town), OpenCalls()
        call = town.budgets(ledger=ledger).reserve([ANN], 600)
        mark = await calls.begin(OpenCall(call, None, asked=cast(Any, None)), 60)
        await cancelled_while_it_waits(ledger, calls.end(mark, 250))
        assert call.ended

    asyncio.run(main())
    assert town.stands(ANN) == (250, 0)


def test_a_call_that_a_loop_ends_while_it_ends_counts_and_tells_its_rest_once(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[BaseException] = []

    async def main() -> None:
        ledger, calls = Awaited(town), OpenCalls()
        call = town.budgets(ledger=ledger).reserve([ANN], 600)
        mark = await calls.begin(OpenCall(call, None, asked=cast(Any, None)), 60)
        ledger.waits.clear()

        async def ends() -> None:
            try:
                await calls.end(mark, CAP + 50)
            except asyncio.CancelledError as cancelled:
                told.append(cancelled)
                raise

        ending.append(asyncio.create_task(ends()))
        ending.append(asyncio.create_task(when_the_loop_ends(ledger.waits.set)))
        await ledger.waiting.wait()

    ending: list[asyncio.Task[None]] = []
    asyncio.run(main())
    assert [each.__cause__ for each in told] == [None]
    assert town.stands(ANN) == (CAP, 0)
    assert town.spent(f"over:{ANN}") == 50
    assert caplog.text.count("an estimate was too low") == 1


async def within(time: asyncio.Timeout, call: Coroutine[Any, Any, Any]) -> None:
    async with time:
        await call


async def gives_up(provider: Provider) -> None:
    """A task gives its call up by `asyncio.timeout`, once the provider is called, and goes on itself."""

    async def end_it() -> None:
        await provider.called(asyncio.get_running_loop().create_future())
        time.reschedule(0)

    ending = asyncio.ensure_future(end_it())
    time = asyncio.timeout(None)
    with pytest.raises(TimeoutError):
        await within(time, acompletion())
    await ending


def test_a_call_that_its_task_gives_up_while_it_goes_on_pays_the_input_at_once(town: Town) -> None:
    budgets, provider = hooks(town), Provider()

    async def main() -> None:
        provider.go_on.clear()
        await gives_up(provider)
        await all_ended(budgets)
        assert town.stands(ANN) == (INPUT, 0)

    with installed(provider, budgets):
        asyncio.run(main())


def test_a_call_leaves_nothing_with_the_task_that_made_it(town: Town) -> None:
    """What a task calls back is in no attribute; who has it is asked instead."""
    budgets = hooks(town)

    def callbacks() -> int:
        gc.collect()
        functions = (each for each in gc.get_objects() if isinstance(each, FunctionType))
        return sum("OpenCalls" in each.__qualname__ and "<locals>" in each.__qualname__ for each in functions)

    async def main() -> None:
        before = callbacks()
        for _ in range(3):
            await acompletion()
            await all_ended(budgets)
            assert callbacks() == before

    with installed(Provider(), budgets):
        asyncio.run(main())
    assert town.stands(ANN) == (33, 0)


def test_a_call_that_is_freed_in_another_thread_ends_in_its_own_loop_and_not_at_all_where_that_has_ended(
    town: Town,
) -> None:
    class Logging:
        """In the place of LiteLLM's own."""

    logging, calls = Logging(), OpenCalls()

    async def main(freed: bool) -> None:
        nonlocal logging
        call = town.budgets().reserve([ANN], 600)
        mark = await calls.begin(OpenCall(call, "mine", asked=Asked("tokens", MODEL, 8, 8)), 60)
        calls.end_when_left(mark, logging)
        if freed:
            await asyncio.to_thread(free)
            while len(calls):
                await asyncio.sleep(0)
            await others_end()
            assert call.ended

    def free() -> None:
        nonlocal logging
        logging = Logging()

    asyncio.run(main(True))
    assert town.stands(ANN) == (8, 0)
    asyncio.run(main(False))
    free()
    assert (len(calls), town.stands(ANN)) == (1, (8, 600))


async def left(provider: Provider, budgets: LedgerBudgets) -> None:
    """A stream that is left on the way."""
    stream = await acompletion(stream=True)
    await anext(stream)


async def late(provider: Provider, budgets: LedgerBudgets) -> None:
    """A call that is answered when its time is over."""
    calling = asyncio.ensure_future(acompletion())
    await provider.called(calling)
    Clocked.ahead_s += TIMEOUT.total_seconds() + 1
    await all_ended(budgets)
    provider.go_on.set()
    await calling


@pytest.mark.parametrize("way", [left, late])
def test_a_call_of_which_nobody_tells_the_end_counts_its_estimate_when_its_time_is_over(town: Town, way: Any) -> None:
    budgets, provider = hooks(town), Provider()

    async def main() -> None:
        provider.go_on.clear()
        await way(provider, budgets)
        assert town.stands(ANN) == ((ESTIMATE, 0) if way is late else (0, ESTIMATE))
        Clocked.ahead_s += TIMEOUT.total_seconds() + 1
        await all_ended(budgets)

    with installed(provider, budgets), asyncio.Runner(loop_factory=Clocked) as runner:
        runner.run(main())
    assert town.stands(ANN) == (ESTIMATE, 0)


def test_calls_that_their_callers_name_alike_count_each(town: Town) -> None:
    provider = Provider()

    async def call() -> None:
        provider.go_on.clear()
        calling = [asyncio.ensure_future(acompletion(litellm_call_id="mine")) for _ in range(3)]
        await provider.called(asyncio.gather(*calling), 3)
        with pytest.raises(litellm.InternalServerError):
            await acompletion(litellm_call_id="mine", mock_response=RuntimeError("down"))
        await GLOBAL_LOGGING_WORKER.flush()
        assert town.stands(ANN) == (0, 3 * ESTIMATE)
        provider.go_on.set()
        await asyncio.gather(*calling)
        assert town.stands(ANN) == (33, 0)

    assert stands_after(town, hooks(town), call, provider=provider) == (33, 0)


def test_a_price_that_changes_meanwhile_counts_as_it_is_when_the_answer_comes(town: Town) -> None:
    provider = Provider()

    async def call() -> None:
        provider.go_on.clear()
        calling = asyncio.ensure_future(acompletion(max_tokens=4))
        await provider.called(calling)
        assert town.held(ANN) == INPUT + 2 * 4
        with dearer(MODEL, 20e-6):
            provider.go_on.set()
            await calling

    assert stands_after(town, hooks(town), call, provider=provider) == (5 + 3 * 20, 0)


def test_one_who_may_spend_no_more_keeps_no_other_from_a_routers_deployment(town: Town) -> None:
    async def call() -> None:
        router = litellm.Router([{"model_name": "small", "litellm_params": {"model": MODEL}}], num_retries=0)
        for _ in range(3):
            with pytest.raises(litellm.BudgetExceededError):
                await router.acompletion("small", HELLO, user="bob", max_tokens=1_000)
        await router.acompletion("small", HELLO, user="ann", max_tokens=40)

    assert stands_after(town, hooks(town), call) == (11, 0)


def test_a_stream_that_is_left_counts_what_it_gave_at_once(town: Town) -> None:
    budgets = hooks(town)
    spent = []

    async def call(words: int) -> None:
        async with aclosing(budgets.stream(await acompletion(stream=True))) as stream:
            for _ in range(words):
                await anext(stream)
        spent.append(town.spent(ANN))

    assert stands_after(town, budgets, lambda: call(1), lambda: call(3))[1] == 0
    one, three = spent[0], spent[1] - spent[0]
    assert INPUT < one < three < ESTIMATE


def test_a_fallback_inside_a_call_keeps_its_reservation_and_costs_its_own_price(town: Town) -> None:
    provider = Provider()
    provider.failures = [litellm.RateLimitError("slower", "ours", MODEL)]

    async def call() -> None:
        await acompletion(fallbacks=["ours/dear"])

    assert stands_after(town, hooks(town), call, provider=provider) == (5 + 3 * 20, 0)
    assert provider.calls == 2


def test_each_attempt_of_a_router_reserves_when_the_one_before_has_ended(town: Town) -> None:
    provider = Provider()
    provider.failures = [litellm.RateLimitError("slower", "ours", MODEL)] * 2

    async def call() -> None:
        deployments = [
            {"model_name": name, "litellm_params": {"model": f"ours/{name}", "max_tokens": 200}}
            for name in ("small", "dear")
        ]
        router = litellm.Router(deployments, fallbacks=[{"small": ["dear"]}], num_retries=1, retry_after=0)
        town_cap_allows_one = await router.acompletion("small", HELLO, user="ann", max_tokens=40)
        assert town_cap_allows_one

    assert stands_after(town, hooks(town), call, provider=provider) == (5 + 3 * 20, 0)
    assert provider.calls == 3


@pytest.mark.parametrize("repeats", [{"num_retries": 2}, {"context_window_fallback_dict": {MODEL: "ours/dear"}}])
def test_what_the_sdk_would_repeat_without_asking_is_refused_and_not_repeated(
    town: Town, repeats: dict[str, Any]
) -> None:
    provider = Provider()

    async def call() -> None:
        with pytest.raises(RepeatsUnasked, match=f"{next(iter(repeats))}=.*without asking a hook"):
            await acompletion(**repeats)

    assert stands_after(town, hooks(town), call, provider=provider) == (0, 0)
    assert provider.calls == 0


def test_what_a_cache_answers_costs_nothing(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litellm, "cache", None)
    provider = Provider()

    async def call() -> None:
        litellm.cache = litellm.Cache(type="local")
        for _ in range(2):
            await acompletion(caching=True)
            while not litellm.cache.cache.cache_dict:  # LiteLLM fills it beside the answer
                await asyncio.sleep(0)

    assert stands_after(town, hooks(town), call, provider=provider) == (11, 0)
    assert provider.calls == 1


def test_several_budgets_are_held_together_or_none_is(town: Town) -> None:
    budgets = hooks(town, counters=lambda caller: [ANN, f"llm:team:{caller['team']}", f"llm:model:{caller['model']}"])

    async def call() -> None:
        await acompletion(metadata={"team": "blue"})
        with (
            taken(town, "llm:team:blue", CAP - 20),
            pytest.raises(litellm.BudgetExceededError, match="team:blue"),
        ):
            await acompletion(metadata={"team": "blue"})

    assert stands_after(town, budgets, call) == (11, 0)
    assert town.stands(f"llm:model:{MODEL}") == (11, 0)


def test_two_objects_of_different_units_both_hold_or_none_does(town: Town) -> None:
    dollars = hooks(town)
    tokens = hooks(town, unit="tokens", counters=lambda caller: [f"llm:tokens:{caller['user']}"])

    async def call() -> None:
        await acompletion()
        with (
            taken(town, "llm:tokens:ann", CAP - 20),
            pytest.raises(litellm.BudgetExceededError, match="tokens:ann"),
        ):
            await acompletion()

    async def main() -> None:
        await call()
        await all_ended(dollars, tokens)

    with installed(Provider(), dollars, tokens):
        asyncio.run(main())
    assert (town.stands(ANN), town.stands("llm:tokens:ann")) == ((11, 0), (8, 0))


def test_a_stream_ends_in_each_of_two_objects(town: Town) -> None:
    """It does by LiteLLM's log event alone, which of two objects that look alike only one would get."""
    one = hooks(town)
    other = hooks(town, unit="tokens", counters=lambda caller: [f"llm:tokens:{caller['user']}"])

    async def main() -> None:
        async for _ in await acompletion(stream=True):
            pass
        await all_ended(one, other)

    with installed(Provider(), one, other):
        asyncio.run(main())
    assert town.held(ANN) == town.held("llm:tokens:ann") == 0
    assert town.spent("llm:tokens:ann") > 0


def test_a_settlement_that_fails_is_tried_again_and_the_answer_stands(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Failing(town.ledger(), "capture", Throttled("slower"), 1 + TRIES_MAX)
    budgets = hooks(town, ledger=failing)

    async def main() -> None:
        assert (await acompletion()).choices[0].message.content == "hi"
        assert failing.left == TRIES_MAX  # the answer waited for one try
        while failing.left:
            await asyncio.sleep(0)
        assert town.stands(ANN) == (0, ESTIMATE)
        while "again soon" not in caplog.records[-1].message or len(caplog.records) < 2:
            await asyncio.sleep(0)
        Clocked.ahead_s += 11
        while town.held(ANN):
            await asyncio.sleep(0)

    with installed(Provider(), budgets), asyncio.Runner(loop_factory=Clocked) as runner:
        runner.run(main())
    assert town.stands(ANN) == (11, 0)
    assert "cost 11: not settled; again soon: slower" in caplog.text


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"user": None}, "This call has no user, and a budget is named by it"),
        ({"user": "ann b"}, "without spaces"),
        ({"model": "ours/unknown"}, "LiteLLM has no price of it by the token"),
        ({"max_tokens": None}, "no longest answer"),
    ],
)
def test_a_call_of_which_the_budget_or_the_price_is_not_known_is_refused_in_a_plain_sentence(
    town: Town, given: dict[str, Any], told: str
) -> None:
    provider = Provider()

    async def call() -> None:
        with pytest.raises(litellm.BadRequestError, match=told):
            await acompletion(**given)

    assert stands_after(town, hooks(town), call, provider=provider) == (0, 0)
    assert provider.calls == 0


def test_where_no_price_is_known_what_the_operator_said_is_held_and_counts(town: Town) -> None:
    async def call() -> None:
        await acompletion(model="ours/unknown")

    assert stands_after(town, hooks(town, estimate=300), call) == (300, 0)


def test_a_budget_that_the_operator_names_without_a_list_is_one_and_no_answer_at_all_is_told(town: Town) -> None:
    assert stands_after(town, hooks(town, counters=lambda caller: ANN), acompletion) == (11, 0)


@pytest.mark.parametrize(
    ("counters", "told"),
    [
        (lambda caller: None, "are the names of counters"),
        (lambda caller: [caller["usr"]], "No caller has 'usr': budgets are named by key, user, team"),
        (lambda caller: ["budget:ann"], "'budget:ann' has no limit"),
    ],
)
def test_what_the_operator_has_to_mend_is_logged_and_not_told_to_the_caller(
    town: Town, counters: Any, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    provider = Provider()
    broken = installed(provider, hooks(town, counters=counters))
    with broken, pytest.raises(litellm.InternalServerError, match="not set up right") as refused:
        asyncio.run(acompletion())
    assert told in caplog.text
    assert told not in str(refused.value)
    assert provider.calls == 0


def test_what_a_caller_asks_too_much_of_is_the_callers_and_not_in_the_operators_log(
    town: Town, caplog: pytest.LogCaptureFixture
) -> None:
    with installed(Provider(), hooks(town, unit="tokens")), pytest.raises(litellm.BadRequestError, match="magnitude"):
        asyncio.run(acompletion(max_tokens=10**19))
    assert "not set up right" not in caplog.text


@pytest.mark.parametrize("sent", ["metadata", ["metadata"], 1])
def test_a_caller_may_send_anything_in_the_place_of_litellms_own_parameters(sent: Any) -> None:
    assert mark_of({"litellm_params": sent, "metadata": {"ours": "mark"}}, "ours") == "mark"
    assert mark_of({"litellm_params": sent}, "ours") is None


def test_what_is_no_stream_is_told(town: Town) -> None:
    with pytest.raises(InvalidInput, match="is a stream, not"):
        asyncio.run(anext(hooks(town).stream([1, 2])))


def test_a_call_that_the_operator_names_no_budget_for_passes(town: Town) -> None:
    provider = Provider()
    budgets = hooks(town, counters=lambda caller: [])
    unpriced = functools.partial(acompletion, model="ours/unknown")
    assert stands_after(town, budgets, unpriced, provider=provider) == (0, 0)
    assert provider.calls == 1


def test_a_table_that_does_not_answer_calls_nothing(town: Town) -> None:
    provider = Provider()

    async def call() -> None:
        with pytest.raises(litellm.ServiceUnavailableError, match="nothing was called: slower"):
            await acompletion()

    ledger = Failing(town.ledger(), "hold", Throttled("slower"), 99)
    assert stands_after(town, hooks(town, ledger=ledger), call, provider=provider) == (0, 0)
    assert provider.calls == 0


def test_a_call_that_blocks_asks_no_hook_and_that_is_logged(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    with installed(Provider(), hooks(town)), caplog.at_level(logging.ERROR):
        litellm.completion("gpt-4o", HELLO, user="ann", mock_response="hi")
    assert "completion() asks no hook that could refuse it: this call is in no budget" in caplog.text


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"unit": "euro"}, "unit='euro' is not one of"),
        ({"counters": ["llm:ann"]}, "counters is a function of the caller"),
        ({"estimate": -1}, "estimate=-1 is no cost"),
        ({"ledger": "counters"}, "kept by a Ledger"),
    ],
)
def test_wrong_arguments_are_told(town: Town, given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        hooks(town, **given)


def test_what_the_recipe_gives_to_try_answers_four_and_refuses_the_fifth(capsys: pytest.CaptureFixture[str]) -> None:
    source, _ = blocks(RECIPES / "llm-budgets.md", "py")
    with installed(Provider()):
        exec(compile(source, "try.py", "exec", dont_inherit=True), {"__name__": "__main__"})
    *answers, refusal = capsys.readouterr().out.splitlines()
    assert answers[-4:] == ["answered"] * 4
    assert "llm:ann has less than 320 left" in refusal


def test_the_file_of_the_recipe_for_the_proxy_runs_as_it_stands() -> None:
    _, source = blocks(RECIPES / "llm-budgets.md", "py")
    names: dict[str, Any] = {"__name__": "our_budgets"}
    exec(compile(source, "our_budgets.py", "exec", dont_inherit=True), names)
    caller = names["Caller"](key="k1", model="gpt-4o", month="2026-11", day="2026-11-23")
    assert list(names["budgets_of"](caller)) == ["llm:key:k1:2026-11", "llm:model:gpt-4o:2026-11-23"]
    assert isinstance(names["budgets"], LedgerBudgets)


@pytest.fixture
def price_list() -> Iterator[None]:
    """As it was, afterwards: LiteLLM registers the price of a call for the whole process."""
    before = copy.deepcopy(litellm.model_cost)
    yield
    litellm.model_cost.clear()
    litellm.model_cost.update(before)
    litellm.register_model({"gpt-4o": before["gpt-4o"]})  # which forgets what LiteLLM remembers of the list


def answered(model: str, sent: int, answered: int, **more: int) -> Any:
    usage = litellm.Usage(prompt_tokens=sent, completion_tokens=answered, total_tokens=sent + answered, **more)
    return litellm.ModelResponse(model=model, choices=[{"message": {"content": "hi"}}], usage=usage)


DEAR = {"input_cost_per_token": 1e-3, "output_cost_per_token": 1e-3}
SHARP = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "high"}}
WRITTEN = {"type": "text", "text": "word " * 5_000, "cache_control": {"type": "ephemeral"}}
CLAUDE = "claude-sonnet-4-5"


@pytest.mark.parametrize(
    ("given", "spent"),
    [
        ({"model": "gpt-4o", "mock_response": "hi", **DEAR}, 30_000),
        ({"model": "openai/not-listed", "mock_response": "hi", **DEAR}, 30_000),
        (
            {"model": "gpt-4.1", "service_tier": "priority", "mock_response": answered("gpt-4.1", 8, 100)},
            1_428,
        ),
        (
            {
                "model": "gpt-4o",
                "messages": [{"role": "user", "content": [SHARP] * 5}],
                "mock_response": answered("gpt-4o", 5_525, 10),
            },
            13_913,
        ),
        (
            {
                "model": CLAUDE,
                "messages": [{"role": "user", "content": [WRITTEN]}],
                "mock_response": answered(CLAUDE, 5_010, 10, cache_creation_input_tokens=5_000),
            },
            18_930,
        ),
    ],
)
@pytest.mark.usefixtures("price_list")
def test_no_price_is_higher_than_what_was_reserved(given: dict[str, Any], spent: int) -> None:
    town = Town(cap=10**9)
    budgets = hooks(town)
    assert stands_after(town, budgets, lambda: acompletion(**given)) == (spent, 0)
    town.ledger().set_limit(ANN, ceiling=2 * spent - 1)  # too little for as much again
    with pytest.raises(litellm.BudgetExceededError):
        stands_after(town, budgets, lambda: acompletion(**given))


@pytest.mark.usefixtures("price_list")
def test_a_router_whose_deployment_has_prices_of_its_own_never_passes_a_budget() -> None:
    town = Town(cap=100_000)
    deployment = {"model": "gpt-4o-mini", "api_key": "x", "mock_response": answered("gpt-4o-mini", 8, 50), **DEAR}
    refused = 0

    async def call() -> None:
        nonlocal refused
        router = litellm.Router([{"model_name": "m", "litellm_params": deployment}], num_retries=0)
        calls = (router.acompletion("m", HELLO, user="ann", max_tokens=50) for _ in range(10))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        refused += sum(isinstance(each, litellm.BudgetExceededError) for each in answers)

    assert stands_after(town, hooks(town), call) == (58_000, 0)
    assert (refused, town.spent(f"over:{ANN}")) == (9, 0)


@pytest.mark.parametrize(("details", "least"), [({}, 8), ({"original_response": "hi"}, None), (None, 8)])
def test_a_call_that_is_left_when_its_answer_had_come_counts_its_estimate(details: Any, least: int | None) -> None:
    assert OpenCall(cast(Any, None), "mine", Asked("tokens", MODEL, 8, 8), details).least == least


def test_dollars_below_0_are_no_cost() -> None:
    assert [micro_dollars(dollars) for dollars in (0, 0.00022500000000000002, 0.0000001, 3)] == [0, 225, 1, 3_000_000]
    for wrong in (-0.1, float("nan"), float("inf"), True, "1"):
        with pytest.raises(InvalidInput, match="dollars are no cost"):
            micro_dollars(wrong)  # type: ignore[arg-type]


def test_an_embedding_counts_its_input_and_a_picture_its_price_within_what_the_operator_said(town: Town) -> None:
    async def embeds() -> None:
        await litellm.aembedding("text-embedding-3-small", input=["hello"], user="ann", mock_response=[0.1, 0.2])

    async def draws() -> None:
        asked = {"prompt": "a cat", "size": "1024x1024", "mock_response": "https://pictures/cat"}
        await litellm.aimage_generation(model="azure/dall-e-3", user="ann", **asked)

    town.ledger().set_limit(ANN, ceiling=100_000)
    assert stands_after(town, hooks(town), embeds) == (1, 0)
    with pytest.raises(litellm.BadRequestError, match="What a call of 'azure/dall-e-3' may cost is not known"):
        stands_after(town, hooks(town), draws)
    assert stands_after(town, hooks(town, estimate=90_000), draws) == (
        1 + 44_001,
        0,
    )  # LiteLLM lists 4.19617e-08 dollars a pixel
