"""Budgets of calls that you pay for: reserve an estimate before a call, settle its cost after it.

`Budgets`, `Call`, `TIMEOUT` and the three errors are for all users. The names with a small letter
and `TRIES_MAX` are for people who write an integration, such as exact-counter-litellm: they check
what a caller gives, say whether a call may cost money, and take work to its end when a task is
cancelled.
"""

import ledger as _ledger  # noqa: F401  rule 3 of the door
from ledger.budgets import TIMEOUT, Budgets, Call, NotCounted, OverBudget, SettledOtherwise
from ledger.budgets.ask import go_on, going_on, to_its_end
from ledger.budgets.reserving import check_cost, check_counters, may_be_billed
from ledger.core.again import TRIES_MAX
from ledger.core.clocks import wall_clock
from ledger.errors import shown

__all__ = [
    "TIMEOUT",
    "TRIES_MAX",
    "Budgets",
    "Call",
    "NotCounted",
    "OverBudget",
    "SettledOtherwise",
    "check_cost",
    "check_counters",
    "go_on",
    "going_on",
    "may_be_billed",
    "shown",
    "to_its_end",
    "wall_clock",
]
