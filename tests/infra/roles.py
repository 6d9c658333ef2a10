"""Clients that stand behind the roles' table of rights (infra/rights.py).

Rule 1: A request of the library becomes the operations that its own `DynamoTable` sends, and each
is judged. What is denied is answered as AWS answers, so a fall-back falls back; what is allowed, by
a table in memory of every Region.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from infra.rights import FOLLOW, LOG, RECEIVE, RIGHTS, Right
from ledger.core.errors import NotAllowed
from ledger.core.requests import Request
from ledger.tables.dynamo import DynamoTable
from ledger.tables.memory import MemoryTable

HOME, OTHER = "eu-west-1", "us-east-1"
BY_LAMBDA = {*RECEIVE.split(), *FOLLOW.split(), *LOG.split()}
"""What Lambda itself asks for in a function's name; CloudFormation makes no event source without
it.
"""

NAMED = re.compile(r"""['"](\w+)['"](?:: | = )\?""")
ANSWERS = {
    "batch_get_item": {"Responses": {}},
    "query": {"Items": []},
    "update_item": {"Attributes": {}},
}
SENT = {
    "send_message": "sqs:SendMessage",
    "change_message_visibility_batch": "sqs:ChangeMessageVisibility",
}


class Account:
    """denied: what no row allows. used: of each role, the rows with their actions and keys that
    allowed something.
    without: actions that are denied whatever the roles say. Queues and buses are judged, too."""

    def __init__(self) -> None:
        self.denied: list[tuple[object, ...]] = []
        self.used: set[tuple[str, Right, str]] = set()
        self.without: set[str] = set()
        self.queues: dict[str, list[str]] = {}
        self.table = MemoryTable(lists=False)
        self.table.peers = {OTHER: self.table}

    def judge(self, function: str, action: str, on: str, region: str = HOME, *pks: str) -> None:
        """Raises ClientError."""
        if action not in self.without:
            for right in RIGHTS[function]:
                if uses := right.uses(action, on, region, pks, HOME):
                    self.used |= {(function, right, what) for what in uses}
                    return
            self.denied.append((function, action, region, *sorted({*pks} or {on})))
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": action}}, action)


class Table:
    """The table as a function sees it."""

    def __init__(self, account: Account, function: str, region: str = HOME) -> None:
        def clients(region: str) -> Any:
            return Client(account, function, region)

        self._account = account
        self._sent = DynamoTable("ledger-dev", region, clients, pause=lambda seconds: None)

    def answer(self, request: Request, /) -> Any:
        answers = self._sent.answer(request)
        if isinstance(answers, tuple) and any(isinstance(each, NotAllowed) for each in answers):
            return answers
        return self._account.table.answer(request)


class Client:
    """A boto3 client of DynamoDB, SQS or EventBridge that judges every operation and answers
    that there is nothing.
    """

    def __init__(self, account: Account, function: str, region: str = HOME) -> None:
        self._account, self._function, self._region = account, function, region

    def __getattr__(self, operation: str) -> Any:
        def asked(**arguments: Any) -> Any:
            if operation in SENT:
                self._account.judge(self._function, SENT[operation], arguments["QueueUrl"])
                return {}
            pks_of: dict[str, list[str]] = {}
            for action, pk in _judged(operation, arguments):
                pks_of.setdefault(action, []).append(pk)
            for action, pks in pks_of.items():
                self._account.judge(
                    self._function, f"dynamodb:{action}", "table", self._region, *pks
                )
            if "Statements" in arguments:
                return {"Responses": [{} for _ in arguments["Statements"]]}
            return ANSWERS.get(operation, {})

        return asked

    def send_message_batch(self, *, QueueUrl: str, Entries: list[Any]) -> Any:
        for each in Entries:
            self.send_message(QueueUrl=QueueUrl)
            self._account.queues.setdefault(QueueUrl, []).append(each["MessageBody"])
        return {"Successful": Entries}

    def put_events(self, *, Entries: list[Any]) -> Any:
        for each in Entries:
            self._account.judge(self._function, "events:PutEvents", each["EventBusName"])
        return {"Entries": Entries, "FailedEntryCount": 0}


def _judged(operation: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The actions that IAM judges an operation by, each with a partition key."""
    match operation:
        case "query":
            yield "Query", arguments["ExpressionAttributeValues"][":pk"]["S"]
        case "batch_get_item":
            for asked in arguments["RequestItems"].values():
                yield from (("BatchGetItem", key["pk"]["S"]) for key in asked["Keys"])
        case "batch_execute_statement":
            for each in arguments["Statements"]:
                yield from _judged("execute_statement", each)
        case "execute_statement":
            text = arguments["Statement"]
            yield (
                f"PartiQL{text.split()[0].title()}",
                arguments["Parameters"][NAMED.findall(text).index("pk")]["S"],
            )
        case "transact_write_items":
            for each in arguments["TransactItems"]:
                ((kind, write),) = each.items()
                yield from _judged(f"{kind.lower()}_item", write)
        case _:
            key = arguments.get("Key") or arguments["Item"]
            yield operation.title().replace("_", ""), key["pk"]["S"]
