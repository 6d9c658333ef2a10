"""What a LiteLLM call may cost, before it, and what it did cost, after it, in micro-dollars or in tokens.

Rule 1: prices and token counts are LiteLLM's own, of the deployment that answered.
Rule 2: an estimate is of the dearest deployment that the model's name may reach, with all the output it may give.
Rule 3: what cannot be told is None and never 0: then what the operator said counts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import litellm

from integrations.litellm_tokens import answers_of, field, is_paid_by_tokens, longest_of, number, prompt_of
from ledger.errors import InvalidChange, shown

UNITS = ("micro-dollars", "tokens")
PRICES = ("input_cost_per_token", "output_cost_per_token")


def micro_dollars(dollars: float) -> int:
    """Whole micro-dollars, rounded up, but for the noise of floats; raises InvalidChange for what is no cost."""
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


def estimated(unit: str, model: str, data: Mapping[str, Any]) -> tuple[Asked, int] | None:
    """What a request asks for, and what it costs with all that may be answered; None when that cannot be told."""
    more = data.get("extra_body")
    data = {**data, **more} if isinstance(more, Mapping) else data
    if not is_paid_by_tokens(data):
        return None
    prompt, answers, longest = prompt_of(model, data), answers_of(data), longest_of(data)
    if prompt is None or answers is None:
        return None
    costs = [_estimated(unit, each, prompt, longest, answers) for each in _deployments(model)]
    input, most = max((each for each in costs if each), key=lambda each: each[1], default=(None, None))
    return None if input is None or most is None else (Asked(unit, model, prompt, input), most)


SEARCHING = ("search", "sonar")
"""In the names of models that search with every call, which is listed beside the price of tokens."""

ANSWERING = ("chat", "completion", "responses")
"""The modes of models whose answer is tokens."""

UNANSWERED = ("embedding", "moderation")
"""Those that are paid by the token, too, and answer none. Pictures, speech, searches are paid by something else."""


def _estimated(
    unit: str, deployment: Mapping[str, Any], prompt: int, asked: int | None, answers: int
) -> tuple[int, int] | None:
    most = _output_max(deployment, asked)
    if most is None:
        return None
    costs = [_tokens_cost(unit, deployment, prompt, each) for each in (0, most * answers)]
    return None if None in costs else (costs[0] or 0, costs[1] or 0)


def cost_of(asked: Asked, response: Any, logging: Any) -> int | None:
    """What an answer cost; None when that cannot be told. logging: the call's own object of LiteLLM."""
    details = getattr(logging, "model_call_details", None) or {}
    if details.get("cache_hit") is True:
        return 0
    with suppress(Exception):  # whatever the price list does, a call that is over is settled
        if asked.unit != "tokens" and (dollars := logging.response_cost_calculator(result=response)):
            return micro_dollars(dollars)
    usage = field(response, "usage")
    prompt, completion = (sum(number(field(usage, name)) or 0 for name in _told_by(usage, *all)) for all in USAGE)
    names = [*_names(details), asked.model]
    if prompt or completion:
        return _first_cost(asked.unit, names, prompt or asked.prompt, completion)
    # A provider that tells no usage of a stream: LiteLLM makes that 0 tokens.
    text = "".join(_texts(response))
    told = _first_cost(asked.unit, names, 0, litellm.token_counter(model=asked.model, text=text)) if text else None
    return None if told is None else asked.input + told


USAGE = (
    ("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    ("completion_tokens", "output_tokens"),
)
"""OpenAI's name of what went in, and what came out, or Anthropic's, who tells what was cached beside."""


def _told_by(usage: Any, one: str, *others: str) -> Sequence[str]:
    return others if field(usage, one) is None else (one,)


def _names(details: Mapping[str, Any]) -> Iterator[str]:
    """What the price of the model that answered may be listed under."""
    if details.get("model"):
        yield f"{details.get('custom_llm_provider')}/{details['model']}"
        yield details["model"]


def _first_cost(unit: str, names: Sequence[str], prompt: int, completion: int) -> int | None:
    costs = (_tokens_cost(unit, {"model": name}, prompt, completion) for name in names)
    return next((cost for cost in costs if cost is not None), None)


def _texts(response: Any) -> Iterator[str]:
    for choice in field(response, "choices") or ():
        message = field(choice, "message")
        for part in (field(message, "content"), field(message, "tool_calls")):
            if part:
                yield str(part)


def streamed_cost(asked: Asked, chunks: Sequence[Any], logging: Any) -> int | None:
    """What the chunks of a stream cost, however many came; None when that cannot be told."""
    with suppress(Exception):  # chunks of another form, such as bytes
        answer = litellm.stream_chunk_builder(list(chunks), count_prompt_tokens=lambda: asked.prompt)
        return cost_of(asked, answer, logging)
    return None


def logged_cost(asked: Asked, kwargs: Mapping[str, Any], response: Any) -> int | None:
    """What a log event of an answer says that it cost; None when that cannot be told. 0 stands there for a price that
    is not known, too.
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


def _tokens_cost(unit: str, deployment: Mapping[str, Any], prompt: int, completion: int) -> int | None:
    if unit == "tokens":
        return prompt + completion
    in_price, out_price = deployment.get(PRICES[0]), deployment.get(PRICES[1])
    with suppress(Exception):  # LiteLLM raises several kinds for a model that it has no price of; a number is too large
        if in_price is not None and out_price is not None:
            return micro_dollars(prompt * in_price + completion * out_price)
        name = deployment["model"]
        dollars = sum(litellm.cost_per_token(model=name, prompt_tokens=prompt, completion_tokens=completion))
        # It takes a price that is not listed for 0.
        listed = dollars or litellm.model_cost[litellm.get_model_info(name)["key"]].get(PRICES[0]) is not None
        return micro_dollars(dollars) if listed else None
    return None


def _deployments(model: str) -> Sequence[Mapping[str, Any]]:
    """What a name stands for: in the proxy that of each deployment of its router, else itself."""
    router = getattr(sys.modules.get("litellm.proxy.proxy_server"), "llm_router", None)
    found: Iterable[Any] = (router.get_model_list(model_name=model) or ()) if router is not None else ()
    own = [dict(each["litellm_params"]) for each in found]
    return [each if "*" not in each["model"] else {**each, "model": model} for each in own] or [{"model": model}]


def _output_max(deployment: Mapping[str, Any], asked: int | None) -> int | None:
    """The most tokens of an answer; None where that is not known, or something else than tokens is paid for."""
    info: Mapping[str, Any] = {}
    with suppress(Exception):
        info = litellm.get_model_info(deployment["model"])
    searches = info.get("search_context_cost_per_query") and any(name in deployment["model"] for name in SEARCHING)
    if searches:
        return None
    if info.get("mode") in UNANSWERED:
        return 0
    if (info.get("mode") or ANSWERING[0]) not in ANSWERING:
        return None
    return asked if asked is not None else number(info.get("max_output_tokens"))
