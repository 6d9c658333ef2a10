"""Public names for those who make clients themselves; the code is in ledger/tables."""
