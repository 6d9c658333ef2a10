"""An AWS account as far as infra.deploy asks: stacks, the table's replicas, queues, canaries,
limits; and a clock.

Rule 1: What is changed is a line of `steps`, in order; nothing else tells what a command did.
Rule 2: Every edge is replaced here, once: infra.aws, the framework, the build and the table's
items.
"""

import functools
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra import aws as edge
from infra import deploy, table_shape
from infra.aws import WHOLE
from infra.build import ARTIFACT
from infra.table_stack import TableStack
from infra.table_template import Capacity
from ledger.core import items
from ledger.core.limit import Shape
from ledger.core.requests import Get, Put, Request
from ledger.tables.memory import MemoryTable
from tests.infra import template

HOME, OTHER, THIRD = "eu-west-1", "us-east-1", "ap-south-1"
QUEUES = {
    "ChangesQueueUrl": "changes",
    "ChangesDeadLetterQueueUrl": "changes-dlq",
    "OutcomesQueueUrl": "outcomes",
}
SERVICE, TABLE_STACK = "ledger-dev", "ledger-dev-table"
FOLDED = {"read": True, "added": 32, "newest_ms": 1, "folded_ms": 1}


def refused(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Asked")


class AwsClient:
    """A boto3 client of whichever service, in a Region: each operation is the account's."""

    def __init__(self, account: "AwsAccount", region: str) -> None:
        self._account, self._region = account, region

    def __getattr__(self, operation: str) -> Any:
        return functools.partial(getattr(self._account, operation), self._region)


class AwsAccount:
    """stacks: by Region and name. replicas: a Region's table -> the Regions of all. ends: the
    states in which the next writes of a stack end, "" is gone; polls: how often one is still at
    work after a write. states: of replicas that are not active. replicating: as AWS does, and
    MiniStack does not. canary: what each answers, the last one again and again. waiting: messages
    by Region, queue and attribute."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.said: list[str] = []
        self.stacks: dict[tuple[str, str], dict[str, Any]] = {}
        self.replicas: dict[str, list[str]] = {}
        self.ends: list[str] = []
        self.polls = 0
        self.states: dict[str, str] = {}
        self.replicating = True
        self.described: dict[str, str] = {}  # what else DescribeTable says
        self.canary: dict[str, list[Any]] = {}
        self.waiting: dict[tuple[str, str, str], int] = {}
        self.limits = {"ConcurrentExecutions": 1_000, "UnreservedConcurrentExecutions": 1_000}
        self.items: Any = MemoryTable()
        self.items.peers = dict.fromkeys((HOME, OTHER), self.items)
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def monotonic(self) -> float:
        return self.now_s

    def deploy_table(self, *regions: str, deletion_protection: bool = True) -> None:
        TableStack(SERVICE, regions, Capacity()).deploy(deletion_protection=deletion_protection)

    def deploy(self, regions: str, params: str = "", **options: bool) -> None:
        deploy.deploy(stage="dev", regions=regions, name="ledger", params=params, **options)

    def remove(self, regions: str, **options: bool) -> None:
        deploy.remove(stage="dev", regions=regions, name="ledger", params="", **options)

    def answer(self, request: Request, /) -> Any:
        """The table's items, in whichever Region."""
        if isinstance(request, Put):
            self.steps.append("shape")
        return self.items.answer(request)

    @property
    def shape(self) -> Shape:
        return items.shape_of(self.items.answer(Get(items.SHAPE_KEY)))

    def serverless(
        self, command: str, stage: str, region: str, params: Mapping[str, str], *more: str
    ) -> None:
        if command == "package":
            package(Path(more[1]), params)
            return
        self.steps.append(f"{command} {region}")
        if command == "remove":
            del self.stacks[region, SERVICE]
            return
        assert params["streamArn"] == f"stream {region}"
        known = {
            "TableName": params.get("tableName", SERVICE),
            "ReservedCanary": params.get("reservedCanary", "1"),
        }
        self.service_is_in(region, known)

    def service_is_in(self, region: str, parameters: Mapping[str, str]) -> None:
        given = [
            {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
        ]
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in QUEUES.items()]
        stack = {
            "StackStatus": "CREATE_COMPLETE",
            "Parameters": given,
            "Outputs": outputs,
            "busy": [],
        }
        self.stacks[region, SERVICE] = stack

    def describe_stacks(self, region: str, StackName: str) -> Any:
        stack = self.stacks.get((region, StackName))
        if stack is None:
            raise refused("ValidationError", "does not exist")
        return {"Stacks": [stack | ({"StackStatus": stack["busy"].pop()} if stack["busy"] else {})]}

    def describe_stack_events(self, region: str, StackName: str) -> Any:
        why = {"LogicalResourceId": "Table", "ResourceStatusReason": "an SCP denies it"}
        return {
            "StackEvents": [
                {"ResourceStatus": "CREATE_COMPLETE"},
                {"ResourceStatus": "CREATE_FAILED", **why},
            ]
        }

    def create_stack(self, region: str, *, RetainExceptOnCreate: bool, **given: Any) -> None:
        assert RetainExceptOnCreate is True, "a creation that fails is to leave nothing"
        self.stacks[region, TABLE_STACK] = {
            "EnableTerminationProtection": False,
            "Parameters": given["Parameters"],
        }
        self._put_stack(region, "create", **given)

    def update_stack(self, region: str, **given: Any) -> None:
        stack = self.stacks[region, given["StackName"]]
        assert stack["StackStatus"] in WHOLE
        if stack["Parameters"] == given["Parameters"]:
            raise refused("ValidationError", "No updates are to be performed.")
        self._put_stack(region, "update", **given)

    def _put_stack(
        self, region: str, verb: str, StackName: str, Parameters: Any, TemplateBody: str
    ) -> None:
        """A line of `steps` with the Regions, and whether the table is protected."""
        values = {each["ParameterKey"]: each["ParameterValue"] for each in Parameters}
        regions = [value for key, value in values.items() if key.startswith("Region")]
        protected = ", protected" if values["DeletionProtection"] == "true" else ""
        self.steps.append(f"{verb} {' '.join(regions)}{protected}")
        whole = f"{verb.upper()}_COMPLETE"
        stack = self.stacks[region, StackName]
        stack |= {"StackStatus": self.ends.pop(0) if self.ends else whole}
        stack["busy"] = [f"{verb.upper()}_IN_PROGRESS"] * self.polls
        if stack["StackStatus"] == whole:
            stack["Parameters"] = Parameters
            made = regions if self.replicating else self.replicas.get(region, [region])
            self.replicas |= dict.fromkeys(made, made)

    def update_termination_protection(
        self, region: str, *, StackName: str, EnableTerminationProtection: bool
    ) -> None:
        self.stacks[region, StackName]["EnableTerminationProtection"] = EnableTerminationProtection

    def delete_stack(self, region: str, *, StackName: str) -> None:
        stack = self.stacks.pop((region, StackName))
        assert stack["EnableTerminationProtection"] is False
        self.steps.append("delete")
        if end := self.ends.pop(0) if self.ends else "":
            self.stacks[region, StackName] = stack | {"StackStatus": end}

    def describe_table(self, region: str, TableName: str) -> Any:
        if region not in self.replicas:
            raise refused("ResourceNotFoundException", "")
        others = [other for other in self.replicas[region] if other != region]
        replicas = [
            {"RegionName": each, "ReplicaStatus": self.states.get(each, "ACTIVE")}
            for each in others
        ]
        table = {
            "TableStatus": "ACTIVE",
            "Replicas": replicas,
            "LatestStreamArn": f"stream {region}",
        }
        return {"Table": table | self.described}

    def update_table(self, region: str, TableName: str, ReplicaUpdates: Any) -> None:
        added = ReplicaUpdates[0]["Create"]["RegionName"]
        self.steps.append(f"replica {added}")
        regions = [*self.replicas[region], added]
        self.replicas |= dict.fromkeys(regions, regions)

    def get_caller_identity(self, region: str) -> Any:
        return {"Account": "111122223333"}

    def get_account_settings(self, region: str) -> Any:
        return {"AccountLimit": self.limits}

    def invoke(self, region: str, *, FunctionName: str, Payload: bytes) -> Any:
        assert (FunctionName, Payload) == ("ledger-dev-canary", b"{}")
        self.steps.append(f"canary {region}")
        answers = self.canary.get(region, [FOLDED])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        failed = (
            {"FunctionError": "Unhandled"}
            if isinstance(answer, dict) and "errorMessage" in answer
            else {}
        )
        return {"Payload": io.BytesIO(json.dumps(answer).encode()), **failed}

    def get_service_quota(self, region: str, ServiceCode: str, QuotaCode: str) -> Any:
        return {"Quota": {"Value": 40_000.0}}

    def get_queue_attributes(self, region: str, QueueUrl: str, AttributeNames: list[str]) -> Any:
        counts = {each: self.waiting.get((region, QueueUrl, each), 0) for each in AttributeNames}
        return {"Attributes": {each: str(count) for each, count in counts.items()}}


def package(directory: Path, params: Mapping[str, str]) -> None:
    """A template with the functions' environment, rendered from serverless.yml."""
    config = template.framework()
    known = {"endpointUrl": "", **config["params"]["default"], **params}
    variables = {
        name: re.sub(r"\$\{param:(\w+)(?:, '')?\}", lambda param: str(known[param[1]]), text)
        for name, text in config["provider"]["environment"].items()
    }
    properties = {"Environment": {"Variables": variables | {"LEDGER_TABLE": SERVICE}}}
    directory.mkdir(exist_ok=True)
    functions = {"Api": {"Type": "AWS::Lambda::Function", "Properties": properties}}
    (directory / deploy.TEMPLATE).write_text(json.dumps({"Resources": functions}))


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AwsAccount:
    account = AwsAccount()
    monkeypatch.setattr(edge, "client", lambda service, region: AwsClient(account, region))
    monkeypatch.setattr(edge, "say", account.said.append)
    monkeypatch.setattr(edge, "time", account)
    monkeypatch.setattr(table_shape, "table_of", lambda name, region: account)
    monkeypatch.setattr(deploy, "PACKAGED", tmp_path)
    monkeypatch.setattr(deploy, "serverless", account.serverless)
    monkeypatch.setattr(deploy, "build", lambda where: ARTIFACT)
    monkeypatch.setattr(deploy, "sizes", lambda artifact: "")
    return account
