"""`LedgerBudgets`: budgets on LiteLLM's own hooks, for its proxy and for its SDK.

Rule 1: a request to the proxy reserves once, for all its retries and fallbacks; without the proxy
each call does.
Rule 2: what was reserved is found by a mark in the request's metadata that no client of the proxy
can know.
Rule 3: what an answer cost is noted when it comes, in a hook that is awaited, and settled when its
request ends: by an answer, an error, the end of a stream or its cut. LiteLLM's log events, which
may be dropped, only come in addition.
Rule 4: a call that is refused has no mark, so that its failure ends no other.
Rule 5: the operator names the budgets, from what is known of the caller. What a call may cost is
LiteLLM's to tell, else the operator's; a call of which nobody knows it is refused.
Source: litellm 1.106, `utils.wrapper_async` and `proxy.utils.ProxyLogging`.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, final

from exact_counter.budgets import TIMEOUT, Budgets, check_cost, check_counters, shown, wall_clock
from exact_counter.errors import InvalidInput, LedgerError
from litellm.integrations.custom_logger import CustomLogger

from ledger_litellm import requests
from ledger_litellm.calls import OpenCall, OpenCalls
from ledger_litellm.errors import IncompleteCall, RepeatsUnasked, is_paid, log, refusal
from ledger_litellm.estimates import PICTURE, estimated
from ledger_litellm.prices import UNITS, Asked, billed, cost_of, logged_cost
from ledger_litellm.requests import Caller

Found = tuple[str | None, OpenCall | None]

UNBUDGETED = "none"  # the mark of a call that the operator named no budget for


# LiteLLM calls a hook only where the class itself has it, so one of a subclass would be skipped
@final
class LedgerBudgets(CustomLogger):
    """Put one into `litellm.callbacks`, or into `callbacks` of the proxy's configuration.

    ledger: a Ledger, asked in threads, or an AsyncLedger. counters: names the budgets of a call,
    limited counters that must all have room; a call that it names none for has no budget. unit: of
    the budgets, "micro-dollars" or "tokens".
    estimate: what a call may cost where LiteLLM knows no price or no longest answer; without it
    such a call is refused.
    picture: the most tokens that one in a request counts; less where you know your models and the
    sizes you send.
    timeout: longer than any call; what a dead process held ends by itself then. over, clock: as of
    Budgets.

    A refusal is LiteLLM's BudgetExceededError. Without the proxy `acompletion` and its kin ask the
    hooks; `completion`, which blocks, asks none that could refuse, which is logged as an error: use
    `Budgets.reserve` around it.
    """

    def __init__(
        self,
        ledger: Any,
        counters: Callable[[Caller], Iterable[str]],
        *,
        unit: str = "micro-dollars",
        estimate: int | None = None,
        picture: int = PICTURE,
        timeout: timedelta = TIMEOUT,
        over: str = "over:",
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        super().__init__()
        if unit not in UNITS:
            raise InvalidInput(f"unit={shown(unit)} is not one of {UNITS}.")
        if not callable(counters):
            raise InvalidInput(
                "counters is a function of the caller that names its budgets, not "
                f"{shown(counters)}."
            )
        check_cost("estimate", estimate or 0)
        check_cost("picture", picture)
        self.budgets = Budgets(ledger, timeout=timeout, over=over, clock=clock)
        self._counters, self._unit, self._estimate, self._picture = (
            counters,
            unit,
            estimate,
            picture,
        )
        # of its marks; public, or LiteLLM takes two objects for one
        self.name = f"ledger_{uuid.uuid4().hex}"
        self.open = OpenCalls()

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """A request to the proxy, before it chooses a deployment."""
        # this object is named twice in `callbacks`
        if self.open.get(requests.mark_of(data, self.name)) is not None:
            return data
        caller = requests.by_proxy(user_api_key_dict, data, self.budgets.now())
        return requests.marked(data, self.name, await self._begin(caller, data, None))

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """An attempt: of the proxy, where its request reserved before, or of a Router or the
        SDK, which reserves.
        """
        if requests.mark_of(kwargs, self.name) is not None:
            return None
        request = requests.sdk_request(kwargs)
        if repeats := requests.repeats_unasked(kwargs):
            raise RepeatsUnasked(repeats, str(request.get("model")))
        caller = requests.by_metadata(request, self.budgets.now())
        return requests.marked(
            kwargs, self.name, await self._begin(caller, request, str(kwargs["litellm_call_id"]))
        )

    async def _begin(self, caller: Caller, request: Mapping[str, Any], owner: str | None) -> str:
        logging = request.get("litellm_logging_obj")
        try:
            counters = check_counters(self._counters(caller))
            if not counters:
                return UNBUDGETED
            asked, most = self._asked(str(request.get("model")), request, own=owner is not None)
            call = self.budgets.reserve(counters, most)
            opening = OpenCall(call, owner, asked, getattr(logging, "model_call_details", None))
            mark = await self.open.begin(opening, self.budgets.timeout.total_seconds())
        except LedgerError as error:
            raise refusal(error, str(request.get("model"))) from error
        if owner is not None and logging is not None and not request.get("stream"):
            self.open.end_when_left(mark, logging)
        return mark

    def _asked(self, model: str, request: Mapping[str, Any], *, own: bool) -> tuple[Asked, int]:
        found = estimated(self._unit, model, request, own=own, picture=self._picture)
        if found is None and self._estimate is None:
            raise IncompleteCall(
                f"What a call of {shown(model)} may cost is not known: LiteLLM has no price of it "
                "by the token, no longest answer, or no count of what is sent, or the provider "
                "may search, speak or run tools. Pass estimate= to LedgerBudgets, register the "
                "model's price, or send max_tokens."
            )
        return found or (Asked(self._unit, model, 0, 0), self._estimate or 0)

    async def async_post_call_success_deployment_hook(
        self, request_data: Mapping[str, Any], response: Any, call_type: Any
    ) -> None:
        """An attempt was answered, not in a stream."""
        mark, there = self._found(request_data)
        if there is None:
            return
        ends = there.is_of(request_data)
        if not ends or there.noted is None:  # else what its attempts noted is the call's cost
            there.note(
                cost_of(there.asked, response, request_data.get("litellm_logging_obj")), response
            )
        if ends:
            await self.open.end(mark)

    async def async_post_call_success_hook(
        self, data: dict[str, Any], user_api_key_dict: Any, response: Any
    ) -> None:
        """A request to the proxy was answered, not in a stream."""
        mark, there = self._found(data)
        if there is not None:
            if there.noted is None:  # from a cache, or of a route without deployments
                there.note(
                    cost_of(there.asked, response, data.get("litellm_logging_obj")), response
                )
            await self.open.end(mark)

    def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """A request to the proxy is answered in a stream, whose client may leave at any chunk."""
        return self.open.counted(
            *self._found(request_data), response, request_data.get("litellm_logging_obj")
        )

    def stream(self, response: Any) -> AsyncGenerator[Any, None]:
        """The chunks of a stream of the SDK. One that is left before its end counts what it gave;
        LiteLLM itself tells no hook of that, so without this the estimate counts, after the
        time-out. Close it, as with `aclosing`.
        """
        if not hasattr(response, "logging_obj"):
            raise InvalidInput(
                f"What acompletion(stream=True) answers is a stream, not {shown(response)}."
            )
        found = self._logged(response.logging_obj.model_call_details)
        return self.open.counted(*found, response, response.logging_obj)

    async def async_post_call_failure_hook(
        self,
        request_data: Any,
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> None:
        """A request to the proxy failed, after all its retries and fallbacks."""
        await self._failed(self._found(request_data), original_exception, request_data)

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, Any],
        exception: Exception,
        call_type: Any,
        fallback_depth: int | None = None,
    ) -> None:
        """An attempt failed; there may be another one, unless it is the call itself."""
        mark, there = self._found(request_data)
        if there is None:
            return
        if there.is_of(request_data):
            await self._failed((mark, there), exception, {})
        elif is_paid(exception):
            there.note(there.asked.input, exception)

    async def _failed(self, found: Found, failure: BaseException, told: Mapping[str, Any]) -> None:
        mark, there = found
        if there is not None:
            cost = billed(there.asked.unit, told) or (there.asked.input if is_paid(failure) else 0)
            await self.open.end(mark, cost)

    async def async_log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        mark, there = self._logged(kwargs)
        # its request's own hook ends it
        if there is None or (there.owner is None and there.noted is not None):
            return
        if there.noted is None:
            there.note(logged_cost(there.asked, kwargs, response_obj), response_obj)
        await self.open.end(mark)

    async def async_log_failure_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        mark, there = self._logged(kwargs)
        # the call's; an attempt inside it shares the rest with it
        own = kwargs.get("litellm_params") or {}
        if there is not None and there.is_of(own if own.get("litellm_call_id") else kwargs):
            await self._failed((mark, there), kwargs.get("exception") or Exception(), kwargs)

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: Mapping[str, Any]) -> None:
        blocks = (kwargs.get("litellm_params") or {}).get("acompletion") is False
        if blocks and requests.mark_of(kwargs, self.name) is None:
            log.error(
                "%s: completion() asks no hook that could refuse it: this call is in no budget",
                model,
            )

    def _found(self, request: Mapping[str, Any]) -> Found:
        mark = requests.mark_of(request, self.name)
        return mark, self.open.get(mark)

    def _logged(self, kwargs: Mapping[str, Any]) -> Found:
        """Of a log event. A call that another object refused has lost its mark, and so have some
        routes: LiteLLM's own object of the call is left. Its id may be another's, too: a caller may
        choose it.
        """
        mark = requests.mark_of(kwargs, self.name) or self.open.mark_by(kwargs)
        return mark, self.open.get(mark)
