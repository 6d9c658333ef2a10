"""Replicates a table between Regions as a global table does (eventual mode), from their streams, in
one thread.

Rule 1: A Region is sent nothing between a delivery and the reading of its stream up to it (see
`replicas`): one thread does both.
Rule 2: Every turn is bounded; a turn holds the lock, so `partition` and `heal` take effect between
turns and at once.
Rule 3: An error ends the thread and is raised by `drain` and `stop`: a replicator that stopped must
not look like a slow one.
Rule 4: Items go 25 to a BatchWriteItem, each due by its own random lag: a batch is not a unit, so a
transaction's items still arrive apart.
Rule 5: Only an empty page of a stream says "the end": a page also ends before it passes 1 MB of
records.
Rule 6: A change's order is the engine's own write counter (the last ten digits of a sequence
number; the rest is the wall clock, which can step back). It counts over all tables and Regions of
one engine process, which is what makes "the last writer" exact here.
Rule 7: An iterator lives for 15 minutes, so a reader that rests for longer is at its end.
Rule 8: One shard. MiniStack has no more; another engine would need a reader of shards first.
"""

import random
import threading
import time
from collections.abc import Sequence
from typing import Any, Self

from lab.engines.ministack import Engine
from lab.engines.replicas import Change, Image, Replicas
from ledger.core.requests import Key, key_of, keyed

BATCH_ITEMS = 25  # BatchWriteItem takes no more
BATCHES_PER_TURN = 20  # for each Region
PAGES_PER_TURN = 50  # for each Region
PAGE_RECORDS = 1_000
ORDER_DIGITS = 10
POLL_MS = 100  # a poll costs about 3 ms of CPU for each Region
DRAIN_TIMEOUT_MS = 30_000
STOP_TIMEOUT_MS = 30_000


class ReplicationError(Exception):
    """Replication failed (the cause is chained), was stopped, is partitioned, or took too long.

    Nothing is lost: all writes are still in the Regions where they were made.
    """


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class StreamReader:
    """The stream of `table` in one Region, read once from the oldest record kept (24 hours).

    Raises ValueError if the stream has not one shard, and ClientError as the clients do.
    """

    def __init__(self, engine: Engine, region: str, table: str) -> None:
        self._arn = engine.client(region).describe_table(TableName=table)["Table"][
            "LatestStreamArn"
        ]
        self._streams = engine.stream_client(region)
        (shard,) = self._streams.describe_stream(StreamArn=self._arn)["StreamDescription"]["Shards"]
        start = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        self._iterator: str = self._streams.get_shard_iterator(StreamArn=self._arn, **start)[
            "ShardIterator"
        ]

    def read(self) -> list[Change]:
        """The next changes, at most 1,000 and about 1 MB; an empty list: the end, for now.

        Raises ValueError if the stream was closed, and ClientError as the client does.
        """
        page = self._streams.get_records(ShardIterator=self._iterator, Limit=PAGE_RECORDS)
        if "NextShardIterator" not in page:
            raise ValueError(
                f"the stream {self._arn} is closed, because its table was deleted or changed"
            )
        self._iterator = page["NextShardIterator"]
        records = [record["dynamodb"] for record in page["Records"]]
        return [
            Change(
                key_of(each["Keys"]),
                each.get("NewImage"),
                int(each["SequenceNumber"][-ORDER_DIGITS:]),
            )
            for each in records
        ]


