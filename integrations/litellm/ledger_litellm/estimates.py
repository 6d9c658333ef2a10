"""What a LiteLLM call may cost at most, before it, in micro-dollars or in tokens.

Rule 1: an estimate is of the dearest deployment that the model's name may reach, with all the
output it may give.
Rule 2: the prices of a deployment, or of a call of the SDK, come before those that LiteLLM lists.
Those in the body of a request to the proxy count for nothing: its client wrote them.
Rule 3: of several prices of a token the dearest that may apply counts: of any tier where the call
names one, of a prompt of its length, of what it writes to a cache, of reasoning.
Rule 4: an unknown amount is None and never 0: then what the operator said counts, or the call is
refused. Counts are LiteLLM's own. Nothing is fetched.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import litellm

from ledger_litellm.prices import Asked, micro_dollars, number

# In the names of models that search with every call, which is listed beside the price of tokens.
SEARCHING = ("search", "sonar")
ANSWERING = ("chat", "completion", "responses")  # the modes of models whose answer is tokens
# Those that are paid by the token, too, and answer none. Pictures, speech, searches are paid by
# something else.
UNANSWERED = ("embedding", "moderation")
PRICE = re.compile(
    r"((?:in|out)put_cost_per_\w*?token|cache_creation_input_token_cost)"
    r"((?:_above_\d+(?:k_tokens|hr))*)(_[a-z]+)?"
)
"""A price's name: of what, from which length or for how long, and of which tier."""

INPUT, OUTPUT = ("input_cost_per_token", "input_cost_per_image_token"), ("output_cost_per_token",)
REASONING, CACHED = "output_cost_per_reasoning_token", "cache_creation_input_token_cost"

# what a call names where no tier dearer than the usual one may serve it
UNTIERED = (None, "default", "flex")
# With these a call writes to a cache of Claude's; other models do so unasked.
CACHING = {"cache_control", "cache_control_injection_points", "cachePoint"}
SURCHARGED = ("speed", "inference_geo")  # for these LiteLLM lists by how much a model is dearer

# What a request may call the most tokens of an answer. Which one holds is the provider's, so it is
# the largest.
MOST = ("max_completion_tokens", "max_tokens", "max_output_tokens")
# What a request may send beside its messages, prompt or input, and pays for.
BESIDE = ("system", "instructions", "functions", "response_format", "text", "prediction", "suffix")
# The types of tools that the caller runs. Any other the provider may run, such as a search, and
# bill by the call.
OWN = ("function", "custom")
DECLARED = ("function", "name", "functionDeclarations", "function_declarations")
# the types of the parts of a request that are pictures
PICTURES = ("image_url", "input_image", "image")
# More tokens than any model that LiteLLM lists is known to count of one picture: gpt-4o-mini up to
# 48,169.
PICTURE = 50_000


def estimated(
    unit: str, model: str, data: Mapping[str, Any], *, own: bool = False, picture: int = PICTURE
) -> tuple[Asked, int] | None:
    """What a request asks for, and what it costs with all that may be answered; None when that is
    unknown.

    own: the call's prices are the program's own. picture: the most tokens that a picture counts.
    """
    more = data.get("extra_body")
    data = {**data, **more} if isinstance(more, Mapping) else data
    if not is_paid_by_tokens(data):
        return None
    prompt, answers, longest = prompt_of(model, data, picture), answers_of(data), longest_of(data)
    if prompt is None or answers is None:
        return None
    reached = [{**data, "model": model}] if own else _deployments(model)
    costs = [_estimated(unit, each, data, prompt, longest, answers) for each in reached]
    input, most = max(
        (each for each in costs if each), key=lambda each: each[1], default=(None, None)
    )
    return None if input is None or most is None else (Asked(unit, model, prompt, input), most)


def _estimated(
    unit: str,
    deployment: Mapping[str, Any],
    data: Mapping[str, Any],
    prompt: int,
    asked: int | None,
    answers: int,
) -> tuple[int, int] | None:
    """What the input costs alone, and with all answers at their longest."""
    most = _output_max(deployment, asked)
    if most is None:
        return None
    if unit == "tokens":
        return prompt, prompt + most * answers
    prices = _dearest(deployment, data, prompt)
    with suppress(Exception):  # a number is too large
        if prices is not None and (prices[1] is not None or not most):
            input = prompt * prices[0]
            return micro_dollars(input), micro_dollars(input + most * answers * (prices[1] or 0))
    return None


def _dearest(
    deployment: Mapping[str, Any], data: Mapping[str, Any], prompt: int
) -> tuple[float, float | None] | None:
    """The dearest prices of a token that goes in, and of one that comes out; None where no token
    has a price.
    """
    own = _highest([deployment, *_infos(deployment)])
    entries = [*_listed(deployment)]
    prices = {**_highest(entries), **own}
    if prices.get(INPUT[0]) is None or any("per_second" in name for name in own):
        return None
    model = deployment["model"]
    caches = "claude" not in model or any(
        CACHING & found.keys() for found in mappings([data, deployment])
    )
    tiered = any(of.get("service_tier") not in UNTIERED for of in (data, deployment))

    def dearest(*names: str) -> float | None:
        return max(
            (price for name, price in prices.items() if _applies(name, names, prompt, tiered)),
            default=None,
        )

    more = math.prod(_surcharges(entries, data))
    input, output = dearest(*INPUT, *([CACHED] if caches else [])), dearest(*OUTPUT, REASONING)
    return (input or 0) * more, None if output is None else output * more


