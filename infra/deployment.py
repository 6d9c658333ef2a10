"""What one command of infra.deploy works on: its options, checked; what AWS has of it; and what the
account lacks.

Rule 1: `deployment` refuses wrong options before the first request to AWS.
Rule 2: The deployer refuses by name what the account is known to lack, before it makes anything:
CloudFormation says it ten minutes later, with a table made. Where the caller may not look, the
deployer prints "unknown".
"""

import re
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra import aws, parameters
from infra.aws import DeploymentRefused, Stack
from infra.forms import misfits, template_forms
from infra.parameters import Parameters
from infra.table_stack import TableStack
from ledger.core.errors import InvalidSettings
from ledger.core.settings import Settings
from ledger.core.variables import REGION_FROM

# a value may hold spaces: 'limits={"stock:": {"floor": 0}} keepMs=600000'
PARAMS_GAP = re.compile(r"\s+(?=\w+=)")
FLOOR = 100
"""Concurrency that AWS leaves unreserved in every account; an account with no more can reserve
none.
"""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What one command works on. params: those of PARAMS."""

    name: str
    stage: str
    regions: tuple[str, ...]
    params: dict[str, str] = field(default_factory=dict)

    @property
    def service(self) -> str:
        """The name of the service's stack; those of its functions begin with it."""
        return f"{self.name}-{self.stage}"

    @property
    def table(self) -> str:
        return self.parameters(self.regions[0]).get("tableName", self.service)

    @property
    def table_stack(self) -> TableStack:
        said = self.parameters(self.regions[0])
        return TableStack(
            self.table, self.regions, parameters.capacity_of(said), retires=said["periods"] != "{}"
        )

    def parameters(self, region: str) -> Parameters:
        """All parameters of a Region."""
        return parameters.parameters_in(self.stage, region, self.params)

    def tells(self, region: str) -> bool:
        """Whether a Region reports a threshold. Raises InvalidSettings."""
        given = self.parameters(region)
        of_values = {"LEDGER_LIMITS": given["limits"], "LEDGER_THRESHOLDS": given["thresholds"]}
        environ = {REGION_FROM: region, **of_values}
        return Settings.from_env(environ, table="any", regions=self.regions).tells

    def params_of(self, region: str, stream_arn: str | None = None) -> dict[str, str]:
        """The parameters that the framework gets for a Region.

        stream_arn: where the stream is known.
        """
        found = {"name": self.name, "regions": ",".join(self.regions)}
        found["tellsThresholds"] = str(self.tells(region)).lower()
        return {**found, **({"streamArn": stream_arn} if stream_arn else {}), **self.params}

    def deployed(self, region: str) -> Stack:
        """The service's stack in a Region."""
        return aws.stack(region, self.service)

    def account(self) -> str:
        """The account of the credentials.

        Tries them in every Region: one that is not enabled refuses them.
        """
        accounts = {self.identity(region)["Account"] for region in self.regions}
        return str(accounts.pop())

    def identity(self, region: str) -> Any:
        """The caller's identity, as a Region answers it. Raises DeploymentRefused."""
        try:
            return aws.client("sts", region).get_caller_identity()
        except (BotoCoreError, ClientError) as error:
            raise DeploymentRefused(
                f"AWS does not accept the credentials in {region}: {error}. Nothing was changed. "
                "Give others (AWS_PROFILE, or AWS_ACCESS_KEY_ID and the rest), or enable the "
                f"Region for the account (aws account enable-region --region-name {region})"
            ) from error

    def refuse_another_table(self) -> None:
        """Raises DeploymentRefused for another table: a forgotten tableName would send everybody
        there.
        """
        for region in self.regions:
            there = self.deployed(region).parameters.get("TableName", self.table)
            if there != self.table:
                raise DeploymentRefused(
                    f"the service in {region} has the table {there}, and this deployment "
                    f"{self.table}. Nothing was changed. Set tableName in PARAMS or "
                    "serverless.yml, or give --switch-table if you mean it"
                )

    def refuse_too_little_concurrency(self) -> None:
        for region in self.regions:
            try:
                self.concurrency(region)
            except (BotoCoreError, ClientError) as error:
                aws.say(f"{region}: the account's concurrency is unknown: {error}")

    def concurrency(self, region: str) -> int:
        """The concurrency that is left to all functions beside the canary's.

        Raises DeploymentRefused.
        """
        limit = aws.client("lambda", region).get_account_settings()["AccountLimit"]
        kept = int(self.deployed(region).parameters.get("ReservedCanary", 0))
        most, free = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
        more = int(self.parameters(region)["reservedCanary"]) - kept
        if more > 0 and free - more < min(FLOOR, most):
            raise DeploymentRefused(
                f"reservedCanary={kept + more}: the account may run {most} functions at once in "
                f"{region}, and AWS lets nobody reserve the last {min(FLOOR, most)}; {free} are "
                "unreserved now. Nothing was changed. Set reservedCanary=0, or request more "
                "(Service Quotas, AWS Lambda, Concurrent executions)"
            )
        return int(free - more)


def deployment(name: str, stage: str, regions: str, params: str) -> Deployment:
    """The options of a command, checked. Raises DeploymentRefused."""
    for option, text in (("name", name), ("stage", stage)):
        for why in misfits(option.upper(), text, template_forms()[option]):
            raise DeploymentRefused(why.rstrip("."))
    names = tuple(regions.split())
    if not names or len(set(names)) != len(names):
        raise DeploymentRefused(
            f"REGIONS='{regions}': name one or more Regions, all different, with spaces between"
        )
    pairs = [pair.partition("=") for pair in PARAMS_GAP.split(params.strip()) if pair]
    given = {key: value for key, _, value in pairs}
    if any(not key or not equals for key, equals, _ in pairs) or len(given) < len(pairs):
        raise DeploymentRefused(
            f"PARAMS='{params}': give name=value, each name once, with spaces between"
        )
    target = Deployment(name, stage, names, given)
    wrong = parameters.unknown(stage, given) or [
        why for region in names for why in parameters.refusals(target.parameters(region))
    ]
    for region in names if not wrong else ():
        try:
            target.tells(region)
        except InvalidSettings as error:
            wrong = [error.why]
    if wrong:
        raise DeploymentRefused(
            f"{' '.join(dict.fromkeys(wrong))} Nothing was changed (docs/deploying.md, Parameters)"
        )
    return target
