"""Budgets on LiteLLM's hooks without its proxy: `acompletion` and a Router, with the real
package.
"""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import litellm
import pytest
from exact_counter.aio import AsyncLedger
from exact_counter.errors import InvalidInput, Throttled
from lab.histories.parts.budgets import TIMEOUT, TwoRegions

from budgets_lab.provider import (
    HELLO,
    INPUT,
    MODEL,
    Provider,
    TurnedLoop,
    all_ended,
    hooks,
    installed,
)
from ledger_litellm import LedgerBudgets
from ledger_litellm.errors import RepeatsUnasked

ANN = "llm:ann"
ASKED: dict[str, Any] = {"model": MODEL, "messages": HELLO, "user": "ann", "max_tokens": 100}
ESTIMATE = INPUT + 2 * 100
PAGE = Path(__file__).parents[1] / "README.md"


def stands_after(
    world: TwoRegions,
    budgets: LedgerBudgets,
    call: Any,
    *more: LedgerBudgets,
    provider: Provider | None = None,
) -> tuple[int, int]:
    """What is spent of Ann's budget, and held, after a call: a function that answers a
    coroutine.
    """

    async def main() -> None:
        await call()
        await all_ended(budgets, *more)

    with (
        installed(budgets, *more, provider=provider),
        asyncio.Runner(loop_factory=TurnedLoop) as runner,
    ):
        runner.run(main())
    return world.stands(ANN)


async def acompletion(**given: Any) -> Any:
    return await litellm.acompletion(**(ASKED | given))


def test_an_answer_counts_its_cost_a_failure_what_may_be_billed() -> None:
    slower, late = (
        litellm.RateLimitError("slower", "ours", MODEL),
        litellm.Timeout("late", MODEL, "ours"),
    )
    outcomes: list[tuple[dict[str, Any], list[Exception], dict[str, Any], int]] = [
        ({}, [], {}, 11),
        ({}, [], {"unit": "tokens"}, 8),
        ({}, [], {"counters": lambda caller: ANN}, 11),
        ({"model": "ours/unknown"}, [], {"counters": lambda caller: []}, 0),
        ({"model": "ours/unknown"}, [], {"estimate": 300}, 300),
        ({}, [slower], {}, 0),
        ({}, [late], {}, INPUT),
        ({"fallbacks": ["ours/dear"]}, [slower], {}, 5 + 3 * 20),
    ]
    for given, failures, of_hooks, spent in outcomes:

        async def call(given: dict[str, Any] = given) -> None:
            with suppress(litellm.RateLimitError, litellm.Timeout):
                await acompletion(**given)

        world = TwoRegions(1_000)
        provider = Provider(*failures)
        assert stands_after(world, hooks(world, **of_hooks), call, provider=provider) == (
            spent,
            0,
        ), given
        assert provider.calls == 1 + ("fallbacks" in given)


def test_a_call_that_may_not_begin_is_refused_and_not_sent(
    world: TwoRegions, caplog: pytest.LogCaptureFixture
) -> None:
    def throttled(*_: Any, **given: Any) -> None:
        raise Throttled("slower")

    ledger: Any = world.ledger()
    ledger.hold_all = throttled
    bad, broken = litellm.BadRequestError, litellm.InternalServerError
    refusals: list[tuple[dict[str, Any], dict[str, Any], type[Exception], str]] = [
        (
            {"max_tokens": 1_000},
            {},
            litellm.BudgetExceededError,
            "ann has 1,000 left, and this call may cost 2,008",
        ),
        ({"user": None}, {}, bad, "This call has no user, and a budget is named by it"),
        ({"user": "ann b"}, {}, bad, "without spaces"),
        ({"model": "ours/unknown"}, {}, bad, "LiteLLM has no price of it by the token"),
        ({"max_tokens": None}, {}, bad, "no longest answer"),
        ({"max_tokens": 10**19}, {"unit": "tokens"}, bad, "magnitude"),
        ({"num_retries": 2}, {}, RepeatsUnasked, "num_retries=.*without asking a hook"),
        (
            {"context_window_fallback_dict": {MODEL: "ours/dear"}},
            {},
            RepeatsUnasked,
            "without asking a hook",
        ),
        ({}, {"ledger": ledger}, litellm.ServiceUnavailableError, "nothing was called: slower"),
        ({}, {"counters": lambda caller: None}, broken, "not set up right"),
        ({}, {"counters": lambda caller: [caller["usr"]]}, broken, "not set up right"),
        ({}, {"counters": lambda caller: ["budget:ann"]}, broken, "not set up right"),
    ]
    for given, of_hooks, error, message in refusals:

        async def call(
            given: dict[str, Any] = given, error: Any = error, message: str = message
        ) -> None:
            with pytest.raises(error, match=message) as refused:
                await acompletion(**given)
            assert getattr(refused.value, "entity_id", ANN) == ANN

        provider, said = Provider(), len(caplog.records)
        assert stands_after(world, hooks(world, **of_hooks), call, provider=provider) == (0, 0)
        assert provider.calls == 0
        assert ("not set up right" in "".join(each.message for each in caplog.records[said:])) == (
            error is broken
        )
    for mend in ("are the names of counters", "No caller has 'usr'", "'budget:ann' has no limit"):
        assert mend in caplog.text


