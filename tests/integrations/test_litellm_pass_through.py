"""Budgets on the proxy's pass-through routes, which send a request on as it is: to a provider on this computer."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from litellm.proxy.pass_through_endpoints.pass_through_endpoints import HttpPassThroughEndpointHelpers
from litellm.types.passthrough_endpoints.pass_through_endpoints import EndpointType

from tests.integrations.litellm_support import INPUT
from tests.integrations.support import Town
from tests.integrations.test_litellm_proxy import KEY, asked_after, runner

__all__ = ["runner"]  # the proxy, a fixture

MODEL = "claude-sonnet-4-5"  # 3 micro-dollars a token in, 15 out
ASKED: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 20}
USAGE = {"input_tokens": 5, "output_tokens": 3}
COST = 5 * 3 + 3 * 15
ESTIMATE = INPUT * 3 + 20 * 15
ANSWER: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": USAGE,
}
BEGUN: dict[str, Any] = {"content": [], "stop_reason": None, "usage": {"input_tokens": 5, "output_tokens": 1}}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": ANSWER | BEGUN},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 3},
    },
    {"type": "message_stop"},
]


class Upstream(ThreadingHTTPServer):
    """Answers as told, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.status, self.got = 200, list[dict[str, Any]]()


class Answering(BaseHTTPRequestHandler):
    server: Upstream

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.got.append(body)
        kind = "application/json"
        if self.server.status != 200:
            text = json.dumps({"type": "error", "error": {"type": "api_error"}})
        elif body.get("stream"):
            kind = "text/event-stream"
            text = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in EVENTS)
        else:
            text = json.dumps(ANSWER)
        self.send_response(self.server.status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with Upstream() as server:
        monkeypatch.setenv("ANTHROPIC_API_BASE", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def passed_on(**given: Any) -> Any:
    return lambda client: client.post("/anthropic/v1/messages", json=ASKED | given)


@pytest.mark.parametrize(
    ("stream", "kind", "cost"),
    [
        (False, EndpointType.GENERIC, COST),
        (True, EndpointType.ANTHROPIC, COST),
        (True, EndpointType.GENERIC, ESTIMATE),  # LiteLLM reads streams of the provider's own host alone
    ],
)
def test_an_answer_counts_its_cost_or_the_estimate_and_the_provider_is_sent_no_mark(
    runner: asyncio.Runner,
    upstream: Upstream,
    monkeypatch: pytest.MonkeyPatch,
    stream: bool,
    kind: EndpointType,
    cost: int,
) -> None:
    monkeypatch.setattr(HttpPassThroughEndpointHelpers, "get_endpoint_type", lambda *_: kind)
    town = Town()
    (told,) = asked_after(town, runner, passed_on(stream=stream))
    assert told.status_code == 200, told.text
    assert upstream.got == [ASKED | {"stream": stream}]
    assert town.stands(KEY) == (cost, 0)


def test_a_refusal_asks_no_provider(runner: asyncio.Runner, upstream: Upstream) -> None:
    town = Town()
    (told,) = asked_after(town, runner, passed_on(max_tokens=1_000))
    assert told.status_code == 422, told.text
    assert (upstream.got, town.stands(KEY)) == ([], (0, 0))


def test_a_provider_that_fails_on_a_pass_through_route_gives_all_of_it_back(
    runner: asyncio.Runner, upstream: Upstream
) -> None:
    town, upstream.status = Town(), 500
    (told,) = asked_after(town, runner, passed_on())
    assert told.status_code == 500, told.text
    assert town.stands(KEY) == (0, 0)
