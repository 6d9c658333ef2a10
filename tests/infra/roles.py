"""What a rendered template's roles allow: an evaluator of IAM policies, and clients that stand behind it.

Rule 1: A request names all its partition keys, and one statement must cover them all: ForAllValues.
Rule 2: A statement that hangs on a condition of the template says so: `If`; one that several roles share: `Shared`.
Rule 3: What another resource's ARN would be is its logical name.
Rule 4: A request of the library becomes the operations that its own `DynamoTable` sends, and each is judged. What is
denied is answered as AWS answers, so a fall-back falls back; what is allowed, by a table in memory of every Region.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from ledger.errors import NotAllowed
from ledger.memory import MemoryTable
from ledger.requests import Request
from ledger.table import DynamoTable
from tests.infra.template import listed, of_type, target

HOME, OTHER = "eu-west-1", "us-east-1"
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
SENT = {"send_message": "sqs:SendMessage", "change_message_visibility_batch": "sqs:ChangeMessageVisibility"}


def table_in(region: str) -> str:
    return f"arn:aws:dynamodb:{region}:{ACCOUNT}:table/ledger-dev"


def statements_of(service: dict[str, Any], function: str) -> list[dict[str, Any]]:
    """Those of a function's role, and of the policies that it shares; every condition of the template holds."""
    role = of_type(service, "AWS::IAM::Role")[f"{function}Role"]
    managed = of_type(service, "AWS::IAM::ManagedPolicy")
    shared = [managed[each["Ref"]] for each in role.get("ManagedPolicyArns", [])]
    return [
        _resolved(each) | ({"Shared": True} if policy in shared else {})
        for policy in (*role["Policies"], *shared)
        for each in policy["PolicyDocument"]["Statement"]
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


def patterns_of(statement: dict[str, Any]) -> list[str]:
    """Those of partition keys, where `${aws:RequestedRegion}` stands for the Region that was asked."""
    found = (
        statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] if "Condition" in statement else []
    )
    return [pattern.replace("\\$", "$") for pattern in found]


def matched(statement: dict[str, Any], region: str, pk: str) -> list[str]:
    """The patterns that a partition key fits at the endpoint of a Region."""
    patterns = patterns_of(statement)
    return [each for each in patterns if fnmatch.fnmatchcase(pk, each.replace("${aws:RequestedRegion}", region))]


def _allows(statement: dict[str, Any], action: str, resource: str, region: str, pks: tuple[str, ...]) -> bool:
    """As IAM has it: every operator must hold."""
    regions = statement.get("Condition", {}).get("StringEquals", {}).get("aws:RequestedRegion", [region])
    return (
        action in listed(statement["Action"])
        and any(fnmatch.fnmatchcase(resource, pattern) for pattern in listed(statement["Resource"]))
        and region in regions
        and ("Condition" not in statement or bool(pks))  # Null
        and all(matched(statement, region, pk) for pk in pks)
    )


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
        statements = statements_of(self.service, function)
        allowed = [each for each in statements if _allows(each, action, resource, region, pks)]
        always = [each for each in allowed if "If" not in each] or allowed
        own = [each for each in always if "Shared" not in each] or always
        for each in own if len(own) == 1 else ():  # else one of them would do
            patterns = (pattern for pk in pks for pattern in matched(each, region, pk))
            self.used |= {(function, each["Sid"], what) for what in (action, *patterns)}
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
    """A boto3 client of DynamoDB, SQS or EventBridge that judges every operation and answers that there is nothing."""

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
                table = table_in(self._region)
                self._account.judge(self._function, f"dynamodb:{action}", table, self._region, *pks)
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
            bus = f"arn:aws:events:{HOME}:{ACCOUNT}:event-bus/{each['EventBusName']}"
            self._account.judge(self._function, "events:PutEvents", bus)
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
            yield ACTIONS[text.split()[0]], arguments["Parameters"][NAMED.findall(text).index("pk")]["S"]
        case "transact_write_items":
            for each in arguments["TransactItems"]:
                ((kind, write),) = each.items()
                yield from _judged(f"{kind.lower()}_item", write)
        case _:
            key = arguments.get("Key") or arguments["Item"]
            yield "".join(map(str.capitalize, operation.split("_"))), key["pk"]["S"]
