"""An AWS account in which functions run behind the roles of a rendered template, and nothing else is real.

Rule 1: A request of the library becomes the operations that its own `DynamoTable` sends, and each is judged: its
action, its Region, all its partition keys. What is denied is answered as AWS answers, so a fall-back falls back. What
is allowed is answered by a table in memory, which is every Region's.
Rule 2: Queues and buses are named as the template names them to the function, and what is sent there is judged too.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from ledger.errors import NotAllowed
from ledger.memory import MemoryTable
from ledger.requests import Request
from ledger.table import DynamoTable
from tests.infra.evaluator import ACCOUNT, HOME, OTHER, allowing, fits, patterns_of, table_in
from tests.infra.template import of_type

NAMED = re.compile(r"""['"](\w+)['"](?:: | = )\?""")
ACTIONS = {"INSERT": "PartiQLInsert", "DELETE": "PartiQLDelete"}
ANSWERS = {
    "batch_get_item": {"Responses": {}},
    "query": {"Items": []},
    "update_item": {"Attributes": {}},
}


class Account:
    """denied: what no statement allowed. used: function, Sid and action, or pattern of keys, of what one alone did.
    without: actions that are denied whatever the roles say."""

    def __init__(self, service: dict[str, Any]) -> None:
        self.service = service
        self.denied: list[tuple[object, ...]] = []
        self.used: set[tuple[str, str, str]] = set()
        self.without: set[str] = set()
        self.queues: dict[str, list[str]] = {}
        self.table = MemoryTable(lists=False)
        self.table.peers = {OTHER: self.table}

    def judge(self, function: str, action: str, resource: str, region: str = HOME, *pks: str) -> None:
        """Raises ClientError."""
        allowed = allowing(self.service, function, action, resource, region, pks)
        always = [each for each in allowed if "If" not in each] or allowed
        own = [each for each in always if "Shared" not in each] or always
        for each in own if len(own) == 1 else ():  # else one of them would do
            matched = (one for one in patterns_of(each.get("Condition")) if any(fits(pk, one, region) for pk in pks))
            self.used |= {(function, each["Sid"], what) for what in (action, *matched)}
        if not allowed and action not in self.without:
            self.denied.append((function, action, region, *sorted({*pks} or {resource})))
        if not allowed or action in self.without:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": action}}, action)

    def url(self, function: str, variable: str) -> str:
        """The queue that a function is told of, by its logical name."""
        functions = of_type(self.service, "AWS::Lambda::Function")
        said = functions[f"{function}LambdaFunction"]["Environment"]["Variables"][variable]
        return str((said["Fn::If"][1] if "Fn::If" in said else said)["Ref"])


class Table:
    """The table as a function sees it."""

    def __init__(self, account: Account, function: str) -> None:
        self._account = account

        def clients(region: str) -> Any:
            return Operations(account, function, region)

        self._sent = DynamoTable("ledger-dev", HOME, clients, pause=lambda seconds: None)

    def answer(self, request: Request, /) -> Any:
        answers = self._sent.answer(request)
        if isinstance(answers, tuple) and any(isinstance(each, NotAllowed) for each in answers):
            return answers
        return self._account.table.answer(request)


class Operations:
    """A boto3 client of a Region that judges every operation and answers that there is nothing."""

    def __init__(self, account: Account, function: str, region: str) -> None:
        self._account, self._function, self._region = account, function, region

    def __getattr__(self, operation: str) -> Any:
        def asked(**arguments: Any) -> Any:
            for action, pks in actions_of(operation, arguments).items():
                table = table_in(self._region)
                self._account.judge(self._function, f"dynamodb:{action}", table, self._region, *pks)
            if "Statements" in arguments:
                return {"Responses": [{} for _ in arguments["Statements"]]}
            return ANSWERS.get(operation, {})

        return asked


def actions_of(operation: str, arguments: Mapping[str, Any]) -> dict[str, list[str]]:
    """The actions that IAM judges an operation by, each with its partition keys."""
    found: dict[str, list[str]] = {}
    for action, pk in _each(operation, arguments):
        found.setdefault(action, []).append(pk)
    return found


def _each(operation: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    match operation:
        case "query":
            yield "Query", arguments["ExpressionAttributeValues"][":pk"]["S"]
        case "batch_get_item":
            for asked in arguments["RequestItems"].values():
                yield from (("BatchGetItem", key["pk"]["S"]) for key in asked["Keys"])
        case "batch_execute_statement":
            for each in arguments["Statements"]:
                yield from _each("execute_statement", each)
        case "execute_statement":
            text = arguments["Statement"]
            yield ACTIONS[text.split()[0]], arguments["Parameters"][NAMED.findall(text).index("pk")]["S"]
        case "transact_write_items":
            for each in arguments["TransactItems"]:
                ((kind, write),) = each.items()
                yield from _each(f"{kind.lower()}_item", write)
        case _:
            key = arguments.get("Key") or arguments["Item"]
            yield "".join(map(str.capitalize, operation.split("_"))), key["pk"]["S"]


class Aws:
    """A boto3 client of SQS and of EventBridge."""

    def __init__(self, account: Account, function: str) -> None:
        self._account, self._function = account, function

    def send_message(self, *, QueueUrl: str, MessageBody: str, **_: Any) -> Any:
        self._account.judge(self._function, "sqs:SendMessage", QueueUrl)
        self._account.queues.setdefault(QueueUrl, []).append(MessageBody)
        return {}

    def send_message_batch(self, *, QueueUrl: str, Entries: list[Any]) -> Any:
        for each in Entries:
            self.send_message(QueueUrl=QueueUrl, MessageBody=each["MessageBody"])
        return {"Successful": Entries}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: list[Any]) -> Any:
        self._account.judge(self._function, "sqs:ChangeMessageVisibility", QueueUrl)
        return {}

    def put_events(self, *, Entries: list[Any]) -> Any:
        for each in Entries:
            bus = f"arn:aws:events:{HOME}:{ACCOUNT}:event-bus/{each['EventBusName']}"
            self._account.judge(self._function, "events:PutEvents", bus)
        return {"Entries": Entries, "FailedEntryCount": 0}