class Replicator:
    """A thread that copies each Region's changes of one table to the others, item by item, the last
    writer winning.

    Each change reaches each Region `min_lag_ms` to `max_lag_ms` after it was seen (plus up to about
    POLL_MS), by a lag drawn from `rng`; changes to one item may be merged into the newest. The
    tables must exist, with a stream of new images, and have been equal when their streams began.
    Use one Replicator for a table in the life of an engine: a second one would take the first one's
    deliveries for writes. It runs inside `with`.
    """

    def __init__(
        self,
        engine: Engine,
        table: str,
        regions: Sequence[str],
        rng: random.Random,
        min_lag_ms: int,
        max_lag_ms: int,
        poll_ms: int = POLL_MS,
    ) -> None:
        self._replicas = Replicas(regions, rng, min_lag_ms, max_lag_ms)
        self._clients = {region: engine.client(region) for region in regions}
        self._readers = {region: StreamReader(engine, region, table) for region in regions}
        self._table, self._regions, self._poll_ms = table, tuple(regions), poll_ms
        self._turned = threading.Condition()
        self._turns = 0  # whole ones, which have read every stream to its end
        self._partitioned = self._stopping = False
        self._error: Exception | None = None
        # A daemon, so that a program which forgot stop() still ends.
        self._thread = threading.Thread(target=self._run, name=f"replicator-{table}", daemon=True)

    def partition(self, *regions: str) -> None:
        """Cuts each of these Regions (none given: every Region) off from all others, until heal;
        their writes are kept.

        When it returns, no delivery to them is under way. Replaces an earlier partition.
        """
        with self._turned:
            self._replicas.cut(regions or self._regions)
            self._partitioned = True

    def heal(self) -> None:
        """Ends the partition: what was held back is delivered, each change by a lag of its own."""
        with self._turned:
            self._replicas.join(_now_ms())
            self._partitioned = False

    def drain(self, timeout_ms: int = DRAIN_TIMEOUT_MS) -> None:
        """Waits until every write acknowledged before the call is applied in every Region, and none
        is under way.

        Raises ReplicationError if that takes longer than `timeout_ms` (as while others go on
        writing), during a partition, or if the thread failed or is not running.
        """
        with self._turned:
            began = self._turns

            def is_done() -> bool:
                return self._turns > began and self._replicas.pending == 0

            self._turned.wait_for(
                lambda: is_done() or self._cannot_drain() is not None, timeout_ms / 1_000
            )
            if not is_done():
                pending = self._replicas.pending
                reason = (
                    self._cannot_drain()
                    or f"not done after {timeout_ms} ms, {pending} changes are pending"
                )
                raise ReplicationError(
                    f"replication of {self._table} did not end: {reason}"
                ) from self._error

    def stop(self) -> None:
        """Stops the thread; changes not yet delivered stay undelivered.

        Raises ReplicationError if it had failed.
        """
        with self._turned:
            self._stopping = True
            self._turned.notify_all()
        self._thread.join(STOP_TIMEOUT_MS / 1_000)
        if self._error is not None:
            raise ReplicationError(
                f"replication of {self._table} failed: {self._error}"
            ) from self._error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _cannot_drain(self) -> str | None:
        if self._error is not None:
            return f"it failed: {self._error}"
        return "it is partitioned, call heal() first" if self._partitioned else None

    def _run(self) -> None:
        with self._turned:
            while not self._stopping:  # every turn is bounded, and stop() ends the row
                try:
                    ends = [self._read(region) for region in self._regions]
                    for region in self._regions:
                        self._deliver(region)
                    self._turns += all(ends)
                except Exception as error:  # raised again, to whoever calls drain or stop
                    self._error = error
                    self._stopping = True
                self._turned.notify_all()
                self._turned.wait(self._poll_ms / 1_000)

    def _read(self, region: str) -> bool:
        """Reads a Region's stream; whether its end was reached."""
        for _ in range(PAGES_PER_TURN):
            page = self._readers[region].read()
            now_ms = _now_ms()
            for change in page:
                self._replicas.saw(region, change, now_ms)
            if not page:
                self._replicas.caught_up(region, now_ms)
                return True
        return False

    def _deliver(self, region: str) -> None:
        due = list(self._replicas.take(region, _now_ms(), BATCH_ITEMS * BATCHES_PER_TURN).items())
        for start in range(0, len(due), BATCH_ITEMS):
            batch: Any = [_write(key, image) for key, image in due[start : start + BATCH_ITEMS]]
            answer = self._clients[region].batch_write_item(RequestItems={self._table: batch})
            if answer.get("UnprocessedItems"):
                raise ReplicationError(
                    "the engine left items of a batch unprocessed, which it never does"
                )


def _write(key: Key, image: Image) -> Any:
    if image is None:
        return {"DeleteRequest": {"Key": keyed(key)}}
    return {"PutRequest": {"Item": image}}
