"""What a LiteLLM call may cost before it, by LiteLLM's own list of prices."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.litellm_prices import Asked, _estimated, cost_of, estimated

HELLO = [{"role": "user", "content": "hello"}]
SHARP = {"url": "https://x.invalid/a.png", "detail": "high"}
PICTURE = [{"role": "user", "content": [{"type": "image_url", "image_url": SHARP}]}]
WORDS = "word " * 1_000
INPUT = 20
"""Micro-dollars of HELLO to gpt-4o, whose answers are 10 a token."""


def most(model: str, unit: str = "micro-dollars", **request: Any) -> int | None:
    found = estimated(unit, model, request)
    return found and found[1]


@pytest.mark.parametrize(
    ("request_", "cost"),
    [
        ({"messages": HELLO, "max_tokens": 10}, INPUT + 100),
        ({"messages": HELLO, "max_tokens": 10, "n": 3}, INPUT + 300),
        ({"messages": HELLO, "max_completion_tokens": 1, "max_tokens": 10}, INPUT + 100),
        ({"messages": HELLO, "max_completion_tokens": 1, "max_tokens": "10"}, INPUT + 16_384 * 10),
        ({"messages": HELLO, "max_tokens": 1, "extra_body": {"max_tokens": 10, "n": 3}}, INPUT + 300),
        ({"messages": HELLO}, INPUT + 16_384 * 10),
    ],
)
def test_an_estimate_is_of_all_answers_at_their_longest(request_: dict[str, Any], cost: int) -> None:
    assert most("gpt-4o", **request_) == cost


def test_each_of_several_prompts_is_answered_and_the_best_is_chosen_of_answers_that_are_paid() -> None:
    one = most("gpt-3.5-turbo-instruct", prompt="a", max_tokens=100) or 0
    assert (most("gpt-3.5-turbo-instruct", prompt=["a", "b"], max_tokens=100) or 0) > 2 * one - 10
    assert (most("gpt-3.5-turbo-instruct", prompt=[1, 2, 3], max_tokens=100) or 0) < one + 30
    assert (most("gpt-3.5-turbo-instruct", prompt="a", max_tokens=100, best_of=3) or 0) > 3 * one - 10


@pytest.mark.parametrize(
    ("model", "request_"),
    [
        ("gpt-image-1", {"prompt": "a cat"}),
        ("gpt-image-1", {"prompt": "a cat", "max_tokens": 10}),
        ("tts-1", {"input": "hello"}),
        ("whisper-1", {}),
        ("gpt-4o", {"messages": [{"role": "user", "content": [{"type": "no such"}]}], "max_tokens": 1}),
        ("twelvelabs.marengo-embed-2-7-v1:0", {"input": "hello"}),
        ("no/such", {"messages": HELLO}),
        ("gpt-4o", {"messages": HELLO, "max_tokens": 1, "n": 5.0}),
        ("gpt-4o", {"messages": HELLO, "web_search_options": {}}),
        ("gpt-4o", {"messages": HELLO, "extra_body": {"web_search_options": {}}}),
        ("gpt-4o", {"input": "hello", "tools": [{"type": "web_search_preview"}]}),
        ("gpt-4o", {"messages": HELLO, "tools": "a search"}),
        ("anthropic/claude-sonnet-4-5", {"messages": HELLO, "tools": [{"type": "web_search_20250305", "name": "s"}]}),
        ("gemini/gemini-2.5-pro", {"messages": HELLO, "tools": [{"googleSearch": {}}]}),
        ("gpt-4o-search-preview", {"messages": HELLO, "max_tokens": 1}),
        ("perplexity/sonar-pro", {"messages": HELLO, "max_tokens": 1}),
    ],
)
def test_what_is_not_paid_by_the_token_or_cannot_be_counted_is_not_known_and_not_0(
    model: str, request_: dict[str, Any]
) -> None:
    assert estimated("micro-dollars", model, request_) is None


@pytest.mark.parametrize(
    "request_",
    [
        {"messages": HELLO, "system": WORDS},
        {"messages": HELLO, "tools": [{"name": "of Anthropic", "description": WORDS, "input_schema": {}}]},
        {"messages": HELLO, "functions": [{"name": "old", "description": WORDS}]},
        {"messages": HELLO, "response_format": {"json_schema": {"description": WORDS}}},
        {"input": "hello", "instructions": WORDS},
        {"input": "hello", "tools": [{"type": "function", "name": "f", "description": WORDS}]},
        {"prompt": "hello", "suffix": WORDS},
    ],
)
def test_whatever_a_request_sends_is_in_its_estimate(request_: dict[str, Any]) -> None:
    assert (most("gpt-4o", unit="tokens", **request_, max_tokens=1) or 0) > 1_000


def test_an_embedding_costs_its_input_and_what_is_free_costs_nothing() -> None:
    assert most("text-embedding-3-small", input="hello " * 100) == 3
    assert most("text-embedding-3-small", unit="tokens", input="hello") == 1
    assert most("omni-moderation-latest", input="hello") == 0


def test_a_picture_is_counted_without_asking_the_network_for_it() -> None:
    found = most("gpt-4o", messages=PICTURE, max_tokens=1)
    assert found is not None
    assert found > INPUT


def test_what_was_cached_counts_and_an_answer_to_what_was_cached_whole() -> None:
    """Anthropic's own form tells it beside what was not; OpenAI's tells of what went in all."""
    cached = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 5_000}
    asked = Asked("tokens", "claude-sonnet-4-5-20250929", 8, 8)
    assert cost_of(asked, {"usage": {"input_tokens": 10, "output_tokens": 5, **cached}}, None) == 5_115
    assert cost_of(asked, {"usage": {"prompt_tokens": 5_110, "completion_tokens": 5, **cached}}, None) == 5_115
    assert cost_of(asked, {"usage": {"prompt_tokens": 0, "completion_tokens": 5}}, None) == 13


def test_an_answer_of_which_nothing_is_known_is_not_free() -> None:
    assert cost_of(Asked("micro-dollars", "no/such", 3, 0), {"usage": {"prompt_tokens": 3}}, None) is None
    assert cost_of(Asked("micro-dollars", "gpt-4o", 8, INPUT), {}, None) is None


@pytest.mark.parametrize("most", [10**19, 10**400])
def test_an_answer_too_long_for_any_price_has_none_that_is_known(most: int) -> None:
    priced = {"model": "gpt-4o", "input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}
    assert _estimated("micro-dollars", priced, 5, 10, 1) == (5, 15)
    assert _estimated("micro-dollars", priced, 5, most, 1) is None
