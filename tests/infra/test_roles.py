"""The shipped handlers behind the table of rights: what they ask for is allowed, what is allowed is
asked for, and the rendered roles are exactly this table.
"""

import itertools
import json
import re
from types import SimpleNamespace
from typing import Any

from infra.rights import RIGHTS, ROLES, Right
from ledger import Ledger, Limit
from ledger.client.message import time_text
from ledger.core.checks import to_datetime
from ledger.core.clocks import instants
from ledger.core.limit import Threshold
from ledger.core.running import run
from ledger.lane.shape import write
from service.add_from_queue.handler import AddFromQueue
from service.api.app import Api
from service.canary.handler import Canary
from service.compact.serve import Worker
from service.job_queue import WorkQueue
from service.ring.ring import Ringer
from service.runtime import Runtime
from service.sqs import SqsQueue
from service.sweep.sweep import Sweeper
from service.thresholds.event_bus import EventBus
from tests.infra.roles import BY_LAMBDA, HOME, OTHER, Account, Client, Table
from tests.infra.template import of_type
from tests.service.support import NOTHING, Answer, Service, never, sqs, stored

NUMBERS = itertools.count()
LIMITS = {"seats:": Limit(ceiling=100_000, region=HOME), "rooms:": Limit(ceiling=10, region=OTHER)}
THRESHOLDS = {"stock:": (Threshold(below=10),), "seats:": (Threshold(above=50),)}