def test_estimates_are_held_and_calls_pass_no_budget_together(
    world: TwoRegions,
) -> None:
    """Four of eight have room, and one of these is cancelled.

    With a Ledger in threads, and with an AsyncLedger.
    """

    async def main(world: TwoRegions, ledger: Any) -> None:
        budgets, provider = hooks(world, ledger=ledger), Provider()
        with installed(budgets, provider=provider):
            provider.goes_on.clear()
            calls = [asyncio.ensure_future(acompletion(litellm_call_id="mine")) for _ in range(8)]
            while provider.calls + sum(call.done() for call in calls) < 8:
                await asyncio.sleep(0.001)
            assert {type(call.exception()) for call in calls if call.done()} == {
                litellm.BudgetExceededError
            }
            with pytest.raises(litellm.InternalServerError):
                await acompletion(
                    user="bob", litellm_call_id="mine", mock_response=RuntimeError("down")
                )
            assert world.stands(ANN) == (0, 4 * ESTIMATE)
            next(call for call in calls if not call.done()).cancel()
            provider.goes_on.set()
            answers = await asyncio.gather(*calls, return_exceptions=True)
            assert sum(isinstance(answer, litellm.ModelResponse) for answer in answers) == 3
            await all_ended(budgets)
        assert (world.stands(ANN), world.stands("llm:bob")) == ((3 * 11 + INPUT, 0), (0, 0))

    async def awaited(world: TwoRegions) -> None:
        table = world.simulation.table(world.settings().region)
        async with AsyncLedger(world.settings(), table=table, clock=world.clock) as ledger:
            await main(world, ledger)

    asyncio.run(main(world, world.ledger()))
    asyncio.run(awaited(TwoRegions(1_000)))


def test_a_stream_counts_what_it_gave_however_it_ends(
    world: TwoRegions,
) -> None:
    budgets, spent = hooks(world), [0]

    async def read(words: int) -> None:
        async with aclosing(budgets.stream(await acompletion(stream=True))) as stream:
            for _ in range(words):
                assert world.held(ANN) == ESTIMATE
                await anext(stream)

    async def whole() -> None:
        async for _ in await acompletion(stream=True):
            pass

    async def fails() -> None:
        with pytest.raises(litellm.exceptions.MidStreamFallbackError):
            await whole()

    gone = litellm.APIConnectionError("gone", "ours", MODEL)
    for call, failures in (
        (lambda: read(1), []),
        (lambda: read(3), []),
        (fails, [gone]),
        (whole, []),
    ):
        total, held = stands_after(world, budgets, call, provider=Provider(*failures))
        spent.append(total - sum(spent))
        assert (held, INPUT < spent[-1] < ESTIMATE) == (0, True)
    assert spent[1] < spent[2] == spent[3] < spent[4]
    with pytest.raises(InvalidInput, match="is a stream, not"):
        asyncio.run(anext(budgets.stream([1, 2])))


def test_a_call_given_up_by_its_task_pays_the_input_at_once(
    world: TwoRegions,
) -> None:
    provider = Provider()
    provider.goes_on.clear()

    async def wait() -> None:
        await provider.called()
        TurnedLoop.ahead_s += 10

    async def gives_up() -> None:
        waiting = asyncio.ensure_future(wait())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await acompletion()
        await waiting

    assert stands_after(world, hooks(world), gives_up, provider=provider) == (INPUT, 0)


def test_a_call_without_an_end_counts_its_estimate_in_the_end(
    world: TwoRegions,
) -> None:
    async def is_left() -> None:
        await anext(await acompletion(stream=True))
        assert world.stands(ANN) == (0, ESTIMATE)
        TurnedLoop.ahead_s += TIMEOUT.total_seconds() + 1

    assert stands_after(world, hooks(world), is_left) == (ESTIMATE, 0)


