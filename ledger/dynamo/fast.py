"""`ledger.dynamo.fast`: a client that spends less CPU than boto3's."""

from ledger.tables.fast import FastClient

__all__ = ["FastClient"]
