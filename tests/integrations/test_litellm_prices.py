"""What a LiteLLM call may cost before it, by LiteLLM's own list of prices."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.litellm_estimates import _estimated, estimated
from integrations.litellm_prices import Asked, cost_of

HELLO = [{"role": "user", "content": "hello"}]
SHARP = {"url": "https://x.invalid/a.png", "detail": "high"}
PICTURE = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": SHARP}]}]}
RESPONSES_PICTURE = {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": SHARP["url"]}]}]}
_SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
ANTHROPICS_PICTURE = {"messages": [{"role": "user", "content": [{"type": "image", "source": _SOURCE}]}]}
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


@pytest.mark.parametrize("picture", [PICTURE, RESPONSES_PICTURE, ANTHROPICS_PICTURE])
def test_a_picture_counts_as_many_tokens_as_any_model_makes_of_one_without_asking_the_network_for_it(
    picture: dict[str, Any],
) -> None:
    found = estimated("tokens", "gpt-4o", {**picture, "max_tokens": 1})
    assert found is not None
    assert found[1] >= 50_000
    smaller = estimated("tokens", "gpt-4o", {**picture, "max_tokens": 1}, picture=1_445)
    assert smaller is not None
    assert found[1] - smaller[1] == 50_000 - 1_445


OWN: dict[str, Any] = {"input_cost_per_token": 1e-3, "output_cost_per_token": 2e-3}
ASKED: dict[str, Any] = {"messages": HELLO, "max_tokens": 10}


@pytest.mark.parametrize(
    "priced",
    [OWN, {"model_info": OWN}, {"metadata": {"model_info": OWN}}, dict.fromkeys(OWN, "1e-3") | OWN],
)
@pytest.mark.parametrize("model", ["gpt-4o", "openai/not-listed"])
def test_the_prices_of_a_call_itself_come_before_those_that_are_listed(model: str, priced: dict[str, Any]) -> None:
    found = estimated("micro-dollars", model, ASKED | priced, own=True)
    assert found is not None
    assert (found[0].input, found[1]) == (8_000, 8_000 + 10 * 2_000)


def test_the_prices_in_the_body_of_a_request_to_the_proxy_count_for_nothing() -> None:
    free: dict[str, Any] = dict.fromkeys(OWN, 0)
    assert most("gpt-4o", **ASKED, **free, model_info=free) == INPUT + 100
    assert most("openai/not-listed", **ASKED, **OWN) is None


def test_a_price_by_the_second_is_none_by_the_token() -> None:
    assert estimated("micro-dollars", "gpt-4o", ASKED | {"output_cost_per_second": 1e-3}, own=True) is None


def test_a_deployment_of_which_only_one_direction_has_a_price_of_its_own_has_the_listed_one_for_the_other() -> None:
    found = estimated("micro-dollars", "gpt-4o", ASKED | {"input_cost_per_token": 1e-3}, own=True)
    assert found is not None
    assert found[1] == 8_000 + 100
    alone = estimated("micro-dollars", "openai/not-listed", ASKED | {"input_cost_per_token": 1e-3}, own=True)
    assert alone is None


CACHED = [{"role": "user", "content": [{"type": "text", "text": WORDS, "cache_control": {"type": "ephemeral"}}]}]
UNCACHED = [{"role": "user", "content": [{"type": "text", "text": WORDS}]}]


@pytest.mark.parametrize(
    ("model", "usual", "dear", "times"),
    [
        ("gpt-4.1", {}, {"service_tier": "priority"}, 1.7),
        ("gpt-4.1", {"service_tier": "default"}, {"service_tier": "auto"}, 1.7),
        ("claude-sonnet-4-5", {"messages": UNCACHED}, {"messages": CACHED}, 1.8),
        ("claude-sonnet-4-5", {}, {"cache_control_injection_points": [{"location": "message"}]}, 1.2),
        ("claude-opus-4-8", {}, {"speed": "fast"}, 2),
        ("gemini/gemini-2.5-pro", {}, {"messages": [{"role": "user", "content": "word " * 210_000}]}, 2),
    ],
)
def test_of_several_prices_the_dearest_that_may_apply_counts(
    model: str, usual: dict[str, Any], dear: dict[str, Any], times: float
) -> None:
    usually, dearest = (estimated("micro-dollars", model, {**ASKED, "max_tokens": 1, **more}) for more in (usual, dear))
    assert usually is not None
    assert dearest is not None
    assert dearest[0].input / dearest[0].prompt >= times * usually[0].input / usually[0].prompt / 1.1


@pytest.mark.parametrize("spoken", [{"modalities": ["text", "audio"]}, {"audio": {"voice": "a"}}])
def test_an_answer_that_is_spoken_has_no_price_of_text(spoken: dict[str, Any]) -> None:
    assert most("gpt-4o", **ASKED) is not None
    assert most("gpt-4o", **ASKED, **spoken) is None


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
    assert _estimated("micro-dollars", priced, {}, 5, 10, 1) == (5, 15)
    assert _estimated("micro-dollars", priced, {}, 5, most, 1) is None
