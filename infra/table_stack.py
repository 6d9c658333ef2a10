"""The table's stack: the deployer makes or changes it, and waits for it, before any service stack.

Rule 1: The deployer only adds Regions, one at a time, at the end, by an update that changes nothing
else. It never takes a Region out or deletes a table.
Rule 2: The stack lives in the Region that was the first of REGIONS when it was made.
Rule 3: Every refusal comes before the first write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from infra import aws
from infra.aws import WHOLE, DeploymentRefused, Stack
from infra.table_template import Capacity, named, regions_of, template_of
from ledger.lane.shape import is_strong

STACK_WAIT_S, STACK_POLL_S = 1_800, 5
ACTIVE_WAIT_S, ACTIVE_POLL_S = 1_800, 2

ROLLED_BACK = "ROLLBACK_COMPLETE"
"""The creation failed, and CloudFormation deleted what it made.

Such a stack can only be deleted.
"""


@dataclass(frozen=True, slots=True)
class TableStack:
    """The stack of one table with its replica in each of `regions`; the stack itself is in the
    first.
    """

    table: str
    regions: Sequence[str]
    capacity: Capacity
    retires: bool = False

    @property
    def name(self) -> str:
        return f"{self.table}-table"

    def __str__(self) -> str:
        return f"the stack {self.name} in {self.home}"

    @property
    def home(self) -> str:
        return self.regions[0]

    @property
    def cloudformation(self) -> Any:
        return aws.client("cloudformation", self.home)

    def deploy(self, *, deletion_protection: bool) -> None:
        """Make or change the stack, and wait until every replica is active.

        Raises DeploymentRefused.
        """
        stack = self._settled()
        if stack.status == ROLLED_BACK:
            stack = self._delete_rolled_back(stack)
        have = self.refuse(stack)
        if not stack.status:
            self._put(have, deletion_protection=False, create=True)
        for each in (have, self.regions) if have != list(self.regions) else (have,):
            self._put(each, deletion_protection=deletion_protection)
        self.cloudformation.update_termination_protection(
            StackName=self.name, EnableTerminationProtection=True
        )
        self._add_missing_replicas()
        for region in self.regions:
            self._wait_until_active(region, others=set(self.regions) - {region})

    def refuse(self, stack: Stack) -> Sequence[str]:
        """The Regions that the stack has, or will have.

        Reads, and changes nothing. Raises DeploymentRefused.
        """
        if stack.status in ("", ROLLED_BACK):
            self._refuse_strangers()
            return list(self.regions)
        self._refuse_broken(stack)
        self._refuse_strong()
        have = regions_of(stack.parameters)
        self._refuse_other_regions(have)
        return have

    def stream_arn(self, region: str) -> str:
        """The stream of the replica in a Region."""
        arn = self._describe(region).get("LatestStreamArn")
        if not arn:
            raise DeploymentRefused(
                f"the table {self.table} in {region} has no stream. Deploy again: that turns it on"
            )
        return str(arn)

    def _settled(self) -> Stack:
        """The stack, once CloudFormation is not at work on it. Raises DeploymentRefused."""
        # Rule 5: the deployer waits for all that CloudFormation is doing, also for what an earlier
        # command began.
        stack = aws.ABSENT
        for _ in aws.polls(STACK_WAIT_S, STACK_POLL_S):
            stack = aws.stack(self.home, self.name)
            if not stack.busy:
                return stack
        raise DeploymentRefused(
            f"{self} is still {stack.status} after {STACK_WAIT_S} s. CloudFormation goes on: a "
            "replica of a large table takes hours. Run the same command again: it waits for the "
            "end"
        )

    def _delete_rolled_back(self, stack: Stack) -> Stack:
        """Delete a stack whose creation failed.

        Raises DeploymentRefused if there is a table, which may hold data.
        """
        # Rule 4: a creation that fails leaves nothing: CloudFormation deletes the table with it
        # (RetainExceptOnCreate), and only the update after the creation protects the table. So the
        # same command mends it, and deletes a stack that was rolled back and has no table.
        for region in self.regions:
            if self._describe(region):
                raise DeploymentRefused(
                    f"{self} is {ROLLED_BACK}: its creation failed, and there is a table "
                    f"{self.table} in {region}. Nothing was changed. Turn off the stack's "
                    "termination protection and delete it, which keeps the table. Then delete "
                    "the table if it is empty, or import it (docs/deploying.md, An existing "
                    "table); and deploy again"
                )
        aws.say(f"{self} was rolled back and has no table: deleting it")
        if stack.protected:
            self.cloudformation.update_termination_protection(
                StackName=self.name, EnableTerminationProtection=False
            )
        self.cloudformation.delete_stack(StackName=self.name)
        left = self._settled()
        if left.status:
            self._refuse_broken(left)
        return left

    def _refuse_broken(self, stack: Stack) -> None:
        if stack.status not in WHOLE:
            raise DeploymentRefused(
                f"{self} is {stack.status}, which only a person can end. No table was changed. To "
                f"end it, {aws.BY_A_PERSON.get(stack.status, aws.OR_ELSE)}. Then deploy again"
            )

    def _refuse_strong(self) -> None:
        if is_strong(self._describe(self.home)):
            raise DeploymentRefused(
                f"the table {self.table} has multi-Region strong consistency, which takes "
                "counters with a limit alone (docs/limits.md), and the service's canary has "
                "none. Nothing was changed. Deploy on another table"
            )

    def _refuse_strangers(self) -> None:
        for region in self.regions[1:]:
            if aws.stack(region, self.name).status:
                raise DeploymentRefused(
                    f"the stack {self.name} is in {region}. Nothing was changed. Name that Region "
                    f"first: REGIONS='{region} …'"
                )
        for region in self.regions:
            if self._describe(region):
                raise DeploymentRefused(
                    f"there is a table {self.table} in {region} that no stack {self.name} in "
                    f"{self.home} made. Nothing was changed. Name the Region of its stack first; "
                    "or delete it, if a failed deployment left it and it is empty; or import it "
                    "(docs/deploying.md, An existing table); or choose another NAME or STAGE"
                )

    def _refuse_other_regions(self, have: Sequence[str]) -> None:
        stack, so = (
            f"the stack {self.name} has the Regions {' '.join(have)}",
            "Nothing was changed.",
        )
        if not set(have) <= set(self.regions):
            raise DeploymentRefused(
                f"{stack}. {so} Name them all: REGIONS='{' '.join(have)}'. Never take out a "
                "Region with lanes (docs/deploying.md, Removing a Region)"
            )
        if list(self.regions[: len(have)]) != list(have):
            raise DeploymentRefused(
                f"{stack}, in this order. {so} Keep the order, and name new Regions last"
            )
        if len(self.regions) - len(have) > 1:
            raise DeploymentRefused(
                f"{stack}, and DynamoDB adds one Region at a time. {so} Name one more Region only"
            )

    def _put(
        self, regions: Sequence[str], *, deletion_protection: bool, create: bool = False
    ) -> None:
        values = {"TableName": self.table, "DeletionProtection": str(deletion_protection).lower()}
        values |= named(regions)
        request: Any = {
            "StackName": self.name,
            "TemplateBody": template_of(len(regions), self.capacity, retires=self.retires),
            "Parameters": [
                {"ParameterKey": key, "ParameterValue": value} for key, value in values.items()
            ],
        }
        verb = "CREATE" if create else "UPDATE"
        aws.say(f"{verb.lower()} stack {self.name} in {self.home} for {' '.join(regions)}")
        try:
            if create:
                self.cloudformation.create_stack(**request, RetainExceptOnCreate=True)
            else:
                self.cloudformation.update_stack(**request)
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
            return
        state = self._settled().status
        if state != f"{verb}_COMPLETE":
            left = (
                "CloudFormation deleted its table with it"
                if create
                else "The table is as it was before"
            )
            raise DeploymentRefused(
                f"{self} failed and is {state or 'gone'}: {self._reasons()}. {left}, unless a "
                "reason says otherwise. Mend the reason (`make preflight` may name it) and run "
                "the same command again"
            )

    def _reasons(self) -> str:
        reasons = [
            f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
            for event in self.cloudformation.describe_stack_events(StackName=self.name)[
                "StackEvents"
            ]
            if event.get("ResourceStatus", "").endswith("FAILED")
            and event.get("ResourceStatusReason")
        ]
        return "; ".join(reasons[:5]) or "CloudFormation gives no reason; see the stack's events"

    def _add_missing_replicas(self) -> None:
        # CloudFormation has made every replica when its stack is complete. MiniStack ignores the
        # property Replicas, so there, and only there, one is missing now: DynamoDB itself adds it.
        have = {self.home} | {
            replica["RegionName"] for replica in self._describe(self.home).get("Replicas", [])
        }
        for region in self.regions:
            if region not in have:
                aws.say(f"the stack left out the replica in {region}: adding it")
                created: Any = [{"Create": {"RegionName": region}}]
                aws.client("dynamodb", self.home).update_table(
                    TableName=self.table, ReplicaUpdates=created
                )
                self._wait_until_active(self.home, others={region})

    def _wait_until_active(self, region: str, others: set[str]) -> None:
        found = ""
        for _ in aws.polls(ACTIVE_WAIT_S, ACTIVE_POLL_S):
            table = self._describe(region)
            states = {
                replica["RegionName"]: replica.get("ReplicaStatus")
                for replica in table.get("Replicas", [])
            }
            if table.get("TableStatus") == "ACTIVE" and all(
                states.get(other) == "ACTIVE" for other in others
            ):
                return
            found = f"{table.get('TableStatus', 'absent')}, replicas {states}"
        raise DeploymentRefused(
            f"the table {self.table} in {region} is not active after {ACTIVE_WAIT_S} s: {found}. "
            "DynamoDB goes on. Run the same command again: it waits for the end"
        )

    def _describe(self, region: str) -> dict[str, Any]:
        dynamodb = aws.client("dynamodb", region)
        try:
            return dict(dynamodb.describe_table(TableName=self.table)["Table"])
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return {}
            raise
