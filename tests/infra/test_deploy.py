"""The order of a deployment, and what it refuses before it changes anything."""

from collections.abc import Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra import deploy
from infra.deployment import deployment
from infra.stack_states import WHOLE
from infra.table_stack import STACK_POLL_S, STACK_WAIT_S, DeploymentRefused, TableStack

HOME, OTHER, THIRD = "eu-west-1", "us-east-1", "ap-south-1"


class Account:
    """CloudFormation and DynamoDB, as far as the stack asks. `replicating`: as AWS does, and MiniStack does not."""

    def __init__(self, *, replicating: bool = True) -> None:
        self.stacks: dict[str, dict[str, Any]] = {}  # by Region
        self.tables: dict[str, list[str]] = {}  # a Region's table -> the Regions of all replicas
        self.writes: list[str] = []
        self.ends: list[str] = []  # the states in which the next writes of a stack end, where they fail
        self.polls = 0  # how often a stack is still at work after a write
        self.now_s = 0.0
        self.states: dict[str, str] = {}  # of replicas that are not active
        self._replicating = replicating

    def client(self, service: str, region: str) -> Any:
        return Client(self, region)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def put(self, region: str, parameters: Sequence[dict[str, str]], state: str) -> None:
        end = self.ends.pop(0) if self.ends else f"{state}_COMPLETE"
        was = self.stacks.get(region, {"Parameters": list(parameters), "EnableTerminationProtection": False})
        self.stacks[region] = was | {"StackStatus": end, "busy": [f"{state}_IN_PROGRESS"] * self.polls}
        if end != f"{state}_COMPLETE":
            return
        self.stacks[region]["Parameters"] = list(parameters)
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
        stack = self._account.stacks[self._region]
        return {"Stacks": [stack | ({"StackStatus": stack["busy"].pop()} if stack["busy"] else {})]}

    def describe_stack_events(self, StackName: str) -> Any:
        why = {"LogicalResourceId": "Table", "ResourceStatusReason": "an SCP denies it"}
        return {"StackEvents": [{"ResourceStatus": "CREATE_COMPLETE"}, {"ResourceStatus": "CREATE_FAILED", **why}]}

    def create_stack(self, *, Parameters: Any, RetainExceptOnCreate: bool, **more: Any) -> None:
        assert RetainExceptOnCreate is True
        assert "EnableTerminationProtection" not in more, "a creation that fails is to leave nothing"
        assert self._region not in self._account.stacks
        self._account.writes.append(f"create in {self._region}: {said(Parameters)}")
        self._account.put(self._region, Parameters, "CREATE")

    def update_stack(self, *, Parameters: Any, **_: Any) -> None:
        stack = self._account.stacks[self._region]
        if stack["StackStatus"] not in WHOLE:
            message = f"Stack is in {stack['StackStatus']} state and can not be updated."
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "UpdateStack")
        if stack["Parameters"] == Parameters:
            message = "No updates are to be performed."
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "UpdateStack")
        self._account.writes.append(f"update in {self._region}: {said(Parameters)}")
        self._account.put(self._region, Parameters, "UPDATE")

    def update_termination_protection(self, *, StackName: str, EnableTerminationProtection: bool) -> None:
        self._account.stacks[self._region]["EnableTerminationProtection"] = EnableTerminationProtection

    def delete_stack(self, *, StackName: str) -> None:
        assert self._account.stacks[self._region]["EnableTerminationProtection"] is False
        self._account.writes.append(f"delete in {self._region}")
        if self._account.ends:
            self._account.stacks[self._region]["StackStatus"] = self._account.ends.pop(0)
        else:
            del self._account.stacks[self._region]

    def describe_table(self, TableName: str) -> Any:
        if self._region not in self._account.tables:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}}, "DescribeTable")
        others = [region for region in self._account.tables[self._region] if region != self._region]
        states = self._account.states
        replicas = [{"RegionName": each, "ReplicaStatus": states.get(each, "ACTIVE")} for each in others]
        return {"Table": {"TableStatus": "ACTIVE", "Replicas": replicas, "LatestStreamArn": f"stream {self._region}"}}

    def update_table(self, *, ReplicaUpdates: Any, **_: Any) -> None:
        (update,) = ReplicaUpdates
        added = update["Create"]["RegionName"]
        self._account.writes.append(f"replica in {added}")
        regions = [*self._account.tables[self._region], added]
        self._account.tables |= dict.fromkeys(regions, regions)


def said(parameters: Sequence[dict[str, str]]) -> str:
    """The Regions, and whether the table is protected."""
    values = {each["ParameterKey"]: each["ParameterValue"] for each in parameters}
    regions = " ".join(value for key, value in values.items() if key.startswith("Region"))
    return regions + (", protected" if values["DeletionProtection"] == "true" else "")


def _stack(account: Account) -> TableStack:
    return TableStack(
        "ledger-dev-table", "ledger-dev", account.client, print, clock=lambda: account.now_s, sleep=account.sleep
    )


CREATED = [f"create in {HOME}: {HOME}", f"update in {HOME}: {HOME}, protected"]
CREATED_BOTH = [f"create in {HOME}: {HOME} {OTHER}", f"update in {HOME}: {HOME} {OTHER}, protected"]


