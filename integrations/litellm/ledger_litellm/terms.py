"""`Terms`: in which budgets a LiteLLM call reserves, and how much.

Rule 1: the operator names the budgets, from what is known of the caller.
Rule 2: what a call may cost is LiteLLM's to tell, else the operator's; a call of which nobody knows it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.budgets import Budgets
from ledger.budgets.reserving import check_cost, check_counters
from ledger.errors import InvalidInput, shown

from ledger_litellm.calls import OpenCall
from ledger_litellm.errors import IncompleteCall
from ledger_litellm.estimates import estimated
from ledger_litellm.prices import UNITS, Asked
from ledger_litellm.requests import Caller


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
