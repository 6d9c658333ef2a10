"""What a rendered template's roles allow: an evaluator of IAM policies, and functions that run behind it.

Rule 1: A request names all its partition keys, and one statement must cover them all: ForAllValues.
Rule 2: A statement that hangs on a condition of the template says so: `If`; one that several roles share: `Shared`.
Rule 3: What another resource's ARN would be is its logical name.
Rule 4: A request of the library becomes the operations that its own `DynamoTable` sends, and each is judged. What is
denied is answered as AWS answers, so a fall-back falls back; what is allowed, by a table in memory of every Region.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from ledger.errors import NotAllowed
from ledger.memory import MemoryTable
from ledger.requests import Request
from ledger.table import DynamoTable
from tests.infra.template import listed, of_type, target

HOME, OTHER, THIRD = "eu-west-1", "us-east-1", "ap-south-1"
ACCOUNT = "111122223333"
VALUES = {
    "AWS::Partition": "aws",
    "AWS::Region": HOME,
    "AWS::AccountId": ACCOUNT,
    "TableName": "ledger-dev",
    "Regions": [HOME, OTHER],
    "StreamArn": f"arn:aws:dynamodb:{HOME}:{ACCOUNT}:table/ledger-dev/stream/2026",
    "Name": "ledger",
    "Stage": "dev",
}
NAMED = re.compile(r"""['"](\w+)['"](?:: | = )\?""")
ACTIONS = {"INSERT": "PartiQLInsert", "DELETE": "PartiQLDelete"}
ANSWERS = {"batch_get_item": {"Responses": {}}, "query": {"Items": []}, "update_item": {"Attributes": {}}}


def table_in(region: str) -> str:
    return f"arn:aws:dynamodb:{region}:{ACCOUNT}:table/ledger-dev"


def statements_of(service: dict[str, Any], role: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of the role itself, and of the policies that it has with others; every condition of the template holds."""
    managed = of_type(service, "AWS::IAM::ManagedPolicy")
    shared = [managed[each["Ref"]]["PolicyDocument"] for each in role.get("ManagedPolicyArns", [])]
    own = [policy["PolicyDocument"] for policy in role["Policies"]]
    return [
        _resolved(each) | ({"Shared": True} if document in shared else {})
        for document in (*own, *shared)
        for each in document["Statement"]
    ]


def allowing(
    service: dict[str, Any], function: str, action: str, resource: str, region: str, pks: Sequence[str | None] = ()
) -> list[dict[str, Any]]:
    """The statements of a function's role that allow a request, sent to a Region."""
    role = of_type(service, "AWS::IAM::Role")[f"{function}Role"]
    return [
        statement
        for statement in statements_of(service, role)
        if action in listed(statement["Action"])
        and any(fnmatch.fnmatchcase(resource, pattern) for pattern in listed(statement["Resource"]))
        and all(_holds(statement.get("Condition"), region, pk) for pk in pks or (None,))
    ]


def _resolved(value: Any) -> Any:
    """A value with Ref, Sub, GetAtt and If worked out."""
    match value:
        case [*parts]:
            return [_resolved(part) for part in parts]
        case {"Ref": name}:
            return VALUES[name]
        case {"Fn::Sub": text}:
            return re.sub(r"\$\{([\w:]+)\}", lambda name: str(VALUES.get(name[1], name[0])), text)
        case {"Fn::If": [condition, yes, _]}:
            return _resolved(yes) | {"If": condition}
        case {"Fn::GetAtt": [name, _]}:
            return name
        case dict():
            return {key: _resolved(each) for key, each in value.items()}
    return value


def _holds(condition: dict[str, Any] | None, region: str, pk: str | None) -> bool:
    """As IAM has it: every operator must hold."""
    if condition is None:
        return True
    if condition["Null"] == {"dynamodb:LeadingKeys": "false"} and pk is None:
        return False
    if region not in condition.get("StringEquals", {}).get("aws:RequestedRegion", [region]):
        return False
    return pk is None or any(fits(pk, pattern, region) for pattern in patterns_of(condition))


def patterns_of(condition: dict[str, Any] | None) -> list[str]:
    """Those of partition keys."""
    found = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] if condition else []
    return [pattern.replace("\\$", "$") for pattern in found]


def fits(pk: str, pattern: str, region: str) -> bool:
    """`${aws:RequestedRegion}` stands for the Region that was asked."""
    return fnmatch.fnmatchcase(pk, pattern.replace("${aws:RequestedRegion}", region))


class Account:
    """denied: what no statement allowed. used: function, Sid and action, or pattern of keys, of what one alone did.
    without: actions that are denied whatever the roles say. Queues and buses are judged, too."""

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
        """The queue that a function is given, by its logical name."""
        functions = of_type(self.service, "AWS::Lambda::Function")
        given = functions[f"{function}LambdaFunction"]["Environment"]["Variables"][variable]
        return target(given["Fn::If"][1] if "Fn::If" in given else given)


class Table:
    """The table as a function sees it."""

    def __init__(self, account: Account, function: str) -> None:
        def clients(region: str) -> Any:
            return Operations(account, function, region)

        self._account = account
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
            pks_of: dict[str, list[str]] = {}
            for action, pk in _judged(operation, arguments):
                pks_of.setdefault(action, []).append(pk)
            for action, pks in pks_of.items():
                table = table_in(self._region)
                self._account.judge(self._function, f"dynamodb:{action}", table, self._region, *pks)
            if "Statements" in arguments:
                return {"Responses": [{} for _ in arguments["Statements"]]}
            return ANSWERS.get(operation, {})

        return asked


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
            yield ACTIONS[text.split()[0]], arguments["Parameters"][NAMED.findall(text).index("pk")]["S"]
        case "transact_write_items":
            for each in arguments["TransactItems"]:
                ((kind, write),) = each.items()
                yield from _judged(f"{kind.lower()}_item", write)
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
