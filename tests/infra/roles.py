"""What each function's role allows, as one table, and clients that stand behind it.

Rule 1: A row is a statement. A request names all its partition keys, and one row must cover them all: ForAllValues.
Rule 2: What another resource's ARN would be is its logical name.
Rule 3: A request of the library becomes the operations that its own `DynamoTable` sends, and each is judged. What is
denied is answered as AWS answers, so a fall-back falls back; what is allowed, by a table in memory of every Region.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from ledger.errors import NotAllowed
from ledger.memory import MemoryTable
from ledger.requests import Request
from ledger.table import DynamoTable

HOME, OTHER = "eu-west-1", "us-east-1"
ROLES = ("AddFromQueue", "Api", "Ring", "Compact", "Sweep", "Canary")
RECEIVE = "sqs:ReceiveMessage sqs:DeleteMessage sqs:GetQueueAttributes"
FOLLOW = "dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator dynamodb:ListStreams"
LOG = "logs:CreateLogStream logs:PutLogEvents"
BY_LAMBDA = {*RECEIVE.split(), *FOLLOW.split(), *LOG.split()}
"""What Lambda itself asks for in a function's name; CloudFormation makes no event source without it."""

ALLOWED = (
    # roles               actions                         on the table at      partition keys
    ("AddFromQueue Api", "PutItem PartiQLInsert", "home", "delta#*"),  # a fail-over retry keeps its lane
    ("AddFromQueue Sweep", "GetItem", "home", "shape"),
    ("Api", "GetItem BatchGetItem Query", "home", "delta#* fold#* gate#* past#* shape"),
    ("Api", "Query", "home", "lane#*"),  # the replica has every Region's
    ("AddFromQueue Api", "PutItem UpdateItem", "each", "gate#{here}#*"),
    ("AddFromQueue Api", "PartiQLInsert", "each", "past#{here}#* hold#{here}#*"),
    ("AddFromQueue Api", "PartiQLDelete", "each", "hold#{here}#*"),
    ("AddFromQueue Api", "GetItem Query", "each", "gate#{here}#* past#{here}#* hold#{here}#*"),
    ("AddFromQueue Api", "BatchGetItem", "each", "gate#* fold#*"),  # copies; without a gate, in any lane
    ("AddFromQueue Api", "Query", "each", "delta#*"),  # a gate is made only where nothing was added
    ("Ring", "BatchGetItem PartiQLInsert", "home", "lane#{home}#*"),
    ("Compact", "GetItem Query", "home", "delta#{home}#* fold#{home}#* shape"),
    ("Compact", "PutItem", "home", "fold#{home}#* lane#{home}#*"),  # a lane's first commit names it
    ("Compact", "DeleteItem PartiQLDelete", "home", "delta#{home}#*"),
    ("Compact", "GetItem", "each", "fold#{home}#*"),  # clean asks the other Regions
    ("Compact", "BatchGetItem Query", "home", "delta#* fold#* gate#*"),  # values, where it reports thresholds
    ("Compact", "BatchGetItem UpdateItem", "home", "crossing#{home}#*"),
    ("Sweep", "Query", "home", "lane#{home}#* hold#{home}#*"),
    ("Sweep", "Query", "home", "lane#*"),  # where it reports thresholds
    ("Sweep", "BatchGetItem", "home", "gate#{home}#*"),
    ("Sweep", "GetItem PutItem", "home", "sweep#{home}"),
    ("Canary", "PutItem", "home", "delta#{home}#0#ledger:canary"),
    ("Canary", "GetItem BatchGetItem Query", "home", "delta#*#ledger:canary fold#*#ledger:canary shape"),
    # of others                                           on
    ("AddFromQueue", f"{RECEIVE} sqs:ChangeMessageVisibility", "ChangesQueue", ""),
    ("AddFromQueue", "sqs:SendMessage", "ChangesDeadLetterQueue", ""),
    ("AddFromQueue", "sqs:SendMessage", "OutcomesQueue", ""),
    ("Ring", FOLLOW, "StreamArn", ""),
    ("Ring Sweep", "sqs:SendMessage", "WorkQueue FailedQueue", ""),
    ("Compact", f"{RECEIVE} sqs:SendMessage", "WorkQueue", ""),
    ("Compact", "sqs:SendMessage", "WorkDeadLetterQueue", ""),
    ("Compact", "events:PutEvents", "default", ""),
    (" ".join(ROLES), LOG, "log", ""),
)
NAMED = re.compile(r"""['"](\w+)['"](?:: | = )\?""")
ANSWERS = {"batch_get_item": {"Responses": {}}, "query": {"Items": []}, "update_item": {"Attributes": {}}}
SENT = {"send_message": "sqs:SendMessage", "change_message_visibility_batch": "sqs:ChangeMessageVisibility"}


class Right(NamedTuple):
    """A statement; `here` in a key is the Region whose endpoint is asked."""

    actions: frozenset[str]
    on: frozenset[str]
    keys: frozenset[str]

    def uses(self, action: str, on: str, region: str, pks: tuple[str, ...]) -> frozenset[str]:
        """The action and the keys that allow a request; nothing, where it is denied."""
        at = {on} if on != "table" else {"each", "home"} if region == HOME else {"each"}
        fits = [{key for key in self.keys if fnmatch.fnmatchcase(pk, key.format(home=HOME, here=region))} for pk in pks]
        allowed = action in self.actions and at & self.on and all(fits) and bool(fits) == bool(self.keys)
        return frozenset({action}.union(*fits)) if allowed else frozenset()


RIGHTS = {
    role: [
        Right(
            frozenset(each if ":" in each else f"dynamodb:{each}" for each in actions.split()),
            frozenset(on.split()),
            frozenset(keys.split()),
        )
        for roles, actions, on, keys in ALLOWED
        if role in roles.split()
    ]
    for role in ROLES
}


class Account:
    """denied: what no row allows. used: of each role, the rows with their actions and keys that allowed something.
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
                if uses := right.uses(action, on, region, pks):
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
                self._account.judge(self._function, f"dynamodb:{action}", "table", self._region, *pks)
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
            yield f"PartiQL{text.split()[0].title()}", arguments["Parameters"][NAMED.findall(text).index("pk")]["S"]
        case "transact_write_items":
            for each in arguments["TransactItems"]:
                ((kind, write),) = each.items()
                yield from _judged(f"{kind.lower()}_item", write)
        case _:
            key = arguments.get("Key") or arguments["Item"]
            yield operation.title().replace("_", ""), key["pk"]["S"]
