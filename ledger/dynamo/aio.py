"""`ledger.dynamo.aio`: DynamoDB for asyncio."""

from ledger.tables.aio import AsyncClient, AsyncDynamoTable, awaited, make_async_client

__all__ = ["AsyncClient", "AsyncDynamoTable", "awaited", "make_async_client"]
