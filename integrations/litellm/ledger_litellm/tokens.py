"""How many tokens a request sends, and how many it may be answered, before it is sent.

Rule 1: what cannot be counted is None and never 0.
Rule 2: counts are LiteLLM's own. Nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import litellm

# What a request may call the most tokens of an answer. Which one holds is the provider's, so it is the largest.
MOST = ("max_completion_tokens", "max_tokens", "max_output_tokens")
# What a request may send beside its messages, prompt or input, and pays for.
BESIDE = ("system", "instructions", "functions", "response_format", "text", "prediction", "suffix")


# The types of tools that the caller runs. Any other the provider may run, such as a search, and bill by the call.
OWN = ("function", "custom")
DECLARED = ("function", "name", "functionDeclarations", "function_declarations")


PICTURES = ("image_url", "input_image", "image")  # the types of the parts of a request that are pictures
# More tokens than any model that LiteLLM lists is known to count of one picture: gpt-4o-mini up to 48,169.
PICTURE = 50_000


def is_paid_by_tokens(data: Mapping[str, Any]) -> bool:
    """Whether a request asks for nothing that is billed beside its tokens, or by another price than that of text."""
    tools = data.get("tools") or []
    spoken = data.get("audio") is not None or data.get("modalities") not in (None, ["text"])
    beside = spoken or data.get("web_search_options") is not None
    return not beside and isinstance(tools, list) and all(map(_is_own, tools))


def _is_own(tool: object) -> bool:
    return isinstance(tool, Mapping) and tool.get("type", OWN[0]) in OWN and any(name in tool for name in DECLARED)


def mentions(value: object, names: Collection[str]) -> bool:
    """Whether any of these names is one of its keys, at any depth."""
    if isinstance(value, Mapping):
        return any(name in names or mentions(each, names) for name, each in value.items())
    return isinstance(value, list | tuple) and any(mentions(each, names) for each in value)


def _pictures(value: object) -> int:
    """How many there are, at any depth: also in what a tool answered."""
    if isinstance(value, Mapping):
        return 1 if value.get("type") in PICTURES else sum(map(_pictures, value.values()))
    return sum(map(_pictures, value)) if isinstance(value, list | tuple) else 0


def prompt_of(model: str, data: Mapping[str, Any], picture: int) -> int | None:
    """The tokens that are sent; None where they cannot be counted. picture: the most that each picture counts."""
    chat, text = isinstance(data.get("messages"), list), data.get("prompt", data.get("input"))
    if not chat and text is None:
        return None
    texts = [*map(data.get, BESIDE), *(() if chat else (text, data.get("tools")))]
    with suppress(Exception):  # of a message of another form
        counted = litellm.token_counter(model=model, text="\n".join(str(each) for each in texts if each is not None))
        if chat:
            given = {"messages": data["messages"], "tools": data.get("tools"), "use_default_image_token_count": True}
            counted += litellm.token_counter(model=model, **given)
        return number(counted + picture * _pictures([data.get("messages"), text, data.get("system")]))
    return None


def longest_of(data: Mapping[str, Any]) -> int | None:
    """The longest answer that it asks for; None where it names none, or what is no number."""
    asked = [number(data[name]) for name in MOST if data.get(name) is not None]
    return max((each or 0 for each in asked), default=None) if None not in asked else None


def answers_of(data: Mapping[str, Any]) -> int | None:
    """To each of several prompts there are `n` answers, chosen of `best_of`; None where those are no numbers."""
    prompt = data.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) and not all(isinstance(each, int) for each in prompt) else 1
    said = [number(data[name]) for name in ("n", "best_of") if data.get(name) is not None]
    return None if None in said else prompts * max((each or 1 for each in said), default=1)


def number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
