"""What one DynamoDB request costs, worked out from the request, the answer and the sizes of the items seen before.

Rule 1: Only these three decide, never the engine's ConsumedCapacity: every engine gives the same bill.
Rule 2: A request whose cost its answer would not tell is refused before it is sent (`Uncountable`), never guessed.
Rule 3: Reads: whole items are charged, whatever is projected; a projected item must carry its key to be known. A batch
rounds up item by item, a page of a Query or Scan once; an item that is not there costs the least there is, and so does
a read whose answer was lost.
Rule 4: A write costs the larger of the item before and after, also when its condition failed (UNITS).
Rule 5: An item after an Update is what the answer says (ALL_NEW), else the larger of what it was and of what the
request sets, each number taken as 21 bytes; elements that are added to a set make it larger by so many bytes.
Rule 6: An error costs nothing, except a failed condition: AWS names no units for throttled, refused and 5xx requests.
Rule 7: A write whose answer was lost is charged, and remembered, as applied.

UNITS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
TRANSACTIONS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
"""

import re
from collections.abc import Callable

from lab.engines.partiql import request_of
from lab.measure.charge import Charge
from lab.measure.item_sizes import Fields, ItemSizes
from ledger.cost import Item, item_bytes, read_units, value_bytes, write_units

NOT_COUNTED = {"BatchWriteItem", "ExecuteStatement", "ExecuteTransaction", "TransactGetItems"}
HIDES_SIZES = {"AttributeUpdates", "FilterExpression", "IndexName", "QueryFilter", "ScanFilter"}
FAILED = {
    *("ConditionalCheckFailedException", "ConditionalCheckFailed", "DuplicateItem", "DuplicateItemException"),
    "TransactionCanceledException",
}
"""The errors of a condition, which cost what the write would have."""

EXPRESSION_WORD = re.compile(r"[:#]?[A-Za-z_]\w*")
ADDED = re.compile(r"(?<![#:])\bADD\b(.*?)(?=(?<![#:])\b(?:SET|REMOVE|DELETE)\b|$)", re.DOTALL)
EXPRESSION_KEYWORDS = {"SET", "ADD", "REMOVE", "DELETE", "if_not_exists"}
NUMBER_BYTES_MAX = 21


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


def charge(operation: str, request: Fields, answer: Fields | None, seen: ItemSizes) -> Charge:
    """The cost of one request that reached DynamoDB; brings `seen` up to date.

    `request` is what the client's method was given, `answer` is botocore's parsed response, an error's too. Operations
    on tables, not items, cost no units.
    """
    rule, failed = RULES.get(operation), error(answer or {})
    if rule is None or (failed and failed not in FAILED):
        return Charge(requests=1)
    return Charge(requests=1) + rule(request, answer or {}, seen)


Rule = Callable[[Fields, Fields, ItemSizes], Charge]  # the request, its answer, and what was seen before


def error(answer: Fields) -> str:
    """The error code of an answer or of a statement's response; empty if it succeeded."""
    return str(answer.get("Error", {}).get("Code", ""))


def read_bytes(table: str, item: Item, request: Fields, seen: ItemSizes) -> int:
    """The whole item's bytes: a projection costs no less (UNITS)."""
    size = item_bytes(item)
    if "ProjectionExpression" in request:
        return max(size, seen.size(table, item))
    seen.resize(table, item, size)
    return size


def get_item(request: Fields, answer: Fields, seen: ItemSizes) -> Charge:
    item = answer.get("Item")
    size = read_bytes(request["TableName"], {**item, **request["Key"]}, request, seen) if item else 0
    return Charge(read_units=read_units(size, consistent=request.get("ConsistentRead", False)))


