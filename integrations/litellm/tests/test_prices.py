"""What a LiteLLM call may cost before it, by LiteLLM's own list of prices, and what it did cost
after it.
"""

from __future__ import annotations

from typing import Any

import pytest
from exact_counter.errors import InvalidInput

from budgets_lab.provider import HELLO
from ledger_litellm.estimates import estimated
from ledger_litellm.prices import Asked, cost_of, micro_dollars
from ledger_litellm.requests import mark_of

WORDS = "word " * 1_000
SHARP = {"url": "https://x.invalid/a.png", "detail": "high"}
OWN = {"input_cost_per_token": 1e-3, "output_cost_per_token": 2e-3}
ASKED: dict[str, Any] = {"messages": HELLO, "max_tokens": 10}
INPUT = 20  # micro-dollars of HELLO to gpt-4o, whose answers are 10 a token


def most(
    model: str, unit: str = "micro-dollars", *, own: bool = False, **request: Any
) -> int | None:
    found = estimated(unit, model, request, own=own)
    return found and found[1]


def test_an_estimate_is_of_all_answers_at_their_longest() -> None:
    hello: dict[str, Any] = {"messages": HELLO}
    requests: list[tuple[str, dict[str, Any], int]] = [
        ("gpt-4o", ASKED, INPUT + 100),
        ("gpt-4o", ASKED | {"n": 3}, INPUT + 300),
        ("gpt-4o", ASKED | {"max_completion_tokens": 1}, INPUT + 100),
        ("gpt-4o", hello | {"max_completion_tokens": 1, "max_tokens": "10"}, INPUT + 16_384 * 10),
        (
            "gpt-4o",
            hello | {"max_tokens": 1, "extra_body": {"max_tokens": 10, "n": 3}},
            INPUT + 300,
        ),
        ("gpt-4o", hello, INPUT + 16_384 * 10),
        ("gpt-3.5-turbo-instruct", {"prompt": "a", "max_tokens": 100}, 202),
        ("gpt-3.5-turbo-instruct", {"prompt": ["a", "b"], "max_tokens": 100}, 409),
        ("gpt-3.5-turbo-instruct", {"prompt": [1, 2, 3], "max_tokens": 100}, 214),
        ("gpt-3.5-turbo-instruct", {"prompt": "a", "max_tokens": 100, "best_of": 3}, 602),
        ("text-embedding-3-small", {"input": "hello " * 100}, 3),
        ("omni-moderation-latest", {"input": "hello"}, 0),
    ]
    assert [most(model, **request) for model, request, _ in requests] == [
        cost for _, _, cost in requests
    ]


def test_a_price_not_by_the_token_is_unknown_and_not_0() -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("gpt-image-1", {"prompt": "a cat", "max_tokens": 10}),
        ("tts-1", {"input": "hello"}),
        ("whisper-1", {}),
        (
            "gpt-4o",
            {"messages": [{"role": "user", "content": [{"type": "no such"}]}], "max_tokens": 1},
        ),
        ("twelvelabs.marengo-embed-2-7-v1:0", {"input": "hello"}),
        ("no/such", {"messages": HELLO}),
        ("gpt-4o", ASKED | {"n": 5.0}),
        ("gpt-4o", ASKED | {"max_tokens": 10**19}),
        ("gpt-4o", ASKED | {"web_search_options": {}}),
        ("gpt-4o", ASKED | {"extra_body": {"web_search_options": {}}}),
        ("gpt-4o", ASKED | {"tools": "a search"}),
        ("gpt-4o", ASKED | {"modalities": ["text", "audio"]}),
        ("gpt-4o", ASKED | {"audio": {"voice": "a"}}),
        ("gpt-4o", {"input": "hello", "tools": [{"type": "web_search_preview"}]}),
        (
            "anthropic/claude-sonnet-4-5",
            ASKED | {"tools": [{"type": "web_search_20250305", "name": "s"}]},
        ),
        ("gemini/gemini-2.5-pro", ASKED | {"tools": [{"googleSearch": {}}]}),
        ("gpt-4o-search-preview", ASKED),
        ("perplexity/sonar-pro", ASKED),
        # in the body of a request to the proxy: its client wrote it
        ("openai/not-listed", ASKED | OWN),
    ]
    assert [request for model, request in requests if most(model, **request) is not None] == []
    by_the_second: dict[str, Any] = {"output_cost_per_second": 1e-3}
    assert most("gpt-4o", own=True, **ASKED, **by_the_second) is None