def _applies(name: str, names: Sequence[str], prompt: int, tiered: bool) -> bool:
    found = PRICE.fullmatch(name)
    if found is None or found[1] not in names or (found[3] and not tiered):
        return False
    return all(
        prompt > 1_000 * int(length) for length in re.findall(r"_above_(\d+)k_tokens", found[2])
    )


def _infos(deployment: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Where else a deployment may have prices: beside its parameters, or in the metadata of its
    call.
    """
    for of in (deployment, deployment.get("metadata"), deployment.get("litellm_metadata")):
        if isinstance(of, Mapping) and isinstance(info := of.get("model_info"), Mapping):
            yield info


def _listed(deployment: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """LiteLLM's entries of the model, and of the one that has its price."""
    names = [
        deployment["model"],
        *(of.get("base_model") for of in (deployment, *_infos(deployment))),
    ]
    for name in names:
        with suppress(Exception):  # LiteLLM raises several kinds for a model that it does not know
            yield litellm.model_cost[litellm.get_model_info(name)["key"]]


def _highest(sources: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    prices: dict[str, float] = {}
    for source in sources:
        for name, price in source.items():
            if "cost" in name and price is not None:
                with suppress(TypeError, ValueError):  # a configuration's 1e-6 is a text
                    prices[name] = max(float(price), prices.get(name, 0))
    return prices


def _surcharges(entries: Iterable[Mapping[str, Any]], data: Mapping[str, Any]) -> Iterable[float]:
    for entry in entries:
        factors = entry.get("provider_specific_entry") or {}
        for name in SURCHARGED:
            factor = factors.get(str(data.get(name)).lower(), 1)
            yield factor if isinstance(factor, int | float) else 1


def _deployments(model: str) -> Sequence[Mapping[str, Any]]:
    """What a name stands for: in the proxy that of each deployment of its router, else itself."""
    router = getattr(sys.modules.get("litellm.proxy.proxy_server"), "llm_router", None)
    found: Iterable[Any] = (
        (router.get_model_list(model_name=model) or ()) if router is not None else ()
    )
    own = [{**each["litellm_params"], "model_info": each.get("model_info")} for each in found]
    return [each if "*" not in each["model"] else {**each, "model": model} for each in own] or [
        {"model": model}
    ]


def _output_max(deployment: Mapping[str, Any], asked: int | None) -> int | None:
    """The most tokens of an answer; None where that is not known, or something else than tokens
    is paid for.
    """
    info: Mapping[str, Any] = {}
    with suppress(Exception):
        info = litellm.get_model_info(deployment["model"])
    if info.get("search_context_cost_per_query") and any(
        name in deployment["model"] for name in SEARCHING
    ):
        return None
    if info.get("mode") in UNANSWERED:
        return 0
    if (info.get("mode") or ANSWERING[0]) not in ANSWERING:
        return None
    return asked if asked is not None else number(info.get("max_output_tokens"))


def is_paid_by_tokens(data: Mapping[str, Any]) -> bool:
    """Whether a request asks for nothing that is billed beside its tokens, or by another price
    than that of text.
    """
    tools = data.get("tools") or []
    spoken = data.get("audio") is not None or data.get("modalities") not in (None, ["text"])
    beside = spoken or data.get("web_search_options") is not None
    return not beside and isinstance(tools, list) and all(map(_is_own, tools))


def _is_own(tool: object) -> bool:
    return (
        isinstance(tool, Mapping)
        and tool.get("type", OWN[0]) in OWN
        and any(name in tool for name in DECLARED)
    )


def mappings(value: object) -> Iterator[Mapping[str, Any]]:
    """All in a request, at any depth: also in what a tool answered."""
    if isinstance(value, Mapping):
        yield value
        value = [*value.values()]
    for part in value if isinstance(value, list | tuple) else ():
        yield from mappings(part)


def prompt_of(model: str, data: Mapping[str, Any], picture: int) -> int | None:
    """The tokens that are sent; None where they cannot be counted.

    picture: the most that each picture counts.
    """
    chat, text = isinstance(data.get("messages"), list), data.get("prompt", data.get("input"))
    if not chat and text is None:
        return None
    texts = [*map(data.get, BESIDE), *(() if chat else (text, data.get("tools")))]
    with suppress(Exception):  # of a message of another form
        counted = litellm.token_counter(
            model=model, text="\n".join(str(each) for each in texts if each is not None)
        )
        if chat:
            given = {
                "messages": data["messages"],
                "tools": data.get("tools"),
                "use_default_image_token_count": True,
            }
            counted += litellm.token_counter(model=model, **given)
        sent = mappings([data.get("messages"), text, data.get("system")])
        return number(counted + picture * sum(part.get("type") in PICTURES for part in sent))
    return None


def longest_of(data: Mapping[str, Any]) -> int | None:
    """The longest answer that it asks for; None where it names none, or what is no number."""
    asked = [number(data[name]) for name in MOST if data.get(name) is not None]
    return max((each or 0 for each in asked), default=None) if None not in asked else None


def answers_of(data: Mapping[str, Any]) -> int | None:
    """To each of several prompts there are `n` answers, chosen of `best_of`; None where those
    are no numbers.
    """
    prompt = data.get("prompt")
    prompts = (
        len(prompt)
        if isinstance(prompt, list) and not all(isinstance(each, int) for each in prompt)
        else 1
    )
    said = [number(data[name]) for name in ("n", "best_of") if data.get(name) is not None]
    return None if None in said else prompts * max((each or 1 for each in said), default=1)