def batch_get_item(request: Fields, answer: Fields, seen: ItemSizes) -> Charge:
    units = 0.0
    for table, wanted in request["RequestItems"].items():
        items = answer.get("Responses", {}).get(table, [])
        unprocessed = len(answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", ()))
        absent = len(wanted["Keys"]) - unprocessed - len(items)
        sizes = [read_bytes(table, item, wanted, seen) for item in items] + [0] * absent
        units += sum(read_units(size, consistent=wanted.get("ConsistentRead", False)) for size in sizes)
    return Charge(read_units=units)


def page(request: Fields, answer: Fields, seen: ItemSizes) -> Charge:
    size = sum(read_bytes(request["TableName"], item, request, seen) for item in answer.get("Items", ()))
    return Charge(read_units=read_units(size, consistent=request.get("ConsistentRead", False)))


def write(
    kind: str,
    action: Fields,
    seen: ItemSizes,
    *,
    applied: bool,
    old: Item | None = None,
    new: Item | None = None,
    transactional: bool = False,
) -> Charge:
    """One item's write: the larger of before and after, also when its condition failed (UNITS)."""
    table, key = action["TableName"], action.get("Key") or action["Item"]
    before = item_bytes(old) if old else seen.size(table, key)
    match kind:
        case "Put":
            after = item_bytes(action["Item"])
        case "Update":
            after = item_bytes(new) if new else updated_bytes(action, before)
        case "Delete":
            after = 0
        case _:  # a transaction's ConditionCheck changes nothing and costs a write all the same
            after = before
    seen.resize(table, key, after if applied else before)
    units = write_units(max(before, after), transactional=transactional)
    return Charge(write_units=units, replicated_units=units if applied and kind != "ConditionCheck" else 0)


def updated_bytes(action: Fields, before: int) -> int:
    """An element that is in the set already is taken as new: who adds one again should set a condition."""
    expression = action.get("UpdateExpression", "")
    size = item_bytes(action["Key"])
    for word in set(EXPRESSION_WORD.findall(expression)) - EXPRESSION_KEYWORDS:
        if word.startswith(":"):
            value = action["ExpressionAttributeValues"][word]
            size += NUMBER_BYTES_MAX if "N" in value else value_bytes(value)
        else:
            size += len(action.get("ExpressionAttributeNames", {}).get(word, word).encode())
    added = [word for clause in ADDED.findall(expression) for word in EXPRESSION_WORD.findall(clause) if word[0] == ":"]
    values = [action["ExpressionAttributeValues"][word] for word in added]
    elements = sum(value_bytes(value) for value in values if "N" not in value)
    return max(before + elements, size)


def single_write(kind: str) -> Rule:
    def rule(request: Fields, answer: Fields, seen: ItemSizes) -> Charge:
        new = answer.get("Attributes") if request.get("ReturnValues") == "ALL_NEW" else None
        return write(kind, request, seen, applied=not error(answer), old=answer.get("Item"), new=new)

    return rule


def batch_execute(request: Fields, answer: Fields, seen: ItemSizes) -> Charge:
    cost = Charge()
    statements = request["Statements"]
    for statement, response in zip(statements, answer.get("Responses") or [{}] * len(statements), strict=True):
        operation, action = request_of(statement)
        failed = error(response)
        if not failed or failed in FAILED:
            old = response.get("Error", {}).get("Item")
            cost += write(operation.removesuffix("Item"), action, seen, applied=not failed, old=old)
    return cost


def transact_write(request: Fields, answer: Fields, seen: ItemSizes) -> Charge:
    """Twice the units for every item, also when cancelled; a token's repeat only reads the items (TRANSACTIONS)."""
    failed, token = error(answer), request.get("ClientRequestToken", "")
    actions = [(kind, action) for entry in request["TransactItems"] for kind, action in entry.items()]
    if not failed and token in seen.tokens:
        sizes = [seen.size(action["TableName"], action.get("Key") or action["Item"]) for _, action in actions]
        return Charge(read_units=sum(read_units(size, consistent=True, transactional=True) for size in sizes))
    if not failed and token:
        seen.tokens.add(token)
    cost = Charge()
    for (kind, action), reason in zip(actions, answer.get("CancellationReasons") or [{}] * len(actions), strict=True):
        cost += write(kind, action, seen, applied=not failed, old=reason.get("Item"), transactional=True)
    return cost


RULES: dict[str, Rule] = {
    "PutItem": single_write("Put"),
    "UpdateItem": single_write("Update"),
    "DeleteItem": single_write("Delete"),
    "BatchExecuteStatement": batch_execute,
    "TransactWriteItems": transact_write,
    "GetItem": get_item,
    "BatchGetItem": batch_get_item,
    "Query": page,
    "Scan": page,
}
