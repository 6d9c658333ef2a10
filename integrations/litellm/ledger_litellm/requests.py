"""What a hook of LiteLLM is called with: who calls, which model, the mark of what was reserved; and `Terms`, in which
budgets a call reserves, and how much.

Rule 1: in the proxy a caller is who the proxy authenticated, never what the request's body says.
Rule 2: where LiteLLM keeps its metadata depends on the route; the mark goes there and nowhere else.
Rule 3: the operator names the budgets, from what is known of the caller.
Rule 4: what a call may cost is LiteLLM's to tell, else the operator's; a call of which nobody knows it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Any

import litellm
from ledger.budgets import Budgets
from ledger.budgets.reserving import check_cost, check_counters
from ledger.errors import InvalidInput, shown

from ledger_litellm.calls import OpenCall
from ledger_litellm.errors import IncompleteCall
from ledger_litellm.estimates import estimated
from ledger_litellm.prices import UNITS, Asked

METADATA = ("metadata", "litellm_metadata")

PLACES = {
    "key": "user_api_key",
    "user": "user_api_key_user_id",
    "team": "user_api_key_team_id",
    "organization": "user_api_key_org_id",
    "end_user": "user_api_key_end_user_id",
}
"""Where the proxy notes its caller in the metadata."""

KNOWN = (*PLACES, "model", "day", "month")

# With these `acompletion` of the SDK repeats a call without asking a hook; a Router's repetitions ask.
UNASKED = ("num_retries", "context_window_fallback_dict")


class Caller(dict[str, str]):
    """Who calls, as far as is known: key, user, team, organization, end_user; model; day and month, in UTC.

    `caller["key"]` raises IncompleteCall where there is none, and InvalidInput for any other name; `"team" in caller`
    asks.
    """

    def __missing__(self, name: str) -> str:
        if name not in KNOWN:
            raise InvalidInput(f"No caller has {shown(name)}: budgets are named by {', '.join(KNOWN)}.")
        raise IncompleteCall(
            f"This call has no {name}, and a budget is named by it. It has {', '.join(sorted(self))}. "
            f"Send it with a {name}, or name the budget without: `if {name!r} in caller`."
        )


def _caller(at: datetime, named: Mapping[str, object]) -> Caller:
    known = {name: text for name, text in named.items() if isinstance(text, str) and text}
    return Caller(known | {"day": f"{at:%Y-%m-%d}", "month": f"{at:%Y-%m}"})


def by_proxy(key: Any, data: Mapping[str, Any], at: datetime) -> Caller:
    """key: the proxy's UserAPIKeyAuth; the key itself is hashed there."""
    return _caller(
        at,
        {
            "key": key.api_key,
            "user": key.user_id,
            "team": key.team_id,
            "organization": key.org_id,
            "end_user": key.end_user_id,
            "model": data.get("model"),
        },
    )


def by_metadata(request: Mapping[str, Any], at: datetime) -> Caller:
    """Of a call that did not come through the proxy's door: its `user=`, and key, team and so on of its metadata; of
    one that the proxy itself makes, what it put there.
    """
    found = request.get(_place(request)) or {}
    known = (
        {name: found[place] for name, place in PLACES.items() if place in found} if PLACES["key"] in found else found
    )
    own = {"user": request.get("user"), "model": request.get("model")}
    return _caller(at, own | {name: known[name] for name in PLACES if name in known})


def sdk_request(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """A call's arguments, also those that were given by place: LiteLLM's own object of the call has them."""
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
    """Of a request; of one that is logged, or failed on a pass-through route, its metadata are in `litellm_params`."""
    for params, place in product((request, request.get("litellm_params")), METADATA):
        found = params.get(place) if isinstance(params, Mapping) else None  # a caller may send anything
        if isinstance(found, Mapping) and isinstance(mark := found.get(name), str):
            return mark
    return None


def logged_id(kwargs: Mapping[str, Any]) -> str:
    """LiteLLM's id of a call that is logged; an attempt inside it shares the rest with it, but not this."""
    return str((kwargs.get("litellm_params") or {}).get("litellm_call_id") or kwargs.get("litellm_call_id"))


def _place(request: Mapping[str, Any]) -> str:
    return METADATA["litellm_metadata" in request]


@dataclass(frozen=True, slots=True)
class Terms:
    """As the arguments of LedgerBudgets. Raises InvalidInput."""

    budgets: Budgets
    counters: Callable[[Caller], Iterable[str]]
    unit: str
    estimate: int | None
    picture: int

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InvalidInput(f"unit={shown(self.unit)} is not one of {UNITS}.")
        if not callable(self.counters):
            raise InvalidInput(
                f"counters is a function of the caller that names its budgets, not {shown(self.counters)}."
            )
        if self.estimate is not None:
            check_cost("estimate", self.estimate)
        check_cost("picture", self.picture)

    def call(self, caller: Caller, request: Mapping[str, Any], owner: str | None) -> OpenCall | None:
        """Nothing is reserved yet; None for a call without a budget. Raises InvalidInput."""
        counters = check_counters(self.counters(caller))
        if not counters:
            return None
        asked, most = self._estimated(str(request.get("model")), request, own=owner is not None)
        return OpenCall(self.budgets.reserve(counters, most), owner, asked)

    def _estimated(self, model: str, request: Mapping[str, Any], *, own: bool) -> tuple[Asked, int]:
        found = estimated(self.unit, model, request, own=own, picture=self.picture)
        if found is None and self.estimate is None:
            raise IncompleteCall(
                f"What a call of {shown(model)} may cost is not known: LiteLLM has no price of it by the token, no "
                "longest answer, or no count of what is sent, or the provider may search, speak or run tools. Pass "
                "estimate= to LedgerBudgets, register the model's price, or send max_tokens."
            )
        return found or (Asked(self.unit, model, 0, 0), self.estimate or 0)
