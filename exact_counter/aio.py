"""The ledger and the reader for asyncio: install `exact-counter[async]`."""

import ledger as _ledger  # noqa: F401  rule 3 of the door
import reader as _reader  # noqa: F401
from ledger.aio import AsyncHold, AsyncHolds, AsyncLedger
from ledger.dynamo.aio import make_async_client
from reader.aio import AsyncReader

__all__ = ["AsyncHold", "AsyncHolds", "AsyncLedger", "AsyncReader", "make_async_client"]
