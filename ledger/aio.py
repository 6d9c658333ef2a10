"""`ledger.aio`: the ledger for asyncio."""

from ledger.client.aio import AsyncHold, AsyncHolds, AsyncLedger, Named

__all__ = ["AsyncHold", "AsyncHolds", "AsyncLedger", "Named"]
