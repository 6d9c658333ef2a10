"""`Marks`: the marks in DynamoDB, one request each.

Rule 1: A failure becomes one of ours, as everywhere.
Rule 2: A condition that failed is an answer, not a failure. The SDK may send a write twice, and then the second finds
its condition broken by the first: every reader of the answer False takes it as "do it the careful way", never as
"somebody else has done it".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ledger import failures
from service.marks import Again, Claim, Hold, Mark, MarkRequest, Rest, Touch, key_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

    from ledger.values import Lane


class Marks:
    """Answers the requests of `marks.py` from `table`. Thread-safe as its client is."""

    def __init__(self, table: str, client: DynamoDBClient) -> None:
        self._table = table
        self._client = client

    def answer(self, request: MarkRequest, /) -> Any:
        """Raises OutcomeUnknown, Throttled and the other TableErrors; TypeError for what is no request of marks."""
        match request:
            case Touch(lane, now_ms, due_ms, late):
                sets = "touched_ms = :now, due_ms = if_not_exists(due_ms, :due)" + (", late_ms = :now" if late else "")
                self._update(lane, f"SET {sets}", {":now": now_ms, ":due": due_ms})
                return None
            case Claim(seen, held_ms):
                return self._update(seen.lane, "SET held_ms = :held", {":held": held_ms}, _unchanged(seen))
            case Rest(lane, touched_ms, None):
                return self._write("delete_item", lane, {}, {"touched_ms": touched_ms})
            case Rest(lane, touched_ms, int(next_ms)):
                change = "SET next_ms = :next REMOVE due_ms, held_ms, late_ms"
                return self._update(lane, change, {":next": next_ms}, {"touched_ms": touched_ms})
            case Again(lane, due_ms, None):
                self._update(lane, "SET due_ms = :due REMOVE next_ms, held_ms", {":due": due_ms})
                return None
            case Again(lane, due_ms, int(next_ms)):
                change = "SET due_ms = :due, next_ms = :next REMOVE held_ms"
                self._update(lane, change, {":due": due_ms, ":next": next_ms})
                return None
            case Hold(lane, held_ms):
                self._update(lane, "SET held_ms = :held, due_ms = if_not_exists(due_ms, :held)", {":held": held_ms})
                return None
            case _:
                raise TypeError(f"not a request that marks answer: {request!r}")

    def _update(
        self, lane: Lane, change: str, values: dict[str, int], unchanged: dict[str, int | None] | None = None
    ) -> bool:
        given = {name: {"N": str(value)} for name, value in values.items()}
        return self._write(
            "update_item", lane, {"UpdateExpression": change, "ExpressionAttributeValues": given}, unchanged
        )

    def _write(
        self, operation: str, lane: Lane, arguments: dict[str, Any], unchanged: dict[str, int | None] | None
    ) -> bool:
        """Write; False when an attribute in `unchanged` is no longer what it says (None: absent)."""
        key = key_of(lane)
        if unchanged is not None:
            terms = [
                f"attribute_not_exists({name})" if value is None else f"{name} = :seen_{name}"
                for name, value in unchanged.items()
            ]
            seen = {f":seen_{name}": {"N": str(value)} for name, value in unchanged.items() if value is not None}
            values = {**arguments.get("ExpressionAttributeValues", {}), **seen}
            arguments = {**arguments, "ConditionExpression": " AND ".join(terms)}
            arguments |= {"ExpressionAttributeValues": values} if values else {}
        try:
            getattr(self._client, operation)(
                TableName=self._table, Key={"pk": {"S": key.pk}, "sk": {"S": key.sk}}, **arguments
            )
        except (ClientError, BotoCoreError) as failure:
            error = failures.error_of(failure, operation, True, self._table)
            if isinstance(error, failures.ConditionFailed):
                return False
            raise error from failure
        return True


def _unchanged(seen: Mark) -> dict[str, int | None]:
    return {"due_ms": seen.due_ms, "next_ms": seen.next_ms, "held_ms": seen.held_ms}
