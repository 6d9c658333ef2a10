"""What one DynamoDB request costs, worked out from the request, the answer and the sizes of the items seen before.

Rule 1: Only these three decide, never the engine's ConsumedCapacity: every engine gives the same bill.
Rule 2: A request whose cost its answer would not tell is refused before it is sent (`Uncountable`), never guessed.
"""

from lab.engines.partiql import request_of
from lab.meters import read_charges as reads
from lab.meters import write_charges as writes
from lab.meters.item_sizes import Fields, ItemSizes, Rule
from ledger.units import Cost

NOT_COUNTED = {"ExecuteStatement", "ExecuteTransaction", "TransactGetItems"}
HIDES_SIZES = {"AttributeUpdates", "FilterExpression", "IndexName", "QueryFilter", "ScanFilter"}

RULES: dict[str, Rule] = {
    "PutItem": writes.single_write("Put"),
    "UpdateItem": writes.single_write("Update"),
    "DeleteItem": writes.single_write("Delete"),
    "BatchExecuteStatement": writes.batch_execute,
    "BatchWriteItem": writes.batch_write,
    "TransactWriteItems": writes.transact_write,
    "GetItem": reads.get_item,
    "BatchGetItem": reads.batch_get_item,
    "Query": reads.page,
    "Scan": reads.page,
}


class Uncountable(ValueError):
    """No rule tells what this request would cost. Nothing was sent: ask in a form the meter knows, or add the rule."""


def refuse_uncountable(operation: str, request: Fields) -> None:
    """Raise `Uncountable` for a request that `charge` has no rule for."""
    actions = [action for actions in request.get("TransactItems", ()) for action in actions.values()]
    for part in (request, *actions):
        if HIDES_SIZES & part.keys() or "list_append" in part.get("UpdateExpression", ""):
            raise Uncountable(f"{operation} with {sorted(part)}")
    if operation in NOT_COUNTED or request.get("Select") == "COUNT":
        raise Uncountable(operation)
    for statement in request.get("Statements", ()):
        try:
            request_of(statement)
        except ValueError as error:
            raise Uncountable(statement["Statement"]) from error


def charge(operation: str, request: Fields, answer: Fields | None, seen: ItemSizes) -> Cost:
    """The cost of one request that reached DynamoDB; brings `seen` up to date.

    `request` is what the client's method was given, `answer` is botocore's parsed response, an error's too. Operations
    on tables, not items, cost no units.
    """
    rule = RULES.get(operation)
    return Cost(requests=1) + (rule(request, answer or {}, seen) if rule else Cost())
