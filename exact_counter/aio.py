"""The ledger and the reader for asyncio: install `exact-counter[async]`."""

from ledger.aio import AsyncHold, AsyncHolds, AsyncLedger
from ledger.dynamo.aio import make_async_client
from reader.aio import AsyncReader

__all__ = ["AsyncHold", "AsyncHolds", "AsyncLedger", "AsyncReader", "make_async_client"]