class Functions(Service):
    """All functions of one Region, each behind its role, and the scenes that they play."""

    def __init__(self) -> None:
        super().__init__(now_ms=1_735_725_000_000, limits=LIMITS, thresholds=THRESHOLDS, fold_min=2)
        self.account = Account()
        run(write(self.settings), self.account.table, instants(self.clock))
        self.ringer = Ringer(self.settings, self.behind("Ring"), self.watch)
        self.worker = Worker(self.settings, self.behind("Compact"), self.watch)
        self.canary = Canary(
            self.settings, Table(self.account, "Canary"), self.watch, clock=self.clock
        )
        self.api = Api(
            self.settings, self.watch, table=Table(self.account, "Api"), clock=self.clock
        )

    def behind(self, function: str) -> Runtime:
        """The role of a function."""
        aws = Client(self.account, function)
        queue = WorkQueue("WorkQueue", lambda: aws, "WorkDeadLetterQueue")
        return Runtime(
            Table(self.account, function),
            queue,
            EventBus("default", lambda: aws),
            clock=self.clock,
            workers=1,
        )

    def queued(
        self, *changes: dict[str, Any] | str, pack: bool = True, requests: int = 1_000
    ) -> None:
        """A batch of the changes queue. requests: for so many there is time."""
        left_ms = itertools.chain([120_000] * requests, itertools.repeat(60_000))
        aws = Client(self.account, "AddFromQueue")
        AddFromQueue(
            Ledger(self.settings, table=Table(self.account, "AddFromQueue"), clock=self.clock),
            self.watch,
            pack=pack,
            outcomes=SqsQueue("OutcomesQueue", lambda: aws),
            dead_letters=SqsQueue("ChangesDeadLetterQueue", lambda: aws),
            changes=SqsQueue("ChangesQueue", lambda: aws),
            clock=self.clock,
        )(
            sqs(*(each if isinstance(each, str) else json.dumps(each) for each in changes)),
            SimpleNamespace(get_remaining_time_in_millis=lambda: next(left_ms)),
        )

    def change(
        self, counter: str, change: int = 1, ago_s: float = 0, **more: Any
    ) -> dict[str, Any]:
        at = time_text(to_datetime(self.now_ms - int(ago_s * 1_000)))
        return {
            "counter": counter,
            "change": change,
            "idempotency_key": f"k{next(NUMBERS)}",
            "at": at,
        } | more

    def send(self, event: dict[str, Any]) -> Answer:
        """What the API answers, which must not be an error of ours."""
        answer = super().send(event)
        assert answer.status < 500, answer
        return answer

    def hold(self, counter: str, amount: int = 1, expires_s: float = 60) -> str:
        said = {
            "counter": counter,
            "amount": amount,
            "expires_s": expires_s,
            "at": self.change(counter)["at"],
        }
        return str(self.post("holds", said, f"h{next(NUMBERS)}").said["id"])

    def end(self, counter: str, hold: str, how: str) -> None:
        self.post(f"holds/{hold}/{how}", {"counter": counter}, None)

    def comes_by_the_stream(self) -> None:
        """All that is in the table, as new."""
        found = [
            stored(each, "INSERT", n, self.now_ms)
            for n, each in enumerate(self.account.table.items.values(), 1)
        ]
        assert self.ringer({"Records": found}) == NOTHING

    def worked(self, *bodies: str) -> None:
        """A batch of what waits in the work queue, and these; what it sends again waits."""
        waiting = self.account.queues.pop("WorkQueue", [])
        if waiting or bodies:
            assert self.visit(*waiting, *bodies) == NOTHING

    def by_the_queue(self) -> None:
        self.queued(self.change("stock:1"), self.change("stock:1"))  # one pack: no statement
        self.queued(*(self.change(f"stock:{n % 3}") for n in range(9)))
        for pack in (True, False):
            self.queued(self.change("stock:1"), self.change("stock:2", region=OTHER), pack=pack)
        self.queued("poison", self.change("rooms:1", 11))  # refused: an outcome
        first = [self.change("seats:queue", ago_s=900 - n) for n in range(60)]
        for some in (first[:30], first[30:], first[:2], [self.change("rooms:1", 2, region=OTHER)]):
            self.queued(*some)  # the third: what was filed meanwhile is looked up
        self.account.without = {"dynamodb:PutItem", "dynamodb:PartiQLInsert"}
        self.queued(self.change("stock:1"))  # waits
        self.account.without = set()
        several = {"changes": [self.change("stock:many") for _ in range(1_100)]}
        self.queued(json.dumps(several), requests=3)  # for the last there is no time

    def by_http(self) -> None:
        for counter in ("stock:4", "seats:http", "rooms:2"):
            said = self.change(counter)
            self.ask(
                "POST", "/deltas", {"deltas": [said, self.change(counter), self.change("stock:5")]}
            )
            key = said.pop("idempotency_key")
            self.post("deltas", said, f"{key}x")
            for path in ("/counters", "/history", *(["/standing"] if counter != "stock:4" else [])):
                self.ask("GET", f"{path}?counter={counter}")
            self.ask("GET", f"/series?counter={counter}&since=2024-12-31T00:00:00Z&every=month")
        self.ask("GET", "/counters?prefix=stock:")
        first = [self.change("seats:late", ago_s=900 - n) for n in range(60)]
        # the third: what was filed meanwhile is looked up
        for some in (first[:30], first[30:], first[:2]):
            self.ask("POST", "/deltas", {"deltas": some})

    def holds(self) -> None:
        """Captured, released, over: by who is short of them, behind each of the two roles."""
        for counter in ("seats:http", "rooms:3"):
            for how in ("capture", "release"):
                self.end(counter, self.hold(counter), how)
        self.hold("seats:c")
        # so that all stay in the gate for now
        self.account.without = {"dynamodb:PartiQLInsert", "dynamodb:PutItem"}
        for _ in range(48):
            self.hold("seats:c")
        self.account.without = set()
        for _ in range(12):  # one in four looks whether there is something to file
            self.queued(self.change("seats:c"))
        for counter in ("seats:a", "seats:b"):
            kept = [self.hold(counter, 2_000, expires_s=60 + n) for n in range(48)]
            self.end(counter, kept[0], "release")  # one that is filed
            self.now_ms += 3_600_000
            if counter == "seats:a":
                self.ask("POST", "/deltas", {"deltas": [self.change(counter, 99_000)]})
            else:
                self.queued(self.change(counter, 99_000))

    def behind_the_stream(self) -> None:
        self.canary()
        self.comes_by_the_stream()
        self.worked("no lane")
        for _ in range(4):
            self.now_ms += 700_000  # a fold, its note, its clean
            self.queued(
                *(self.change(f"stock:{n}") for n in range(3)), self.change("stock:1", ago_s=300)
            )
            self.canary()
            self.comes_by_the_stream()
            for _ in range(2):
                self.worked()
        sweep = Sweeper(
            self.settings, self.behind("Sweep"), self.watch, verify_one_in=1, draw=lambda: 0.0
        )
        for _ in range(2):
            sweep(never)
            self.worked()
            self.now_ms += 86_400_000  # a whole pass

    def without_partiql(self) -> None:
        """Deltas are deleted one by one where an endpoint refuses statements."""
        self.account.without = {"dynamodb:PartiQLDelete"}
        self.behind_the_stream()
        self.account.without = set()


