"""What writes cost: from the request, the answer (`{}` if it was lost) and the sizes seen before.

Rule 1: A write costs the larger of the item before and after, also when its condition failed (UNITS).
Rule 2: An item after an Update is what the answer says (ALL_NEW), else the larger of what it was and of what the
request sets, each number taken as 21 bytes; elements that are added to a set make it larger by so many bytes.
Rule 3: An error costs nothing, except a failed condition: AWS names no units for throttled, refused and 5xx requests.
Rule 4: A write whose answer was lost is charged, and remembered, as applied.

UNITS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
TRANSACTIONS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
"""

import re

from lab.engines.partiql import request_of
from lab.meters.item_sizes import Fields, ItemSizes, Rule, error
from ledger.units import Cost, Item, item_bytes, read_units, value_bytes, write_units

FAILED = {"ConditionalCheckFailedException", "ConditionalCheckFailed", "DuplicateItem", "DuplicateItemException"}
EXPRESSION_WORD = re.compile(r"[:#]?[A-Za-z_]\w*")
ADDED = re.compile(r"(?<![#:])\bADD\b(.*?)(?=(?<![#:])\b(?:SET|REMOVE|DELETE)\b|$)", re.DOTALL)
EXPRESSION_KEYWORDS = {"SET", "ADD", "REMOVE", "DELETE", "if_not_exists"}
NUMBER_BYTES_MAX = 21


def write(
    kind: str,
    action: Fields,
    seen: ItemSizes,
    *,
    applied: bool,
    old: Item | None = None,
    new: Item | None = None,
    transactional: bool = False,
) -> Cost:
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
    return Cost(write_units=units, replicated_units=units if applied and kind != "ConditionCheck" else 0)


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
    def rule(request: Fields, answer: Fields, seen: ItemSizes) -> Cost:
        failed = error(answer)
        if failed and failed not in FAILED:
            return Cost()
        returned, which = answer.get("Attributes"), request.get("ReturnValues")
        old = answer.get("Item") or (returned if which == "ALL_OLD" else None)
        new = returned if which == "ALL_NEW" else None
        return write(kind, request, seen, applied=not failed, old=old, new=new)

    return rule


def batch_execute(request: Fields, answer: Fields, seen: ItemSizes) -> Cost:
    cost = Cost()
    if error(answer):
        return cost
    statements = request["Statements"]
    for statement, response in zip(statements, answer.get("Responses") or [{}] * len(statements), strict=True):
        operation, action = request_of(statement)
        failed = error(response)
        if not failed or failed in FAILED:
            old = response.get("Error", {}).get("Item")
            cost += write(operation.removesuffix("Item"), action, seen, applied=not failed, old=old)
    return cost


def batch_write(request: Fields, answer: Fields, seen: ItemSizes) -> Cost:
    cost = Cost()
    if error(answer):
        return cost
    for table, entries in request["RequestItems"].items():
        unprocessed = answer.get("UnprocessedItems", {}).get(table, [])
        for entry in entries:
            if entry not in unprocessed:
                ((kind, action),) = entry.items()
                cost += write(kind.removesuffix("Request"), {"TableName": table, **action}, seen, applied=True)
    return cost


def transact_write(request: Fields, answer: Fields, seen: ItemSizes) -> Cost:
    """Twice the units for every item, also when cancelled; a token's repeat only reads the items (TRANSACTIONS)."""
    failed, token = error(answer), request.get("ClientRequestToken", "")
    if failed and failed != "TransactionCanceledException":
        return Cost()
    actions = [(kind, action) for entry in request["TransactItems"] for kind, action in entry.items()]
    if not failed and token in seen.tokens:
        sizes = [seen.size(action["TableName"], action.get("Key") or action["Item"]) for _, action in actions]
        return Cost(read_units=sum(read_units(size, consistent=True, transactional=True) for size in sizes))
    if not failed and token:
        seen.tokens.add(token)
    cost = Cost()
    for (kind, action), reason in zip(actions, answer.get("CancellationReasons") or [{}] * len(actions), strict=True):
        cost += write(kind, action, seen, applied=not failed, old=reason.get("Item"), transactional=True)
    return cost