def test_each_attempt_of_a_router_reserves(world: TwoRegions) -> None:
    """Who may spend no more keeps nobody else from a deployment."""
    provider = Provider(*[litellm.RateLimitError("slower", "ours", MODEL)] * 2)

    async def call() -> None:
        deployments = [
            {"model_name": name, "litellm_params": {"model": f"ours/{name}", "max_tokens": 200}}
            for name in ("small", "dear")
        ]
        router = litellm.Router(
            deployments, fallbacks=[{"small": ["dear"]}], num_retries=1, retry_after=0
        )
        for _ in range(3):
            with pytest.raises(litellm.BudgetExceededError):
                await router.acompletion("dear", HELLO, user="bob", max_tokens=1_000)
        await router.acompletion("small", HELLO, user="ann", max_tokens=40)

    assert stands_after(world, hooks(world), call, provider=provider) == (5 + 3 * 20, 0)
    assert provider.calls == 3


def test_a_call_that_blocks_asks_no_hook_and_that_is_logged(
    world: TwoRegions, caplog: pytest.LogCaptureFixture
) -> None:
    with installed(hooks(world)), caplog.at_level(logging.ERROR):
        litellm.completion("gpt-4o", HELLO, user="ann", mock_response="hi")
    assert (
        "completion() asks no hook that could refuse it: this call is in no budget" in caplog.text
    )


def answered(model: str, sent: int, answered: int, **more: int) -> Any:
    usage = litellm.Usage(
        prompt_tokens=sent, completion_tokens=answered, total_tokens=sent + answered, **more
    )
    return litellm.ModelResponse(model=model, choices=[{"message": {"content": "hi"}}], usage=usage)


DEAR = {"input_cost_per_token": 1e-3, "output_cost_per_token": 1e-3}
SHARP = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "high"},
}
WRITTEN = {"type": "text", "text": "word " * 5_000, "cache_control": {"type": "ephemeral"}}
CLAUDE = "claude-sonnet-4-5"
# the model, its answer, what else is asked, what that costs
PRICED: list[tuple[str, Any, dict[str, Any], int]] = [
    # LiteLLM's mock is of 10 and 20 tokens; it keeps what a call costs
    ("gpt-4o-2024-05-13", "hi", DEAR, 30_000),
    ("openai/listed-by-its-call", "hi", DEAR, 30_000),
    ("gpt-4.1", answered("gpt-4.1", 8, 100), {"service_tier": "priority"}, 1_428),
    (
        "gpt-4o",
        answered("gpt-4o", 5_525, 10),
        {"messages": [{"role": "user", "content": [SHARP] * 5}]},
        13_913,
    ),
    (
        CLAUDE,
        answered(CLAUDE, 5_010, 10, cache_creation_input_tokens=5_000),
        {"messages": [{"role": "user", "content": [WRITTEN]}]},
        18_930,
    ),
]


def test_no_price_is_higher_than_what_was_reserved() -> None:
    for model, answer, more, spent in PRICED:

        async def call(model: str = model, answer: Any = answer, more: Any = more) -> None:
            await acompletion(model=model, mock_response=answer, **more)

        world = TwoRegions(10**9)
        budgets = hooks(world)
        assert stands_after(world, budgets, call) == (spent, 0)
        world.ledger().set_limit(ANN, ceiling=2 * spent - 1)  # too little for as much again
        with pytest.raises(litellm.BudgetExceededError):
            stands_after(world, budgets, call)


def test_wrong_arguments_are_refused(world: TwoRegions) -> None:
    wrong = {
        "unit": "euro",
        "counters": ["llm:ann"],
        "estimate": -1,
        "picture": -1,
        "ledger": "counters",
    }
    for name, value in wrong.items():
        with pytest.raises(InvalidInput, match=f"{name}=|{name} is a function|kept by a Ledger"):
            hooks(world, **{name: value})


def test_the_code_of_the_page_runs_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    to_try, of_the_proxy = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    with installed():
        exec(compile(to_try, "try.py", "exec", dont_inherit=True), {"__name__": "__main__"})
    *answers, refusal = capsys.readouterr().out.splitlines()
    assert answers[-4:] == ["answered"] * 4
    assert "llm:ann has 100 left, and this call may cost 320" in refusal
    names: dict[str, Any] = {"__name__": "our_budgets"}
    exec(compile(of_the_proxy, "our_budgets.py", "exec", dont_inherit=True), names)
    caller = names["Caller"](key="k1", model="gpt-4o", month="2026-11", day="2026-11-23")
    assert list(names["budgets_of"](caller)) == [
        "llm:key:k1@2026-11",
        "llm:model:gpt-4o@2026-11-23",
    ]
