"""LiteLLM's errors: which one a call gets that may not begin, and which of a provider's may be
billed.

Rule 1: where nothing could be decided the call does not begin either.
"""

from __future__ import annotations

import logging
from typing import Any

import litellm
from exact_counter.budgets import OverBudget, may_be_billed
from exact_counter.errors import Again, InvalidChange, InvalidCounter, InvalidInput, LedgerError

log = logging.getLogger("exact-counter.litellm")

DISCONNECTED = 499


class RepeatsUnasked(litellm.BadRequestError, ImportError):
    """A call that the SDK would repeat without asking any hook, which no budget could then hold.

    An ImportError, too: that alone is what the SDK does not begin to repeat at once.
    """

    def __init__(self, setting: str, model: str) -> None:
        super().__init__(
            f"{setting}: LiteLLM would repeat this call without asking a hook, outside any "
            "budget. Use max_retries, or the retries and fallbacks of a litellm.Router.",
            model,
            "",
        )


class IncompleteCall(InvalidInput):
    """A call lacks what gives its budget a name, or what gives it a price. Nothing was called."""


def refusal(error: LedgerError, model: str) -> Any:
    """What a call that may not begin gets: BudgetExceededError (its status is
    `litellm.budget_exceeded_status_code`), BadRequestError (400) where it lacks something or asks
    for too much, ServiceUnavailableError (503) where the table could not be asked.
    Anything else is the operator's to mend: InternalServerError (500), and the log says what.
    """
    if isinstance(error, OverBudget):
        # A gate says that there is too little, and not how much there is.
        return litellm.BudgetExceededError(
            current_cost=0.0,
            max_budget=0.0,
            message=(
                f"{error} The longest answer is in the estimate: with a smaller max_tokens "
                "it is less."
            ),
            entity_type="budget",
            entity_id=error.counter,
        )
    if isinstance(error, IncompleteCall | InvalidCounter | InvalidChange):
        return litellm.BadRequestError(str(error), model, "")
    if isinstance(error, Again):
        why = f"The budget could not be asked, so nothing was called: {error}"
        return litellm.ServiceUnavailableError(why, "", model)
    log.error("%s: nothing was called, because its budgets are not set up right: %s", model, error)
    why = (
        "The budgets of this call are not set up right, so nothing was called: the log of its "
        "process says how."
    )
    return litellm.InternalServerError(why, "", model)


def is_paid(end: BaseException | None) -> bool:
    """As `may_be_billed`, and of a client of the proxy that left."""
    return getattr(end, "status_code", None) == DISCONNECTED or may_be_billed(end)
