"""Budgets for calls that cost money, such as those of LLMs: reserve an estimate before a call,
settle its cost after.

Rule 1: this package stands on the ledger, in any framework, and nothing else in `ledger` imports
it.
"""

from ledger.budgets.budgets import TIMEOUT, Budgets, Call
from ledger.budgets.errors import NotCounted, OverBudget, SettledOtherwise

__all__ = ["TIMEOUT", "Budgets", "Call", "NotCounted", "OverBudget", "SettledOtherwise"]
