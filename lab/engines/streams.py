"""Reads one Region's table stream from its beginning, page by page, as changes.

Rule 1: Only an empty page says "the end": a page also ends before it passes 1 MB of records.
Rule 2: A change's order is the engine's own write counter (the last ten digits of a sequence number; the rest is the
wall clock, which can step back). It counts over all tables and Regions of one engine process, which is what makes "the
last writer" exact here.
Rule 3: An iterator lives for 15 minutes, so a reader that rests for longer is at its end.
Rule 4: One shard. MiniStack has no more; another engine would need a reader of shards first.
"""

from typing import Any, TypeAlias

from mypy_boto3_dynamodb.client import DynamoDBClient

from lab.engines.replicas import Change
from ledger.requests import key_of

StreamsClient: TypeAlias = Any
"""A boto3 client for `dynamodbstreams` (the types of that service are a package of their own)."""

PAGE_RECORDS = 1_000
ORDER_DIGITS = 10


class StreamReader:
    """The stream of `table` in one Region, read once from the oldest record kept (24 hours).

    Raises ValueError if the table has no stream or the stream has not one shard, and ClientError as the clients do.
    """

    def __init__(self, client: DynamoDBClient, streams: StreamsClient, table: str) -> None:
        arn = client.describe_table(TableName=table)["Table"].get("LatestStreamArn")
        if arn is None:
            raise ValueError(f"table {table} has no stream, so nothing of it can be replicated")
        shards = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        if len(shards) != 1:
            raise ValueError(f"the stream of table {table} has {len(shards)} shards, this reader knows one")
        self._streams = streams
        self._arn = arn
        start = {"ShardId": shards[0]["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        self._iterator: str = streams.get_shard_iterator(StreamArn=arn, **start)["ShardIterator"]

    def read(self) -> list[Change]:
        """The next changes, at most 1,000 and about 1 MB; an empty list: the end, for now.

        Raises ValueError if the stream was closed, and ClientError as the client does.
        """
        page = self._streams.get_records(ShardIterator=self._iterator, Limit=PAGE_RECORDS)
        if "NextShardIterator" not in page:
            raise ValueError(f"the stream {self._arn} was closed: its table was deleted or changed")
        self._iterator = page["NextShardIterator"]
        records = [record["dynamodb"] for record in page["Records"]]
        return [
            Change(key_of(each["Keys"]), each.get("NewImage"), int(each["SequenceNumber"][-ORDER_DIGITS:]))
            for each in records
        ]
