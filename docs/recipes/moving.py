"""Moving a counter here without losing or doubling a change.

docs/recipes/moving.md says when to call what.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import boto3

from exact_counter import Change, Compactor, Delta, Ledger, Reader, Settings
from exact_counter.errors import LedgerError

SHARDS = 4  # 1 for a plain ADD
settings = Settings(table="counters", region="eu-west-1")
ledger = Ledger(settings)
reader = Reader(settings)
compactor = Compactor(settings)
dynamodb = boto3.client("dynamodb", region_name="eu-west-1")


def add(counter: str, shard: int, change: int, key: str, at: datetime) -> None:
    """Add to the old counter while it is open, then to the ledger. Writers call it."""
    try:
        dynamodb.update_item(
            TableName="old",
            Key=old_key(counter, shard),
            UpdateExpression="ADD amount :change",
            ConditionExpression="attribute_not_exists(closed_at)",
            ExpressionAttributeValues={":change": {"N": str(change)}},
        )
    except dynamodb.exceptions.ConditionalCheckFailedException:
        ledger.add(counter, change, idempotency_key=key, at=at)


def value(counter: str) -> int:
    """Readers call it. Raises RuntimeError while `move` is at work."""
    shards = old_shards(counter)
    if "opened_at" in shards[0]:
        return reader.read(counter).value
    if any("closed_at" in shard for shard in shards):
        raise RuntimeError(f"{counter} is being moved. Ask again.")
    return sum(map(amount, shards))  # no change can be in the ledger before a closing


def move(counter: str) -> None:
    """Close one old counter and open the new one. Repeat it until it returns."""
    now = {":now": {"S": datetime.now(UTC).isoformat()}}
    closed = [
        dynamodb.update_item(
            TableName="old",
            Key=old_key(counter, shard),
            UpdateExpression="SET closed_at = if_not_exists(closed_at, :now)",
            ExpressionAttributeValues=now,
            ReturnValues="ALL_NEW",
        )["Attributes"]
        for shard in range(SHARDS)
    ]
    delta = opening(counter, closed)
    ledger.apply(delta)
    if not is_in_value(delta):  # it came late, below the watermark: a stray
        compactor.compact(counter)
        if not is_in_value(delta):
            raise RuntimeError(
                f"{counter}: the opening is not settled yet. Move it again."
            )
    dynamodb.update_item(
        TableName="old",
        Key=old_key(counter, 0),
        UpdateExpression="SET opened_at = :now",
        ConditionExpression="closed_at = :closed_at",
        ExpressionAttributeValues=now | {":closed_at": closed[0]["closed_at"]},
    )


def opening(counter: str, closed: list[dict[str, Any]]) -> Delta:
    """The same change however often it is made: nothing in a closed shard changes."""
    at = max(datetime.fromisoformat(shard["closed_at"]["S"]) for shard in closed)
    return ledger.prepare(
        counter, sum(map(amount, closed)), idempotency_key="opening", at=at
    )


def is_in_value(delta: Delta) -> bool:
    return any(
        entry.token == delta.token for entry in reader.history(delta.lane.counter)
    )


def old_shards(counter: str) -> list[dict[str, Any]]:
    keys = [old_key(counter, shard) for shard in range(SHARDS)]
    return [
        dynamodb.get_item(TableName="old", Key=key, ConsistentRead=True).get("Item", {})
        for key in keys
    ]


def old_key(counter: str, shard: int) -> dict[str, Any]:
    return {"id": {"S": f"{counter}#{shard}"}}


def amount(shard: Mapping[str, Any]) -> int:
    return int(shard.get("amount", {"N": "0"})["N"])


def open_all(values: Mapping[str, int], stopped_at: datetime) -> None:
    """Repeat it, with the same arguments, until it returns."""
    openings = [
        Change(counter, value, "opening", stopped_at)
        for counter, value in values.items()
    ]
    outcomes = zip(openings, ledger.add_many(openings), strict=True)
    failed = {
        opening.counter: outcome
        for opening, outcome in outcomes
        if isinstance(outcome, LedgerError)
    }
    if failed:
        raise RuntimeError(f"Not opened: {failed}")
