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

from ledger.errors import InvalidChange, shown

UNITS = ("micro-dollars", "tokens")
PRICES = ("input_cost_per_token", "output_cost_per_token")


def micro_dollars(dollars: float) -> int:
    """Whole micro-dollars, rounded up, but for the noise of floats; raises InvalidChange for what is no cost."""
    given: object = dollars
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= dollars <= 10**12:
        raise InvalidChange(f"{shown(dollars)} dollars are no cost: a number of 0 or more.")
    return math.ceil(round(dollars * 1_000_000, 6))


def estimated(unit: str, model: str, data: Mapping[str, Any]) -> tuple[int, int] | None:
    """What a request costs with nothing answered, and with all that may be; None when no price is known."""
    prompt = litellm.token_counter(model=model, **_counted(data)) if _counted(data) else None
    deployments = _deployments(model)
    answers = _number(data.get("n")) or 1
    asked = next((each for name in MOST if (each := _number(data.get(name))) is not None), None)
    costs = [_estimated(unit, each, prompt, asked, answers) for each in deployments]
    known = [each for each in costs if each is not None]
    return max(known, key=lambda each: each[1]) if prompt is not None and known else None


MOST = ("max_completion_tokens", "max_tokens", "max_output_tokens")
"""What a request may call the most tokens of an answer."""

ANSWERING = ("chat", "completion", "responses")
"""The modes of models whose answer is tokens; an embedding's is none."""


def _estimated(
    unit: str, deployment: Mapping[str, Any], prompt: int | None, asked: int | None, answers: int
) -> tuple[int, int] | None:
    most = asked if asked is not None else _output_max(deployment["model"])
    if prompt is None or most is None:
        return None
    costs = [_tokens_cost(unit, deployment, prompt, each) for each in (0, most * answers)]
    return None if None in costs else (costs[0] or 0, costs[1] or 0)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call asked for. input: what it costs with nothing answered; left: when nobody tells its end."""

    unit: str
    model: str
    messages: Any
    input: int
    left: int


def cost_of(asked: Asked, response: Any, logging: Any) -> int | None:
    """What an answer cost; None when that cannot be told. logging: the call's own object of LiteLLM."""
    details = getattr(logging, "model_call_details", None) or {}
    if details.get("cache_hit") is True:
        return 0
    with suppress(Exception):  # whatever the price list does, a call that is over is settled
        if asked.unit != "tokens" and (dollars := logging.response_cost_calculator(result=response)):
            return micro_dollars(dollars)
    usage = _field(response, "usage")
    prompt, completion = (_number(_field(usage, name) or _field(usage, other)) or 0 for name, other in USAGE)
    names = [*_names(details), asked.model]
    if prompt:
        return _first_cost(asked.unit, names, prompt, completion)
    # A provider that tells no usage of a stream: LiteLLM makes that 0 tokens.
    text = "".join(_texts(response))
    told = _first_cost(asked.unit, names, 0, litellm.token_counter(model=asked.model, text=text)) if text else None
    return None if told is None else asked.input + told


USAGE = (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))


def _names(details: Mapping[str, Any]) -> Iterator[str]:
    """What the price of the model that answered may be listed under."""
    if details.get("model"):
        yield f"{details.get('custom_llm_provider')}/{details['model']}"
        yield details["model"]


def _first_cost(unit: str, names: Sequence[str], prompt: int, completion: int) -> int | None:
    costs = (_tokens_cost(unit, {"model": name}, prompt, completion) for name in names)
    return next((cost for cost in costs if cost is not None), None)


def _texts(response: Any) -> Iterator[str]:
    for choice in _field(response, "choices") or ():
        message = _field(choice, "message")
        for part in (_field(message, "content"), _field(message, "tool_calls")):
            if part:
                yield str(part)


def streamed_cost(asked: Asked, chunks: Sequence[Any], logging: Any) -> int | None:
    """What the chunks of a stream cost, however many came; None when that cannot be told."""
    with suppress(Exception):  # chunks of another form, such as bytes
        messages = asked.messages if isinstance(asked.messages, list) else None
        return cost_of(asked, litellm.stream_chunk_builder(list(chunks), messages=messages), logging)
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
        return _number(_field(told.get("combined_usage_object"), "total_tokens")) or 0
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
    if in_price is not None and out_price is not None:
        return micro_dollars(prompt * in_price + completion * out_price)
    with suppress(Exception):  # LiteLLM raises several kinds for a model that it has no price of
        return micro_dollars(
            sum(litellm.cost_per_token(model=deployment["model"], prompt_tokens=prompt, completion_tokens=completion))
        )
    return None


def _deployments(model: str) -> Sequence[Mapping[str, Any]]:
    """What a name stands for: in the proxy that of each deployment of its router, else itself."""
    router = getattr(sys.modules.get("litellm.proxy.proxy_server"), "llm_router", None)
    found: Iterable[Any] = (router.get_model_list(model_name=model) or ()) if router is not None else ()
    own = [dict(each["litellm_params"]) for each in found]
    return [each if "*" not in each["model"] else {**each, "model": model} for each in own] or [{"model": model}]


def _output_max(model: str) -> int | None:
    with suppress(Exception):
        info = litellm.get_model_info(model)
        return _number(info.get("max_output_tokens")) if info.get("mode") in ANSWERING else 0
    return None


def _counted(data: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(data.get("messages"), list):
        return {"messages": data["messages"], "tools": data.get("tools")}
    text = data.get("prompt", data.get("input"))
    return {"text": text if isinstance(text, str) else str(text)} if text is not None else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