def test_whatever_a_request_sends_is_in_its_estimate() -> None:
    parts: list[dict[str, Any]] = [
        {"messages": HELLO, "system": WORDS},
        {
            "messages": HELLO,
            "tools": [{"name": "of Anthropic", "description": WORDS, "input_schema": {}}],
        },
        {"messages": HELLO, "functions": [{"name": "old", "description": WORDS}]},
        {"messages": HELLO, "response_format": {"json_schema": {"description": WORDS}}},
        {"input": "hello", "instructions": WORDS},
        {"input": "hello", "tools": [{"type": "function", "name": "f", "description": WORDS}]},
        {"prompt": "hello", "suffix": WORDS},
    ]
    assert [
        part for part in parts if (most("gpt-4o", "tokens", max_tokens=1, **part) or 0) <= 1_000
    ] == []
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    for place, picture in (
        ("messages", {"type": "image_url", "image_url": SHARP}),
        ("input", {"type": "input_image", "image_url": SHARP["url"]}),
        ("messages", {"type": "image", "source": source}),
    ):
        request = {place: [{"role": "user", "content": [picture]}], "max_tokens": 1}
        usual, smaller = (
            estimated("tokens", "gpt-4o", request),
            estimated("tokens", "gpt-4o", request, picture=1_445),
        )
        assert usual
        assert smaller
        assert usual[1] - smaller[1] == 50_000 - 1_445


def test_the_dearest_price_that_may_apply_counts() -> None:
    """And a call's own price comes before those that are listed."""
    cached = [
        {
            "role": "user",
            "content": [{"type": "text", "text": WORDS, "cache_control": {"type": "ephemeral"}}],
        }
    ]
    uncached = [{"role": "user", "content": [{"type": "text", "text": WORDS}]}]
    dearer: list[tuple[str, dict[str, Any], dict[str, Any], float]] = [
        ("gpt-4.1", {}, {"service_tier": "priority"}, 1.7),
        ("gpt-4.1", {"service_tier": "default"}, {"service_tier": "auto"}, 1.7),
        (CLAUDE, {"messages": uncached}, {"messages": cached}, 1.8),
        (CLAUDE, {}, {"cache_control_injection_points": [{"location": "message"}]}, 1.2),
        ("claude-opus-4-8", {}, {"speed": "fast"}, 2),
        (
            "gemini/gemini-2.5-pro",
            {},
            {"messages": [{"role": "user", "content": "word " * 210_000}]},
            2,
        ),
    ]
    for model, usual, dear, times in dearer:
        found = [estimated("micro-dollars", model, ASKED | more) for more in (usual, dear)]
        prices = [asked.input / asked.prompt for asked, _ in filter(None, found)]
        assert prices[1] >= times * prices[0] / 1.1, model
    for priced in (
        OWN,
        {"model_info": OWN},
        {"metadata": {"model_info": OWN}},
        dict.fromkeys(OWN, "1e-3") | OWN,
    ):
        assert most("openai/not-listed", own=True, **ASKED, **priced) == 8_000 + 10 * 2_000


CLAUDE = "claude-sonnet-4-5"


def test_cached_input_counts_and_its_answer_whole() -> None:
    """Anthropic's own form tells it beside what was not; OpenAI's tells of what went in all."""
    cached = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 5_000}
    asked = Asked("tokens", CLAUDE, 8, 8)
    assert (
        cost_of(asked, {"usage": {"input_tokens": 10, "output_tokens": 5, **cached}}, None) == 5_115
    )
    assert (
        cost_of(asked, {"usage": {"prompt_tokens": 5_110, "completion_tokens": 5, **cached}}, None)
        == 5_115
    )
    assert cost_of(asked, {"usage": {"prompt_tokens": 0, "completion_tokens": 5}}, None) == 13
    assert (
        cost_of(Asked("micro-dollars", "no/such", 3, 0), {"usage": {"prompt_tokens": 3}}, None)
        is None
    )
    assert cost_of(Asked("micro-dollars", "gpt-4o", 8, INPUT), {}, None) is None


def test_what_is_no_cost_or_no_mark_is_none() -> None:
    assert [micro_dollars(dollars) for dollars in (0, 0.00022500000000000002, 0.0000001, 3)] == [
        0,
        225,
        1,
        3_000_000,
    ]
    for wrong in (-0.1, float("nan"), float("inf"), True, "1"):
        with pytest.raises(InvalidInput, match="dollars are no cost"):
            micro_dollars(wrong)  # type: ignore[arg-type]
    # a caller may send anything in the place of LiteLLM's own parameters
    for sent in ("metadata", ["metadata"], 1):
        assert mark_of({"litellm_params": sent, "metadata": {"ours": "mark"}}, "ours") == "mark"
        assert mark_of({"litellm_params": sent}, "ours") is None
