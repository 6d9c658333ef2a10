"""The gate: one item that decides for a lane with a limit.

No transaction, no delta, no compactor.
"""
