"""What a hook of LiteLLM is called with: who calls, which model, the mark of what was reserved.

Rule 1: in the proxy a caller is who the proxy authenticated, never what the request's body says.
Rule 2: where LiteLLM keeps its metadata depends on the route; the mark goes there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import product
from typing import Any

import litellm
from exact_counter.budgets import shown
from exact_counter.errors import InvalidInput

from ledger_litellm.errors import IncompleteCall

METADATA = ("metadata", "litellm_metadata")

IDS = {
    "key": "api_key",
    "user": "user_id",
    "team": "team_id",
    "organization": "org_id",
    "end_user": "end_user_id",
}
"""What the proxy's UserAPIKeyAuth has of a caller."""
PLACES = {name: f"user_api_key_{id}" for name, id in IDS.items()} | {"key": "user_api_key"}
"""Where the proxy notes its caller in the metadata."""

KNOWN = (*IDS, "model", "day", "month")

# With these `acompletion` of the SDK repeats a call without asking a hook; a Router's repetitions
# ask.
UNASKED = ("num_retries", "context_window_fallback_dict")


class Caller(dict[str, str]):
    """Who calls, as far as is known: key, user, team, organization, end_user; model; day and month
    in UTC, as the name of a period ends. `caller["key"]` raises IncompleteCall where there is none,
    and InvalidInput for any other name; `"team" in caller` asks.
    """

    def __missing__(self, name: str) -> str:
        if name not in KNOWN:
            raise InvalidInput(
                f"No caller has {shown(name)}: budgets are named by {', '.join(KNOWN)}."
            )
        raise IncompleteCall(
            f"This call has no {name}, and a budget is named by it. It has "
            f"{', '.join(sorted(self))}. Send it with a {name}, or name the budget without: `if "
            f"{name!r} in caller`."
        )


def _caller(at: datetime, named: Mapping[str, object]) -> Caller:
    known = {name: text for name, text in named.items() if isinstance(text, str) and text}
    return Caller(known | {"day": f"{at:%Y-%m-%d}", "month": f"{at:%Y-%m}"})


def by_proxy(key: Any, data: Mapping[str, Any], at: datetime) -> Caller:
    """key: the proxy's UserAPIKeyAuth; the key itself is hashed there."""
    return _caller(
        at, {name: getattr(key, id) for name, id in IDS.items()} | {"model": data.get("model")}
    )


def by_metadata(request: Mapping[str, Any], at: datetime) -> Caller:
    """Of a call that did not come through the proxy's door: its `user=`, and key, team and so on of
    its metadata; of one that the proxy itself makes, what it put there.
    """
    found = request.get(_place(request)) or {}
    places = PLACES if PLACES["key"] in found else {name: name for name in PLACES}
    own = {"user": request.get("user"), "model": request.get("model")}
    return _caller(
        at, own | {name: found[place] for name, place in places.items() if place in found}
    )


def sdk_request(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """A call's arguments, also those that were given by place: LiteLLM's own object of the call
    has them.
    """
    own = kwargs.get("litellm_logging_obj")
    by_place = {"model": getattr(own, "model", None), "messages": getattr(own, "messages", None)}
    return {**by_place, **{name: value for name, value in kwargs.items() if value is not None}}


def repeats_unasked(kwargs: Mapping[str, Any]) -> str | None:
    """The setting that makes the SDK repeat this call without asking a hook."""
    if "model_group" in (kwargs.get(_place(kwargs)) or {}):  # from a Router
        return None
    own = {name: kwargs[name] for name in UNASKED if kwargs.get(name) is not None}
    asked = {"num_retries": litellm.num_retries} | own
    return next((f"{name}={value!r}" for name, value in asked.items() if value), None)


def marked(request: Mapping[str, Any], name: str, mark: str) -> dict[str, Any]:
    """The request with a mark in metadata of its own."""
    place = _place(request)
    return {**request, place: {**(request.get(place) or {}), name: mark}}


def mark_of(request: Mapping[str, Any], name: str) -> str | None:
    """Of a request; of one that is logged, or failed on a pass-through route, its metadata are
    in `litellm_params`.
    """
    for params, place in product((request, request.get("litellm_params")), METADATA):
        # a caller may send anything
        found = params.get(place) if isinstance(params, Mapping) else None
        if isinstance(found, Mapping) and isinstance(mark := found.get(name), str):
            return mark
    return None


def _place(request: Mapping[str, Any]) -> str:
    return METADATA["litellm_metadata" in request]
