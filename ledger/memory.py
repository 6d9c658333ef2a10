"""A table in memory, for your tests: `exact_counter.testing` has it."""

from ledger.tables.memory import TOKEN_MS, MemoryTable

__all__ = ["TOKEN_MS", "MemoryTable"]
