"""A table in memory whose requests are charged as boto3's would be.

Rule 1: each request is charged as the operation that `ledger.dynamo.ask` makes of it, by `charges.py`, whose rules know
nothing of where the answer came from.
Rule 2: what several requests at once and several items in one are, is as in `ledger.table`; a page ends where
DynamoDB's does. A Scan is the table's own work, which deletes what has outlived its time: it is not charged.
"""

from typing import Any

from lab.measure.charge import Charge
from lab.measure.charges import charge
from lab.measure.item_sizes import ItemSizes
from ledger.cost import item_bytes
from ledger.dynamo import ask
from ledger.memory import MemoryTable
from ledger.requests import (
    AlreadyThere,
    Delete,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Page,
    Pause,
    Put,
    PutMany,
    Query,
    Request,
    Scan,
    Together,
    Transact,
    Update,
    Written,
)

TABLE = "counters"
PAGE_BYTES, PAGE_ITEMS = 1_000_000, 100_000
OPERATIONS = {
    "put_item": "PutItem",
    "update_item": "UpdateItem",
    "delete_item": "DeleteItem",
    "get_item": "GetItem",
    "query": "Query",
}


class MeteredTable:
    """`cost`: of all requests while it `is_charged`."""

    def __init__(self, *, is_charged: bool = False, lists: bool = True) -> None:
        self.table = MemoryTable(lists=lists, page_size=PAGE_ITEMS)
        self.is_charged = is_charged
        self.cost = Charge()
        self._seen = ItemSizes()

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, Together):
            return tuple(map(self.answer, request.requests))
        answer = self._page(request) if isinstance(request, Query) else self.table.answer(request)
        if self.is_charged:
            for operation, arguments, response in _charged(request, answer):
                self.cost += charge(operation, arguments, response, self._seen)
        return answer

    def _page(self, request: Query) -> Page:
        page: Page = self.table.answer(request)
        left, count = PAGE_BYTES, 0
        while count < len(page.items) and left >= 0:
            left -= item_bytes(page.items[count])
            count += 1
        if count < len(page.items) or count == request.limit:  # who has all of a limit is not told that it was the last
            return Page(page.items[:count], page.items[count - 1]["sk"]["S"])
        return page


def _charged(request: Request, answer: Any) -> list[tuple[str, Any, Any]]:
    """Each operation with its arguments and the response that boto3 would give."""
    match request:
        case Put() | Update() | Delete() | Get() | Query():
            name, arguments = ask.operation(request, TABLE)
            return [(OPERATIONS[name], arguments, _response(request, answer))]
        case GetMany(keys, consistent):
            found = [item for item in answer if item is not None]
            asked = {"RequestItems": ask.batch_get(keys, consistent, TABLE)}
            return [("BatchGetItem", asked, {"Responses": {TABLE: found}})]
        case Transact():
            _, arguments = ask.operation(request, TABLE)
            return [("TransactWriteItems", arguments, _refused(answer) if answer is not None else {})]
        case PutMany(items):
            return _batches(items, answer, ask.insert)
        case DeleteMany(items):
            return _batches(items, answer, ask.delete)
        case Pause() | Scan():
            return []
        case _:
            raise TypeError(f"not charged here: {request!r}")


def _response(request: Request, answer: Any) -> dict[str, Any]:
    match request:
        case Get():
            return {"Item": answer} if answer is not None else {}
        case Query():
            return {"Items": answer.items}
        case _ if answer is None or isinstance(answer, Written):
            return {"Attributes": answer.item} if answer is not None else {}
    return {"Error": {"Code": "ConditionalCheckFailedException"}} | ({"Item": answer} if answer else {})


def _refused(answer: tuple[Item | None, ...]) -> dict[str, Any]:
    reasons = [{"Code": "ConditionalCheckFailed", "Item": there} if there else {} for there in answer]
    return {"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}


def _batches(items: tuple[Item, ...], answer: Any, statement: ask.Statement) -> list[tuple[str, Any, Any]]:
    size = ask.STATEMENTS_MAX
    statements = [statement(TABLE, item) for item in items]
    responses = [
        {"Error": {"Code": "DuplicateItem", "Item": each.item}} if isinstance(each, AlreadyThere) else {}
        for each in answer
    ]
    return [
        ("BatchExecuteStatement", {"Statements": statements[i : i + size]}, {"Responses": responses[i : i + size]})
        for i in range(0, len(statements), size)
    ]
