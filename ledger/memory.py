"""`ledger.memory`: a table in memory, for your tests."""

from ledger.tables.memory import TOKEN_MS, MemoryTable

__all__ = ["TOKEN_MS", "MemoryTable"]
