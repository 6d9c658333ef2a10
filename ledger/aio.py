"""The ledger for asyncio: `exact_counter.aio` has it."""

from ledger.client.aio import AsyncHold, AsyncHolds, AsyncLedger, Named

__all__ = ["AsyncHold", "AsyncHolds", "AsyncLedger", "Named"]
