"""Budgets on LiteLLM's hooks with an AsyncLedger on aiobotocore, on an engine: no thread and no stand-in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import litellm
import pytest

from integrations.litellm import LedgerBudgets
from lab.engines.ministack import Engine
from ledger import Limit, Settings
from ledger.aio import AsyncLedger
from reader import Reader
from tests.integrations.litellm_support import HELLO, INPUT, MODEL, Provider, all_decided, all_ended, by_user, installed
from tests.integrations.support import CAP, HERE

ASKED: dict[str, Any] = {"model": MODEL, "messages": HELLO, "user": "ann", "max_tokens": 100}
ESTIMATE = INPUT + 2 * 100


@pytest.fixture
def settings(engine: Engine, table_names: Iterator[str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "embedded")
    table = next(table_names)
    engine.create_table(table, HERE)
    limits = {"llm:": Limit(ceiling=CAP, region=HERE)}
    return Settings(table=table, region=HERE, endpoint_url=engine.endpoint_url, limits=limits)


def test_calls_at_once_a_failure_a_cut_stream_and_a_cancelled_task_leave_what_they_cost(
    engine: Engine, settings: Settings
) -> None:
    provider = Provider()
    reader = Reader(settings, client=engine.client(HERE))

    async def at_once(budgets: LedgerBudgets) -> None:
        """Four of eight have room, and one of these is cancelled."""
        provider.go_on.clear()
        calls = [asyncio.ensure_future(litellm.acompletion(**ASKED)) for _ in range(8)]
        await all_decided(provider, calls)
        assert {type(each.exception()) for each in calls if each.done()} == {litellm.BudgetExceededError}
        next(each for each in calls if not each.done()).cancel()
        provider.go_on.set()
        await asyncio.gather(*calls, return_exceptions=True)
        await all_ended(budgets)

    async def main() -> None:
        async with AsyncLedger(settings) as ledger:
            budgets = LedgerBudgets(ledger, by_user)
            with installed(provider, budgets):
                await at_once(budgets)
                assert provider.calls == CAP // ESTIMATE == 4
                with pytest.raises(litellm.InternalServerError):
                    await litellm.acompletion(**ASKED, mock_response=RuntimeError("down"))
                spent = reader.read("llm:ann").value
                async with aclosing(budgets.stream(await litellm.acompletion(**ASKED, stream=True))) as stream:
                    await anext(stream)
                await all_ended(budgets)
        assert spent == 3 * 11 + INPUT

    asyncio.run(main())
    standing = reader.standing("llm:ann")
    assert (standing.held.up, standing.available.up) == (0, CAP - standing.value)
    assert 3 * 11 + 2 * INPUT < standing.value < 3 * 11 + INPUT + ESTIMATE
