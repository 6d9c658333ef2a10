"""`ledger.dynamo.aio`: DynamoDB for asyncio."""

from ledger.tables.aio import AsyncDynamoTable, make_async_client

__all__ = ["AsyncDynamoTable", "make_async_client"]
