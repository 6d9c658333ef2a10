"""The order of a deployment, and what it refuses before it changes anything."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra import deploy
from infra.deployment import deployment
from infra.table_stack import DeploymentRefused, TableStack

HOME, OTHER, THIRD = "eu-west-1", "us-east-1", "ap-south-1"


class Account:
    """CloudFormation and DynamoDB, as far as the stack asks. `replicating`: as AWS does, and MiniStack does not."""

    def __init__(self, *, replicating: bool = True) -> None:
        self.stacks: dict[str, dict[str, Any]] = {}  # by Region
        self.tables: dict[str, list[str]] = {}  # a Region's table -> the Regions of all replicas
        self.writes: list[str] = []
        self._replicating = replicating

    def client(self, service: str, region: str) -> Any:
        return Client(self, region)

    def put(self, region: str, parameters: Sequence[dict[str, str]]) -> None:
        self.stacks[region] = {"Parameters": list(parameters)}
        values = {each["ParameterKey"]: each["ParameterValue"] for each in parameters}
        regions = [value for key, value in values.items() if key.startswith("Region")]
        made = regions if self._replicating else self.tables.get(region, [region])
        self.tables |= dict.fromkeys(made, made)


class Client:
    def __init__(self, account: Account, region: str) -> None:
        self._account, self._region = account, region

    def describe_stacks(self, StackName: str) -> Any:
        if self._region not in self._account.stacks:
            raise ClientError({"Error": {"Code": "ValidationError", "Message": "does not exist"}}, "DescribeStacks")
        return {"Stacks": [self._account.stacks[self._region]]}

    def create_stack(self, *, Parameters: Any, **_: Any) -> None:
        self._account.writes.append(f"create in {self._region}")
        self._account.put(self._region, Parameters)

    def update_stack(self, *, Parameters: Any, **_: Any) -> None:
        if self._account.stacks[self._region]["Parameters"] == Parameters:
            message = "No updates are to be performed."
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "UpdateStack")
        self._account.writes.append(f"update in {self._region}")
        self._account.put(self._region, Parameters)

    def get_waiter(self, _: str) -> Any:
        return SimpleNamespace(wait=lambda **_: None)  # it is never late

    def describe_table(self, TableName: str) -> Any:
        if self._region not in self._account.tables:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}}, "DescribeTable")
        others = [region for region in self._account.tables[self._region] if region != self._region]
        replicas = [{"RegionName": region, "ReplicaStatus": "ACTIVE"} for region in others]
        return {"Table": {"TableStatus": "ACTIVE", "Replicas": replicas, "LatestStreamArn": f"stream {self._region}"}}

    def update_table(self, *, ReplicaUpdates: Any, **_: Any) -> None:
        (update,) = ReplicaUpdates
        added = update["Create"]["RegionName"]
        self._account.writes.append(f"replica in {added}")
        regions = [*self._account.tables[self._region], added]
        self._account.tables |= dict.fromkeys(regions, regions)


def _stack(account: Account) -> TableStack:
    return TableStack("ledger-dev-table", "ledger-dev", account.client, lambda _: None)


@pytest.mark.parametrize(
    ("replicating", "regions", "writes"),
    [
        (True, [HOME, OTHER], []),
        (True, [HOME], [f"update in {HOME}"]),
        (False, [HOME, OTHER], [f"replica in {OTHER}"]),
    ],
    ids=["left-alone", "one-region-more", "a-replica-that-the-stack-left-out"],
)
def test_the_table_is_made_once_and_has_each_replica_once(
    replicating: bool, regions: list[str], writes: list[str]
) -> None:
    account = Account(replicating=replicating)
    _stack(account).deploy(regions)
    for _ in range(2):
        _stack(account).deploy([HOME, OTHER])
    assert account.writes == [f"create in {HOME}", *writes]
    assert _stack(account).stream_arn(OTHER) == f"stream {OTHER}"


@pytest.mark.parametrize(
    ("regions", "says"),
    [
        ([HOME], "never taken out"),
        ([HOME, THIRD], "never taken out"),
        ([OTHER, HOME], "name that Region first"),
        ([HOME, THIRD, OTHER], "in this order"),
    ],
)
def test_other_regions_than_the_stacks_are_refused_before_anything_is_written(regions: list[str], says: str) -> None:
    account = Account()
    _stack(account).deploy([HOME, OTHER])
    with pytest.raises(DeploymentRefused, match=says):
        _stack(account).deploy(regions)
    assert account.writes == [f"create in {HOME}"]


def test_two_regions_are_not_added_at_once() -> None:
    account = Account()
    _stack(account).deploy([HOME])
    with pytest.raises(DeploymentRefused, match="one Region at a time"):
        _stack(account).deploy([HOME, OTHER, THIRD])


def test_a_table_that_no_stack_of_ours_made_is_refused() -> None:
    account = Account()
    account.tables[OTHER] = [OTHER]
    with pytest.raises(DeploymentRefused, match="no stack ledger-dev-table"):
        _stack(account).deploy([HOME, OTHER])
    assert account.writes == []


@pytest.mark.parametrize(
    ("name", "stage", "regions", "params", "says"),
    [
        ("Ledger", "dev", HOME, "", "NAME=Ledger"),
        ("ledger", "dev_1", HOME, "", "STAGE=dev_1"),
        ("ledger", "dev", "", "", "one or more"),
        ("ledger", "dev", f"{HOME} {HOME}", "", "different"),
        ("ledger", "dev", "eu-west-9", "", "eu-west-9 is no Region"),
        ("ledger", "dev", HOME, "keepMs", "name=value"),
        ("ledger", "dev", HOME, "keepMs=90000 foldMin=8 keepMs=80000", "each name once"),
    ],
)
def test_wrong_options_are_named(name: str, stage: str, regions: str, params: str, says: str) -> None:
    with pytest.raises(DeploymentRefused, match=says):
        deployment(name, stage, regions, params)


def test_each_region_is_told_of_all_and_of_its_own_stream() -> None:
    given = deployment("ledger", "dev", f"{HOME} {OTHER} {THIRD}", "keepMs=90000 sweepSchedule=rate(5 minutes)")
    told = {"name": "ledger", "artifact": "a.zip", "regions": f"{HOME},{OTHER},{THIRD}", "streamArn": "stream"}
    told["tellsThresholds"] = "false"
    assert given.params_of(HOME, "a.zip", "stream") == {**told, "keepMs": "90000", "sweepSchedule": "rate(5 minutes)"}


def test_an_engine_on_this_machine_gets_a_zip_for_this_machine() -> None:
    assert all(deploy.runs_here(f"http://{host}:4566") for host in ("127.0.0.1", "localhost", "[::1]"))
    assert not any(map(deploy.runs_here, ("https://vpce.example.com", "")))