def test_every_request_is_allowed_and_every_right_is_used() -> None:
    functions = Functions()
    for scene in ("by_the_queue", "by_http", "holds", "behind_the_stream", "without_partiql"):
        getattr(functions, scene)()
        assert functions.account.denied == [], scene
    for role in ROLES:
        for right in RIGHTS[role]:
            used = {
                what
                for function, by, what in functions.account.used
                if (function, by) == (role, right)
            }
            assert used == right.actions - BY_LAMBDA | right.keys, (role, right)


ARN = "arn:${AWS::Partition}:%s:${AWS::AccountId}:%s"
KEYS = {"Null": {"dynamodb:LeadingKeys": "false"}}
CONDITIONS: dict[str, Any] = {
    "home": KEYS,
    "each": KEYS | {"StringEquals": {"aws:RequestedRegion": {"Ref": "Regions"}}},
}
POLICY_CHARACTERS = 6_144


def text_of(value: Any) -> str:
    """A logical name, or a text with its variables."""
    if isinstance(value, dict):
        ((_, value),) = value.items()
    return value[0] if isinstance(value, list) else str(value)


def key_of(value: Any) -> str:
    plain = text_of(value).replace("\\$", "$")
    return plain.replace("${AWS::Region}", "{home}").replace("${aws:RequestedRegion}", "{here}")


def right_of(statement: dict[str, Any], function: str) -> Right:
    """A row of the table that the statement would be."""
    slug = re.sub(r"(?<!^)(?=[A-Z])", "-", function).lower()
    names = {
        ARN % ("dynamodb:${AWS::Region}", "table/${TableName}"): "home",
        ARN % ("dynamodb:*", "table/${TableName}"): "each",
        ARN % ("events:${AWS::Region}", "event-bus/default"): "default",
        ARN
        % ("logs:${AWS::Region}", f"log-group:/aws/lambda/${{Name}}-${{Stage}}-{slug}:*"): "log",
    }
    resources = (
        statement["Resource"]
        if isinstance(statement["Resource"], list)
        else [statement["Resource"]]
    )
    on = [names.get(text, text) for text in map(text_of, resources)]
    condition = dict(statement.get("Condition", {}))
    keys = condition.pop("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys", [])
    assert (statement["Effect"], condition) == ("Allow", CONDITIONS.get(on[0], {})), statement
    return Right(frozenset(statement["Action"]), frozenset(on), frozenset(map(key_of, keys)))


def test_a_role_is_the_rows_of_the_table_and_nothing_else(service: dict[str, Any]) -> None:
    """What reaches each Region of the table names its Regions, and is as long for thirty as for
    one.
    """
    roles, managed = of_type(service, "AWS::IAM::Role"), of_type(service, "AWS::IAM::ManagedPolicy")
    assert set(roles) == {f"{role}Role" for role in ROLES}
    for function in ROLES:
        role = roles[f"{function}Role"]
        policies = [
            *role["Policies"],
            *(managed[each["Ref"]] for each in role.get("ManagedPolicyArns", [])),
        ]
        statements = [each for policy in policies for each in policy["PolicyDocument"]["Statement"]]
        found = [
            right_of(each["Fn::If"][1] if "Fn::If" in each else each, function)
            for each in statements
        ]
        assert (set(found), len(found)) == (set(RIGHTS[function]), len(RIGHTS[function])), function
    (gates,) = managed.values()
    assert len(json.dumps(gates)) < POLICY_CHARACTERS
