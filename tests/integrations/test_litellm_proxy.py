"""Budgets on LiteLLM's hooks in its real proxy, in this process: requests over ASGI, with mock responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import litellm
import pytest
from litellm.proxy import proxy_server

from integrations.litellm import LedgerBudgets
from tests.integrations.litellm_support import INPUT, MODEL, Provider, all_decided, all_ended, hooks, installed
from tests.integrations.support import CAP, Town

KEY = "llm:litellm_proxy_master_key"
CONFIG = """
model_list:
  - {model_name: small, litellm_params: {model: ours/small}}
  - {model_name: falls, litellm_params: {model: gpt-4o, mock_response: litellm.RateLimitError}}
  - {model_name: dear, litellm_params: {model: ours/dear}}
  - model_name: own-price
    litellm_params: {model: ours/other, input_cost_per_token: 0.000003, output_cost_per_token: 0.000004}
router_settings: {num_retries: 1, retry_after: 0, fallbacks: [{falls: [dear]}], disable_cooldowns: true}
general_settings: {master_key: sk-of-a-test, cancel_on_disconnect: true}
"""
HEADERS = {"Authorization": "Bearer sk-of-a-test"}
CHAT = "/v1/chat/completions"
ASKED: dict[str, Any] = {"model": "small", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 100}
ESTIMATE = INPUT + 2 * 100


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asyncio.Runner]:
    """One loop for all tests, because the proxy keeps things of its loop."""
    config = Path(tmp_path_factory.mktemp("proxy")) / "config.yaml"
    config.write_text(CONFIG)
    with installed(Provider()), asyncio.Runner() as runner:
        runner.run(proxy_server.initialize(config=str(config)))
        yield runner


@pytest.fixture
def town() -> Town:
    return Town()


def by_key(caller: Any) -> list[str]:
    return [f"llm:{caller['key']}"]


def asked_after(
    town: Town, runner: asyncio.Runner, *requests: Any, provider: Provider | None = None, **given: Any
) -> list[Any]:
    """What some requests, functions of a client, answered; then each call has ended."""
    twice = given.pop("twice", False)
    budgets = hooks(town, counters=given.pop("counters", by_key), **given)

    async def main() -> list[Any]:
        litellm.logging_callback_manager.add_litellm_async_success_callback(budgets)  # as the proxy does at its start
        litellm.logging_callback_manager.add_litellm_async_failure_callback(budgets)
        transport = httpx.ASGITransport(app=proxy_server.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy", headers=HEADERS) as client:
            answers = [await request(client) for request in requests]
        await all_ended(budgets)
        return answers

    with installed(provider or Provider(), *[budgets] * (1 + twice)):
        return runner.run(main())


def chat(**given: Any) -> Any:
    return lambda client: client.post(CHAT, json=ASKED | given)


def test_a_request_counts_its_real_cost_and_holds_nothing_more(town: Town, runner: asyncio.Runner) -> None:
    answers = asked_after(town, runner, chat(), chat(model="own-price"))
    assert [each.status_code for each in answers] == [200, 200]
    assert town.stands(KEY) == (11 + 5 * 3 + 3 * 4, 0)


def test_a_refusal_is_the_proxys_own_budget_error_and_the_provider_is_not_called(
    town: Town, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider()
    answers = asked_after(town, runner, chat(max_tokens=1_000), provider=provider)
    monkeypatch.setattr(litellm, "budget_exceeded_status_code", 429)
    answers += asked_after(town, runner, chat(max_tokens=1_000), provider=provider)
    assert [each.status_code for each in answers] == [422, 429]
    assert f"The budget {KEY} has less than 2008 left" in answers[0].json()["error"]["message"]
    assert provider.calls == 0
    assert town.stands(KEY) == (0, 0)


def test_an_object_that_is_installed_twice_reserves_once(town: Town, runner: asyncio.Runner) -> None:
    (told,) = asked_after(town, runner, chat(max_tokens=300), twice=True)  # 608 of 1,000
    assert told.status_code == 200
    assert town.stands(KEY) == (11, 0)
    asked_after(town, runner, chat(stream=True))
    once = town.spent(KEY) - 11
    asked_after(town, runner, chat(stream=True), twice=True)
    assert town.stands(KEY) == (11 + 2 * once, 0)


def test_all_retries_of_a_request_share_one_reservation(town: Town, runner: asyncio.Runner) -> None:
    provider = Provider()
    provider.failures = [litellm.RateLimitError("slower", "ours", MODEL)]
    held: list[int] = []
    answer = provider.acompletion

    async def watched(*args: Any, **kwargs: Any) -> Any:
        held.append(town.held(KEY))
        return await answer(*args, **kwargs)

    provider.acompletion = watched  # type: ignore[method-assign]
    (told,) = asked_after(town, runner, chat(max_tokens=300), provider=provider)
    assert (told.status_code, provider.calls, held) == (200, 2, [INPUT + 600] * 2)
    assert town.stands(KEY) == (11, 0)


def test_a_fallback_keeps_the_reservation_and_costs_its_own_price(town: Town, runner: asyncio.Runner) -> None:
    (told,) = asked_after(town, runner, chat(model="falls", max_tokens=50))
    assert told.status_code == 200
    assert town.stands(KEY) == (5 + 3 * 20, 0)


def test_a_provider_that_fails_for_good_gives_all_of_it_back(town: Town, runner: asyncio.Runner) -> None:
    provider = Provider()
    provider.failures = [litellm.InternalServerError("gone", "ours", MODEL)] * 5
    (told,) = asked_after(town, runner, chat(), provider=provider)
    assert told.status_code == 500
    assert town.stands(KEY) == (0, 0)


def test_a_stream_counts_all_of_it_and_other_routes_reserve_too(town: Town, runner: asyncio.Runner) -> None:
    def responses(client: httpx.AsyncClient) -> Any:
        return client.post("/v1/responses", json={"model": "small", "input": "hello", "max_output_tokens": 100})

    def messages(client: httpx.AsyncClient) -> Any:
        return client.post("/v1/messages", json=ASKED)

    spent: list[int] = []
    for request in (chat(stream=True), responses, messages):
        (told,) = asked_after(town, runner, request)
        assert told.status_code == 200, told.text
        spent.append(town.spent(KEY) - sum(spent))
        assert town.held(KEY) == 0
    assert all(0 < each < ESTIMATE for each in spent)


class Leaves:
    """A client that sends a request and leaves, at once or after so many pieces of the answer."""

    def __init__(self, body: dict[str, Any], after: int, provider: Provider) -> None:
        self._body, self._after, self._provider = json.dumps(body).encode(), after, provider
        self._sent = False
        self._leaves = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        if not self._after:
            while not self._provider.calls:
                await asyncio.sleep(0.001)
            return {"type": "http.disconnect"}
        await self._leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body" and message.get("body"):
            self._after -= 1
            if self._after == 0:
                self._leaves.set()

    async def __call__(self, client: Any) -> None:
        headers = [(b"authorization", HEADERS["Authorization"].encode()), (b"content-type", b"application/json")]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": CHAT,
            "raw_path": CHAT.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("proxy", 80),
        }
        async with asyncio.timeout(20):
            await proxy_server.app(scope, self.receive, self.send)


def test_a_client_that_leaves_in_the_middle_of_a_stream_pays_what_was_streamed(
    town: Town, runner: asyncio.Runner
) -> None:
    provider = Provider()
    provider.go_on.clear()  # the last word never comes
    asked_after(town, runner, Leaves(ASKED | {"stream": True}, 3, provider), provider=provider)
    spent, held = town.stands(KEY)
    assert held == 0
    assert INPUT < spent < ESTIMATE


def test_a_client_that_leaves_before_the_answer_pays_the_input(town: Town, runner: asyncio.Runner) -> None:
    provider = Provider()
    provider.go_on.clear()
    asked_after(town, runner, Leaves(ASKED, 0, provider), provider=provider)
    spent, held = town.stands(KEY)
    assert held == 0
    assert 0 < spent <= INPUT + 2


def test_a_client_that_names_its_calls_alike_or_forges_their_mark_gets_none_for_nothing(
    town: Town, runner: asyncio.Runner
) -> None:
    named = HEADERS | {"x-litellm-call-id": "mine"}

    body = ASKED | {"max_tokens": 200, "metadata": {"mark": "mine"}, "litellm_call_id": "mine"}
    provider = Provider()
    provider.go_on.clear()

    async def main(client: httpx.AsyncClient) -> list[int]:
        asking = [asyncio.ensure_future(client.post(CHAT, json=body, headers=named)) for _ in range(4)]
        await all_decided(provider, asking)
        provider.go_on.set()
        return sorted(each.status_code for each in await asyncio.gather(*asking))

    (statuses,) = asked_after(town, runner, main, provider=provider)
    assert statuses == [200, 200, 422, 422]  # each holds 408 of 1,000
    assert town.stands(KEY) == (22, 0)


def test_calls_at_once_through_the_proxy_never_pass_a_budget_together(town: Town, runner: asyncio.Runner) -> None:
    async def at_once(client: httpx.AsyncClient) -> list[int]:
        answers = await asyncio.gather(*(client.post(CHAT, json=ASKED) for _ in range(20)))
        return [each.status_code for each in answers]

    provider = Provider()
    (statuses,) = asked_after(town, runner, at_once, provider=provider)
    assert set(statuses) <= {200, 422}
    assert town.stands(KEY) == (11 * provider.calls, 0)
    assert 11 * provider.calls <= CAP


def test_a_request_of_which_a_budget_needs_what_it_has_not_is_told_in_a_plain_sentence(
    town: Town, runner: asyncio.Runner
) -> None:
    (told,) = asked_after(town, runner, chat(), counters=lambda caller: [f"llm:{caller['team']}"])
    assert told.status_code == 400
    assert "This call has no team, and a budget is named by it" in told.json()["error"]["message"]


def test_a_subclass_that_litellm_would_not_ask_is_not_offered() -> None:
    assert getattr(LedgerBudgets, "__final__", False)
    for name in ("async_pre_call_hook", "async_post_call_streaming_iterator_hook"):
        assert name in vars(LedgerBudgets)
