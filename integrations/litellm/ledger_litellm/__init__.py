"""Budgets of `exact_counter.budgets` on LiteLLM's own hooks, for its proxy and for its SDK."""

from ledger_litellm.hooks import LedgerBudgets
from ledger_litellm.requests import Caller

__all__ = ["Caller", "LedgerBudgets"]