@pytest.mark.parametrize(
    ("replicating", "regions", "writes"),
    [
        (True, [HOME, OTHER], CREATED_BOTH),
        (True, [HOME], [*CREATED, f"update in {HOME}: {HOME} {OTHER}, protected"]),
        (False, [HOME, OTHER], [*CREATED_BOTH, f"replica in {OTHER}"]),
    ],
    ids=["left-alone", "one-region-more", "a-replica-that-the-stack-left-out"],
)
def test_the_table_is_made_once_protected_then_and_has_each_replica_once(
    replicating: bool, regions: list[str], writes: list[str]
) -> None:
    account = Account(replicating=replicating)
    _stack(account).deploy(regions)
    for _ in range(2):
        _stack(account).deploy([HOME, OTHER])
    assert account.writes == writes
    assert account.stacks[HOME]["EnableTerminationProtection"] is True
    assert _stack(account).stream_arn(OTHER) == f"stream {OTHER}"


def test_a_first_deployment_that_failed_is_mended_by_the_same_command() -> None:
    account = Account()
    account.ends = ["ROLLBACK_COMPLETE"]
    with pytest.raises(DeploymentRefused, match=r"Table: an SCP denies it.*deleted with it.*the same command again"):
        _stack(account).deploy([HOME, OTHER])
    account.stacks[HOME]["EnableTerminationProtection"] = True  # one that an earlier version made
    _stack(account).deploy([HOME, OTHER])
    assert account.writes == [CREATED_BOTH[0], f"delete in {HOME}", *CREATED_BOTH]


def test_a_rolled_back_stack_with_a_table_is_left_to_a_person() -> None:
    account = Account()
    account.ends = ["ROLLBACK_COMPLETE"]
    with pytest.raises(DeploymentRefused):
        _stack(account).deploy([HOME, OTHER])
    account.tables[OTHER] = [OTHER]
    with pytest.raises(DeploymentRefused, match=f"ledger-dev in {OTHER}. Nothing was changed. Turn off"):
        _stack(account).deploy([HOME, OTHER])
    assert account.writes == [CREATED_BOTH[0]]


def test_a_rolled_back_stack_that_cannot_be_deleted_is_left_to_a_person() -> None:
    account = Account()
    account.ends = ["ROLLBACK_COMPLETE", "DELETE_FAILED"]
    with pytest.raises(DeploymentRefused):
        _stack(account).deploy([HOME])
    with pytest.raises(DeploymentRefused, match="is DELETE_FAILED: "):
        _stack(account).deploy([HOME])
    assert account.writes == [CREATED[0], f"delete in {HOME}"]


def test_a_deployment_that_was_cut_off_before_the_table_was_protected_is_put_right_by_the_same_command() -> None:
    account = Account()
    account.ends = ["CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"]
    with pytest.raises(DeploymentRefused, match="The table is as it was before"):
        _stack(account).deploy([HOME])
    _stack(account).deploy([HOME])
    assert account.writes == [*CREATED, CREATED[1]]
    assert account.stacks[HOME]["EnableTerminationProtection"] is True


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("REVIEW_IN_PROGRESS", "change set"),
        ("CREATE_FAILED", "delete it, which keeps the table"),
        ("ROLLBACK_FAILED", "delete it, which keeps the table"),
        ("DELETE_FAILED", "delete it, which keeps the table"),
        ("IMPORT_ROLLBACK_FAILED", "delete it, which keeps the table"),
        ("UPDATE_FAILED", "rollback-stack"),
        ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback"),
        ("A_NEW_STATE", "look at the stack"),
    ],
)
def test_a_stack_that_waits_for_a_person_is_named_with_what_to_do_and_not_touched(state: str, says: str) -> None:
    account = Account()
    _stack(account).deploy([HOME])
    account.stacks[HOME]["StackStatus"] = state
    with pytest.raises(DeploymentRefused, match=f"is {state}: .*{says}.*No table was changed"):
        _stack(account).deploy([HOME, OTHER])
    assert account.writes == CREATED


def test_what_cloudformation_still_does_is_waited_for_and_a_time_out_says_that_it_goes_on() -> None:
    account = Account()
    account.polls = 3
    _stack(account).deploy([HOME])
    account.stacks[HOME]["busy"] = ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"] * 5  # of an earlier command
    _stack(account).deploy([HOME])
    assert account.writes == CREATED
    account.polls = 2 * STACK_WAIT_S // STACK_POLL_S
    with pytest.raises(DeploymentRefused, match=r"still UPDATE_IN_PROGRESS after 1800 s.*the same command again"):
        _stack(account).deploy([HOME, OTHER])
    account.polls = 0
    _stack(account).deploy([HOME, OTHER])
    assert account.writes == [*CREATED, f"update in {HOME}: {HOME} {OTHER}, protected"]


def test_a_region_is_added_by_an_update_of_nothing_else() -> None:
    account = Account()
    _stack(account).deploy([HOME])
    _stack(account).deploy([HOME, OTHER], deletion_protection=False)
    assert account.writes[2:] == [f"update in {HOME}: {HOME}", f"update in {HOME}: {HOME} {OTHER}"]


def test_a_replica_that_is_not_active_in_time_is_named_and_waited_for_by_the_next_command() -> None:
    account = Account()
    account.states = {OTHER: "CREATING"}
    with pytest.raises(DeploymentRefused, match=r"not active after 1800 s: ACTIVE, replicas .*'CREATING'.*goes on"):
        _stack(account).deploy([HOME, OTHER])
    account.states = {}
    _stack(account).deploy([HOME, OTHER])


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
    assert account.writes == CREATED_BOTH


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
