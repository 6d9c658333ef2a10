"""Budgets on LiteLLM's hooks in its real proxy, in this process: requests over ASGI, with mock
responses.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import httpx
import litellm
import pytest
from lab.histories.parts.budgets import TwoRegions
from litellm.proxy import proxy_server

from budgets_lab.provider import INPUT, MODEL, Provider, all_ended, hooks, installed

KEY = "llm:litellm_proxy_master_key"
CONFIG = """
model_list:
  - {model_name: small, litellm_params: {model: ours/small}}
  - {model_name: falls, litellm_params: {model: gpt-4o, mock_response: litellm.RateLimitError}}
  - {model_name: dear, litellm_params: {model: ours/dear}}
  - model_name: own-price
    litellm_params:
      {model: ours/other, input_cost_per_token: 0.000003, output_cost_per_token: 0.000004}
router_settings:
  {num_retries: 1, retry_after: 0, fallbacks: [{falls: [dear]}], disable_cooldowns: true}
general_settings: {master_key: sk-of-a-test, cancel_on_disconnect: true}
"""
HEADERS = {"Authorization": "Bearer sk-of-a-test"}
CHAT = "/v1/chat/completions"
ASKED: dict[str, Any] = {
    "model": "small",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 100,
}
ESTIMATE = INPUT + 2 * 100


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asyncio.Runner]:
    """One loop for all tests, because the proxy keeps things of its loop."""
    config = tmp_path_factory.mktemp("proxy") / "config.yaml"
    config.write_text(CONFIG)
    with installed(), asyncio.Runner() as runner:
        runner.run(proxy_server.initialize(config=str(config)))
        yield runner


def answers_after(
    world: TwoRegions,
    runner: asyncio.Runner,
    request: Any,
    provider: Provider | None = None,
    **given: Any,
) -> Any:
    """What a request, a function of a client, answered; then each call has ended."""
    times = given.pop("times", 1)
    budgets = hooks(world, **{"counters": lambda caller: [f"llm:{caller['key']}"], **given})

    async def main() -> Any:
        # as the proxy does at its start
        litellm.logging_callback_manager.add_litellm_async_success_callback(budgets)
        litellm.logging_callback_manager.add_litellm_async_failure_callback(budgets)
        transport = httpx.ASGITransport(app=proxy_server.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://proxy", headers=HEADERS
        ) as client:
            answer = await request(client)
        await all_ended(budgets)
        return answer

    with installed(*[budgets] * times, provider=provider):
        return runner.run(main())


def post(path: str = CHAT, **given: Any) -> Any:
    return lambda client: client.post(
        path, json={name: value for name, value in (ASKED | given).items() if value}
    )


def test_a_request_counts_its_cost_and_a_failed_one_nothing(
    runner: asyncio.Runner,
) -> None:
    slower, gone = (
        litellm.RateLimitError("slower", "ours", MODEL),
        litellm.InternalServerError("gone", "ours", MODEL),
    )
    outcomes: list[tuple[dict[str, Any], list[Exception], int, int]] = [
        ({}, [], 200, 11),
        ({"model": "own-price"}, [], 200, 5 * 3 + 3 * 4),
        ({"model": "falls", "max_tokens": 50}, [], 200, 5 + 3 * 20),
        ({}, [slower], 200, 11),
        ({}, [gone] * 5, 500, 0),
        ({"max_tokens": 1_000}, [], 422, 0),
    ]
    for given, failures, status, spent in outcomes:
        world, provider = TwoRegions(1_000), Provider(*failures)
        answer = answers_after(world, runner, post(**given), provider)
        assert (answer.status_code, world.stands(KEY)) == (status, (spent, 0)), (given, answer.text)
        assert (provider.calls == 0) == (status == 422)


def test_a_refusal_is_the_proxys_own_budget_error(
    world: TwoRegions, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litellm, "budget_exceeded_status_code", 429)
    no_team: dict[str, Any] = {"counters": lambda caller: [f"llm:{caller['team']}"]}
    for given, status, message in (
        ({}, 429, f"The budget {KEY} has 1,000 left, and this call may cost 2,008"),
        (no_team, 400, "This call has no team, and a budget is named by it"),
    ):
        answer = answers_after(world, runner, post(max_tokens=1_000), **given)
        assert (answer.status_code, message in answer.json()["error"]["message"]) == (status, True)


def test_an_object_that_is_installed_twice_reserves_once(
    world: TwoRegions, runner: asyncio.Runner
) -> None:
    answers_after(world, runner, post(max_tokens=300), times=2)  # 608 of 1,000
    assert world.stands(KEY) == (11, 0)
    answers_after(world, runner, post(stream=True))
    once = world.spent(KEY) - 11
    answers_after(world, runner, post(stream=True), times=2)
    assert world.stands(KEY) == (11 + 2 * once, 0)


def test_all_retries_of_a_request_share_one_reservation(
    world: TwoRegions, runner: asyncio.Runner
) -> None:
    held: list[int] = []

    class WatchedProvider(Provider):
        async def acompletion(self, *args: Any, **kwargs: Any) -> Any:
            held.append(world.held(KEY))
            return await super().acompletion(*args, **kwargs)

    provider = WatchedProvider(litellm.RateLimitError("slower", "ours", MODEL))
    assert answers_after(world, runner, post(max_tokens=300), provider).status_code == 200
    assert (held, world.stands(KEY)) == ([INPUT + 600] * 2, (11, 0))


def test_a_stream_counts_all_of_it_and_other_routes_reserve_too(
    world: TwoRegions, runner: asyncio.Runner
) -> None:
    responses = post(
        "/v1/responses", messages=None, max_tokens=None, input="hello", max_output_tokens=100
    )
    for request in (post(stream=True), responses, post("/v1/messages")):
        before = world.spent(KEY)
        answer = answers_after(world, runner, request)
        assert answer.status_code == 200, answer.text
        assert (world.held(KEY), 0 < world.spent(KEY) - before < ESTIMATE) == (0, True)


def leaving(pieces: int, provider: Provider) -> Any:
    """A client that sends a request and leaves, when the provider is called or after so many
    pieces of the answer.
    """
    body = json.dumps(ASKED | {"stream": pieces > 0}).encode()
    requests = [{"type": "http.request", "body": body, "more_body": False}]
    came, leaves = itertools.count(1), asyncio.Event()

    async def receive() -> dict[str, Any]:
        if requests:
            return requests.pop()
        await (leaves.wait() if pieces else provider.called())
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body" and message.get("body") and next(came) == pieces:
            leaves.set()

    async def client(_: Any) -> None:
        headers = [
            (b"authorization", HEADERS["Authorization"].encode()),
            (b"content-type", b"application/json"),
        ]
        of_asgi = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "query_string": b"",
        }
        place = {
            "method": "POST",
            "scheme": "http",
            "path": CHAT,
            "raw_path": CHAT.encode(),
            "root_path": "",
        }
        ends = {"client": ("127.0.0.1", 1), "server": ("proxy", 80)}
        async with asyncio.timeout(60):
            await proxy_server.app({**of_asgi, **place, **ends, "headers": headers}, receive, send)

    return client


def test_a_client_that_leaves_pays_the_stream_or_the_input(
    runner: asyncio.Runner,
) -> None:
    spent: list[int] = []
    for pieces in (0, 3):
        world, provider = TwoRegions(1_000), Provider()
        provider.goes_on.clear()  # the last word never comes
        answers_after(world, runner, leaving(pieces, provider), provider)
        assert world.held(KEY) == 0
        spent.append(world.spent(KEY))
    assert 0 < spent[0] <= INPUT + 2 < spent[1] < ESTIMATE


def test_a_client_that_reuses_names_gets_no_call_for_nothing(
    world: TwoRegions, runner: asyncio.Runner
) -> None:
    body = ASKED | {"max_tokens": 200, "metadata": {"mark": "mine"}, "litellm_call_id": "mine"}
    provider = Provider()
    provider.goes_on.clear()

    async def at_once(client: httpx.AsyncClient) -> list[int]:
        named = HEADERS | {"x-litellm-call-id": "mine"}
        asking = [
            asyncio.ensure_future(client.post(CHAT, json=body, headers=named)) for _ in range(4)
        ]
        while provider.calls + sum(call.done() for call in asking) < 4:
            await asyncio.sleep(0.001)
        provider.goes_on.set()
        return sorted(answer.status_code for answer in await asyncio.gather(*asking))

    # each holds 408 of 1,000
    assert answers_after(world, runner, at_once, provider) == [200, 200, 422, 422]
    assert world.stands(KEY) == (22, 0)


CLAUDE = "claude-sonnet-4-5"  # 3 micro-dollars a token in, 15 out
COST = 5 * 3 + 3 * 15
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": CLAUDE,
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 5, "output_tokens": 3},
}


class Upstream(BaseHTTPRequestHandler):
    """Answers with `status`, and keeps what it was sent."""

    status = 200
    bodies: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.bodies.append(body)
        kind, text = (
            "application/json",
            json.dumps(ANSWER if self.status == 200 else {"type": "error"}),
        )
        if body.get("stream"):
            kind = "text/event-stream"
            text = (
                "event: message_start\ndata: "
                f"{json.dumps({'type': 'message_start', 'message': ANSWER})}\n\n"
            )
        self.send_response(self.status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def test_a_pass_through_route_reserves_and_gives_back_the_rest(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = INPUT * 3 + 20 * 15
    outcomes: list[tuple[dict[str, Any], int, int, set[int]]] = [
        ({}, 200, 200, {COST}),
        # older releases read none but of the provider's own host
        ({"stream": True}, 200, 200, {estimate, COST}),
        ({}, 500, 500, {0}),
        ({"max_tokens": 1_000}, 200, 422, {0}),
    ]
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as server:
        monkeypatch.setenv("ANTHROPIC_API_BASE", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for given, Upstream.status, status, spent in outcomes:
            world, body = TwoRegions(1_000), {"model": CLAUDE, "max_tokens": 20, **given}
            answer = answers_after(world, runner, post("/anthropic/v1/messages", **body))
            counted, held = world.stands(KEY)
            assert (answer.status_code, counted in spent, held) == (status, True, 0), (
                given,
                counted,
                answer.text,
            )
            # the provider is sent no mark
            assert status == 422 or Upstream.bodies.pop() == ASKED | body
        assert Upstream.bodies == []
        server.shutdown()
        thread.join()
