"""What one command of infra.deploy works on: its options, checked, and what CloudFormation knows of it already.

Rule 1: What is wrong in the options is refused here, before anything is asked of AWS.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config

from infra import parameters
from infra.parameters import Parameters
from infra.refusals import refusals
from infra.table_stack import DeploymentRefused, TableStack, parameters_of, stack_of
from ledger.errors import InvalidSettings
from ledger.settings import REGION_FROM, Settings

NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
PARAMS_GAP = re.compile(r"\s+(?=\w+=)")  # a value may hold spaces: 'limits={"stock:": {"floor": 0}} keepMs=600000'
CONFIG = Config(connect_timeout=5, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 5})
TABLE_NAME = "tableName"


@dataclass(frozen=True, slots=True)
class Deployment:
    """What one command works on. `params` is what PARAMS says."""

    name: str
    stage: str
    regions: tuple[str, ...]
    params: dict[str, str] = field(default_factory=dict)

    @property
    def service(self) -> str:
        """The service's stack, and what opens the names of its functions."""
        return f"{self.name}-{self.stage}"

    @property
    def table(self) -> str:
        return self.parameters(self.regions[0]).values.get(TABLE_NAME, self.service)

    def table_stack(self, say: Callable[[str], None]) -> TableStack:
        capacity = self.parameters(self.regions[0]).capacity
        return TableStack(f"{self.table}-table", self.table, client, say, capacity)

    def parameters(self, region: str) -> Parameters:
        """All that hold in a Region."""
        return Parameters.of(self.stage, region, self.params)

    def tells(self, region: str) -> bool:
        """Whether a threshold is reported in a Region. Raises InvalidSettings."""
        environ = {REGION_FROM: region, "LEDGER_THRESHOLDS": self.parameters(region)["thresholds"]}
        return Settings.from_env(environ, table="any", regions=self.regions).tells

    def params_of(self, region: str, stream_arn: str | None = None) -> dict[str, str]:
        """What the framework is given, for a Region whose stream is known."""
        found = {"name": self.name, "regions": ",".join(self.regions)}
        found["tellsThresholds"] = str(self.tells(region)).lower()
        return {**found, **({"streamArn": stream_arn} if stream_arn else {}), **self.params}

    def stack(self, region: str) -> dict[str, Any] | None:
        """The service's stack in a Region, as CloudFormation describes it; None if it is not there."""
        return stack_of(client("cloudformation", region), self.service)

    def deployed(self, region: str) -> dict[str, str]:
        """The parameters of the service's stack in a Region; none if it is not there."""
        return parameters_of(self.stack(region) or {})

    def outputs(self, region: str) -> dict[str, str] | None:
        """Those of the service's stack in a Region; None if it is not there."""
        stack = self.stack(region)
        if stack is None:
            return None
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}

    def refuse_another_table(self) -> None:
        """A forgotten tableName would send everybody to another table. Raises DeploymentRefused."""
        for region in self.regions:
            there = self.deployed(region).get("TableName", self.table)
            if there != self.table:
                meant = f"say {TABLE_NAME} in PARAMS or serverless.yml, or --switch-table when that is meant"
                raise DeploymentRefused(
                    f"the service in {region} has the table {there}, and this deployment {self.table}: {meant}. "
                    "Nothing was changed"
                )


def client(service: Any, region: str) -> Any:
    """A boto3 client; AWS_ENDPOINT_URL sends it to another endpoint."""
    return boto3.session.Session().client(service, region_name=region, config=CONFIG)


def deployment(name: str, stage: str, regions: str, params: str) -> Deployment:
    """The options of a command, checked. Raises DeploymentRefused."""
    for label, text in (("NAME", name), ("STAGE", stage)):
        if not NAME.fullmatch(text):
            raise DeploymentRefused(f"{label}={text}: 1 to 20 small letters, digits and hyphens, a letter first")
    names = tuple(regions.split())
    if not names or len(set(names)) != len(names):
        raise DeploymentRefused(f"REGIONS='{regions}': different Regions, one or more, separated by spaces")
    pairs = [pair.partition("=") for pair in PARAMS_GAP.split(params.strip()) if pair]
    given = {key: value for key, _, value in pairs}
    if any(not key or not equals for key, equals, _ in pairs) or len(given) < len(pairs):
        raise DeploymentRefused(f"PARAMS='{params}': name=value, each name once, separated by spaces")
    target = Deployment(name, stage, names, given)
    wrong = parameters.unknown(given) or [why for region in names for why in refusals(target.parameters(region))]
    for region in names if not wrong else ():
        try:
            target.tells(region)
        except InvalidSettings as error:
            wrong = [error.why]
    if wrong:
        raise DeploymentRefused(f"{' '.join(dict.fromkeys(wrong))} Nothing was changed (docs/deploying.md, Parameters)")
    return target
