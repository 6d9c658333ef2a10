"""What a LiteLLM call did cost, in micro-dollars or in tokens.

Rule 1: prices and token counts are LiteLLM's own, of the deployment that answered.
Rule 2: an unknown cost is None and never 0: then the estimate counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import litellm
from exact_counter.budgets import shown
from exact_counter.errors import InvalidChange

UNITS = ("micro-dollars", "tokens")
PRICED = "input_cost_per_token"


def micro_dollars(dollars: float) -> int:
    """Whole micro-dollars, rounded up, but for the noise of floats; raises InvalidChange for
    what is no cost.
    """
    given: object = dollars
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= dollars <= 10**12:
        raise InvalidChange(f"{shown(dollars)} dollars are no cost: a number of 0 or more.")
    return math.ceil(round(dollars * 1_000_000, 6))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call asked for. prompt: its tokens; input: what they cost, with nothing answered."""

    unit: str
    model: str
    prompt: int
    input: int


def cost_of(asked: Asked, response: Any, logging: Any) -> int | None:
    """What an answer cost; None when that is unknown. logging: the call's own object of LiteLLM."""
    details = getattr(logging, "model_call_details", None) or {}
    if details.get("cache_hit") is True:
        return 0
    with suppress(Exception):  # whatever the price list does, a call that is over is settled
        if asked.unit != "tokens" and (
            dollars := logging.response_cost_calculator(result=response)
        ):
            return micro_dollars(dollars)
    usage = field(response, "usage")
    prompt, completion = (
        sum(number(field(usage, name)) or 0 for name in _told_by(usage, *all)) for all in USAGE
    )
    model, provider = details.get("model"), details.get("custom_llm_provider")
    names = [f"{provider}/{model}", model, asked.model] if model else [asked.model]
    if prompt or completion:
        return _tokens_cost(asked.unit, names, prompt or asked.prompt, completion)
    # Of a stream without its usage LiteLLM says 0 tokens.
    text = "".join(_texts(response))
    answered = (
        _tokens_cost(asked.unit, names, 0, litellm.token_counter(model=asked.model, text=text))
        if text
        else None
    )
    return None if answered is None else asked.input + answered


USAGE = (
    ("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    ("completion_tokens", "output_tokens"),
)
"""OpenAI's name of what went in, and what came out, or Anthropic's, who tells what was cached
beside.
"""


def _told_by(usage: Any, one: str, *others: str) -> Sequence[str]:
    return others if field(usage, one) is None else (one,)


def _texts(response: Any) -> Iterator[str]:
    for choice in field(response, "choices") or ():
        message = field(choice, "message")
        for part in (field(message, "content"), field(message, "tool_calls")):
            if part:
                yield str(part)


def streamed_cost(asked: Asked, chunks: Sequence[Any], logging: Any) -> int | None:
    """What the chunks of a stream cost, however many came; None when that is unknown."""
    with suppress(Exception):  # chunks of another form, such as bytes
        answer = litellm.stream_chunk_builder(
            list(chunks), count_prompt_tokens=lambda: asked.prompt
        )
        return cost_of(asked, answer, logging)
    return None


def logged_cost(asked: Asked, kwargs: Mapping[str, Any], response: Any) -> int | None:
    """What a log event of an answer says that it cost; None when that is unknown. 0 stands there
    for an unknown price, too.
    """
    if asked.unit != "tokens" and kwargs.get("response_cost"):
        return _told(kwargs["response_cost"])
    return cost_of(asked, response, SimpleNamespace(model_call_details=kwargs))


def billed(unit: str, told: Mapping[str, Any]) -> int:
    """What a failure is said to have cost."""
    if unit == "tokens":
        return number(field(told.get("combined_usage_object"), "total_tokens")) or 0
    return _told(told.get("response_cost")) or 0


def _told(dollars: Any) -> int | None:
    """What a hook says; None where that is no cost."""
    with suppress(InvalidChange):
        return micro_dollars(dollars)
    return None


def _tokens_cost(unit: str, names: Sequence[str], prompt: int, completion: int) -> int | None:
    """By the first of these names under which LiteLLM lists a price."""
    if unit == "tokens":
        return prompt + completion
    for name in names:
        # LiteLLM raises several kinds for a model that it has no price of
        with suppress(Exception):
            dollars = sum(
                litellm.cost_per_token(
                    model=name, prompt_tokens=prompt, completion_tokens=completion
                )
            )
            # It takes a price that is not listed for 0.
            if (
                dollars
                or litellm.model_cost[litellm.get_model_info(name)["key"]].get(PRICED) is not None
            ):
                return micro_dollars(dollars)
    return None


def number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
