"""What reads cost: from the request, the answer (`{}` if it was lost) and the sizes seen before.

Rule 1: Whole items are charged, whatever is projected; a projected item must carry its key to be known.
Rule 2: A batch rounds up item by item, a page of a Query or Scan once; an item that is not there costs the least there
is.
Rule 3: An error costs nothing. A read whose answer was lost costs the least it can.

UNITS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
"""

from lab.meters.item_sizes import Fields, ItemSizes, error
from ledger.units import Cost, Item, item_bytes, read_units


def read_bytes(table: str, item: Item, request: Fields, seen: ItemSizes) -> int:
    """The whole item's bytes: a projection costs no less (UNITS)."""
    size = item_bytes(item)
    if "ProjectionExpression" in request or "AttributesToGet" in request:
        return max(size, seen.size(table, item))
    seen.resize(table, item, size)
    return size


def get_item(request: Fields, answer: Fields, seen: ItemSizes) -> Cost:
    if error(answer):
        return Cost()
    table, item = request["TableName"], answer.get("Item")
    size = read_bytes(table, {**item, **request["Key"]}, request, seen) if item else 0
    return Cost(read_units=read_units(size, consistent=request.get("ConsistentRead", False)))


def batch_get_item(request: Fields, answer: Fields, seen: ItemSizes) -> Cost:
    units = 0.0
    if error(answer):
        return Cost()
    for table, wanted in request["RequestItems"].items():
        items = answer.get("Responses", {}).get(table, [])
        unprocessed = len(answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", ()))
        absent = len(wanted["Keys"]) - unprocessed - len(items)
        sizes = [read_bytes(table, item, wanted, seen) for item in items] + [0] * absent
        units += sum(read_units(size, consistent=wanted.get("ConsistentRead", False)) for size in sizes)
    return Cost(read_units=units)


def page(request: Fields, answer: Fields, seen: ItemSizes) -> Cost:
    if error(answer):
        return Cost()
    size = sum(read_bytes(request["TableName"], item, request, seen) for item in answer.get("Items", ()))
    return Cost(read_units=read_units(size, consistent=request.get("ConsistentRead", False)))
