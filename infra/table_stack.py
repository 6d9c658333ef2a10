"""The table's stack: made, changed and waited for, before any service stack.

Rule 1: A Region is only ever added, one at a time, at the end, by an update that changes nothing else; nothing here
takes a Region out or deletes a table.
Rule 2: The stack lives in the Region that was named first when it was made.
Rule 3: Every refusal comes before the first write.
Rule 4: A creation that fails leaves nothing: the table goes with it (RetainExceptOnCreate), and is protected by the
update after it. So the same command mends it, and a stack that was rolled back and has no table is deleted.
Rule 5: What CloudFormation is still doing is waited for, also what an earlier command began.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from infra.table_template import ON_DEMAND, Capacity, named, regions_of, template_of

STACK_WAIT_S, STACK_POLL_S = 1_800, 5
ACTIVE_WAIT_S = 1_800
ACTIVE_POLL_S = 2

ROLLED_BACK = "ROLLBACK_COMPLETE"
"""The creation failed, and what it made was deleted. Such a stack can only be deleted."""

WHOLE = tuple(f"{done}_COMPLETE" for done in ("CREATE", "UPDATE", "UPDATE_ROLLBACK", "IMPORT", "IMPORT_ROLLBACK"))
"""The states of a stack that can be updated."""


class DeploymentRefused(Exception):
    """Something is not as it must be; the message says what, what was changed if anything was, and what to do."""


@dataclass(frozen=True, slots=True)
class TableStack:
    """The stack of one table. `client` makes a boto3 client for a service and a Region."""

    name: str
    table: str
    client: Callable[[str, str], Any]
    say: Callable[[str], None]
    capacity: Capacity = ON_DEMAND
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def deploy(self, regions: Sequence[str], *, deletion_protection: bool = True) -> None:
        """Makes or changes the stack in the first Region and waits until every replica is active."""
        home = regions[0]
        stack = self._settled(home)
        if stack is not None and stack["StackStatus"] == ROLLED_BACK:
            self._delete_rolled_back(stack, home, regions)
            stack = None
        if stack is None:
            self._refuse_strangers(regions)
            have = list(regions)
            self._put(home, have, deletion_protection=False, create=True)
        else:
            self._refuse_broken(stack, home)
            have = regions_of(parameters_of(stack))
            _refuse_other_regions(have, regions, self.name)
        for each in (have, regions) if have != list(regions) else (have,):
            self._put(home, each, deletion_protection=deletion_protection)
        self.client("cloudformation", home).update_termination_protection(
            StackName=self.name, EnableTerminationProtection=True
        )
        self._add_missing_replicas(home, regions)
        for region in regions:
            self._wait_until_active(region, others=set(regions) - {region})

    def stream_arn(self, region: str) -> str:
        """The stream of the replica in a Region."""
        arn = self._describe(region).get("LatestStreamArn")
        if not arn:
            why = f"the table {self.table} in {region} has no stream"
            raise DeploymentRefused(f"{why}; deploy the stack {self.name} again")
        return str(arn)

    def _settled(self, region: str) -> dict[str, Any] | None:
        """The stack when CloudFormation does nothing with it; None if there is none. Raises DeploymentRefused."""
        deadline = self.clock() + STACK_WAIT_S
        while True:
            stack = stack_of(self.client("cloudformation", region), self.name)
            state = stack["StackStatus"] if stack is not None else ""
            if not state.endswith("_IN_PROGRESS") or state == "REVIEW_IN_PROGRESS":  # of a change set, for a person
                return stack
            if self.clock() > deadline:
                raise DeploymentRefused(
                    f"the stack {self.name} in {region} is still {state} after {STACK_WAIT_S} s: CloudFormation goes "
                    "on, as a replica of a large table takes hours. Run the same command again: it waits for the end"
                )
            self.sleep(STACK_POLL_S)

    def _delete_rolled_back(self, stack: dict[str, Any], home: str, regions: Sequence[str]) -> None:
        """Deletes a stack whose creation failed. Raises DeploymentRefused where a table is, which may hold data."""
        for region in regions:
            if self._describe(region):
                raise DeploymentRefused(
                    f"the stack {self.name} in {home} is {ROLLED_BACK}: its creation failed, and there is a table "
                    f"{self.table} in {region}. Nothing was changed. Turn off the stack's termination protection and "
                    "delete it, which keeps the table. Then delete the table if it is empty, or import it "
                    "(docs/deploying.md, An existing table); and deploy again"
                )
        self.say(f"the stack {self.name} in {home} was rolled back and has no table: deleting it")
        cloudformation = self.client("cloudformation", home)
        if stack.get("EnableTerminationProtection"):
            cloudformation.update_termination_protection(StackName=self.name, EnableTerminationProtection=False)
        cloudformation.delete_stack(StackName=self.name)
        if (left := self._settled(home)) is not None:
            self._refuse_broken(left, home)

    def _refuse_broken(self, stack: dict[str, Any], region: str) -> None:
        state = stack["StackStatus"]
        if state not in WHOLE:
            raise DeploymentRefused(
                f"the stack {self.name} in {region} is {state}, which only a person ends (docs/deploying.md, A stack "
                "that waits for a person). No table was changed. Then deploy again"
            )

    def _refuse_strangers(self, regions: Sequence[str]) -> None:
        for region in regions[1:]:
            if stack_of(self.client("cloudformation", region), self.name) is not None:
                first = f"name that Region first, REGIONS='{region} …'"
                raise DeploymentRefused(f"the stack {self.name} is in {region}: {first}")
        for region in regions:
            if self._describe(region):
                raise DeploymentRefused(
                    f"there is a table {self.table} in {region} that no stack {self.name} in {regions[0]} made. Name "
                    "the Region of its stack first; or delete it, if a deployment that failed left it and it is empty; "
                    "or import it (docs/deploying.md, An existing table); or choose another NAME or STAGE"
                )

    def _put(self, home: str, regions: Sequence[str], *, deletion_protection: bool, create: bool = False) -> None:
        cloudformation = self.client("cloudformation", home)
        values = {"TableName": self.table, "DeletionProtection": str(deletion_protection).lower()}
        values |= named(regions)
        request: Any = {
            "StackName": self.name,
            "TemplateBody": template_of(len(regions), self.capacity),
            "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in values.items()],
        }
        self.say(f"{'creating' if create else 'updating'} stack {self.name} in {home} for {' '.join(regions)}")
        try:
            if create:
                cloudformation.create_stack(**request, RetainExceptOnCreate=True)
            else:
                cloudformation.update_stack(**request)
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
            return
        stack = self._settled(home)
        if stack is None or stack["StackStatus"] != ("CREATE_COMPLETE" if create else "UPDATE_COMPLETE"):
            state = "gone" if stack is None else stack["StackStatus"]
            left = "Its table was deleted with it" if create else "The table is as it was before"
            raise DeploymentRefused(
                f"the stack {self.name} failed in {home} and is {state}: {self._reasons(home)}. {left}, unless a "
                "reason says otherwise. Mend the reason and run the same command again"
            )

    def _reasons(self, region: str) -> str:
        events = self.client("cloudformation", region).describe_stack_events(StackName=self.name)["StackEvents"]
        reasons = [
            f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
            for event in events
            if event.get("ResourceStatus", "").endswith("FAILED") and event.get("ResourceStatusReason")
        ]
        return "; ".join(reasons[:5]) or "CloudFormation gives no reason; see the stack's events"

    def _add_missing_replicas(self, home: str, regions: Sequence[str]) -> None:
        # CloudFormation has made every replica when its stack is complete. MiniStack ignores the property Replicas, so
        # there, and only there, one is missing now and is asked for as one asks without CloudFormation.
        have = {home} | {replica["RegionName"] for replica in self._describe(home).get("Replicas", [])}
        for region in regions:
            if region not in have:
                self.say(f"the stack left out the replica in {region}: adding it")
                created: Any = [{"Create": {"RegionName": region}}]
                self.client("dynamodb", home).update_table(TableName=self.table, ReplicaUpdates=created)
                self._wait_until_active(home, others={region})

    def _wait_until_active(self, region: str, others: set[str]) -> None:
        deadline = self.clock() + ACTIVE_WAIT_S
        while True:
            table = self._describe(region)
            states = {replica["RegionName"]: replica.get("ReplicaStatus") for replica in table.get("Replicas", [])}
            if table.get("TableStatus") == "ACTIVE" and all(states.get(other) == "ACTIVE" for other in others):
                return
            if self.clock() > deadline:
                raise DeploymentRefused(
                    f"the table {self.table} in {region} is not active after {ACTIVE_WAIT_S} s: "
                    f"{table.get('TableStatus', 'absent')}, replicas {states}. DynamoDB goes on. Run the same command "
                    "again: it waits for the end"
                )
            self.sleep(ACTIVE_POLL_S)

    def _describe(self, region: str) -> dict[str, Any]:
        try:
            return dict(self.client("dynamodb", region).describe_table(TableName=self.table)["Table"])
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return {}
            raise


def stack_of(cloudformation: Any, name: str) -> dict[str, Any] | None:
    """A stack as CloudFormation describes it; None if it is not there."""
    try:
        return dict(cloudformation.describe_stacks(StackName=name)["Stacks"][0])
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise


def parameters_of(stack: dict[str, Any]) -> dict[str, str]:
    return {each["ParameterKey"]: each["ParameterValue"] for each in stack.get("Parameters", [])}


def _refuse_other_regions(have: Sequence[str], wanted: Sequence[str], stack: str) -> None:
    lost = [region for region in have if region not in wanted]
    if lost:
        raise DeploymentRefused(
            f"the stack {stack} has {' '.join(have)}: name them all, REGIONS='{' '.join(have)}'. A Region with lanes "
            "is never taken out (docs/deploying.md, Removing a Region)"
        )
    if list(wanted[: len(have)]) != list(have):
        raise DeploymentRefused(f"the stack {stack} has {' '.join(have)} in this order: keep it, new Regions last")
    if len(wanted) - len(have) > 1:
        raise DeploymentRefused(f"the stack {stack} has {' '.join(have)}: DynamoDB adds one Region at a time")
