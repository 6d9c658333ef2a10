"""DynamoDB for asyncio: `exact_counter.aio` has it."""

from ledger.tables.aio import AsyncClient, AsyncDynamoTable, awaited, make_async_client

__all__ = ["AsyncClient", "AsyncDynamoTable", "awaited", "make_async_client"]
