"""What one command of infra.deploy works on: its options, checked, and what AWS has of it.

Rule 1: What is wrong in the options is refused here, before anything is asked of AWS.
"""

import re
from dataclasses import dataclass, field

from infra import aws, parameters
from infra.aws import DeploymentRefused, Stack
from infra.parameters import Parameters
from infra.table_stack import TableStack
from ledger.errors import InvalidSettings
from ledger.settings import REGION_FROM, Settings

NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
PARAMS_GAP = re.compile(r"\s+(?=\w+=)")  # a value may hold spaces: 'limits={"stock:": {"floor": 0}} keepMs=600000'


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
        return self.parameters.get("tableName", self.service)

    @property
    def table_stack(self) -> TableStack:
        return TableStack(self.table, self.regions, parameters.capacity_of(self.parameters))

    @property
    def parameters(self) -> Parameters:
        return parameters.parameters_in(self.stage, self.params)

    def tells(self, region: str) -> bool:
        """Whether a threshold is reported in a Region. Raises InvalidSettings."""
        environ = {REGION_FROM: region, "LEDGER_THRESHOLDS": self.parameters["thresholds"]}
        return Settings.from_env(environ, table="any", regions=self.regions).tells

    def params_of(self, region: str, stream_arn: str | None = None) -> dict[str, str]:
        """What the framework is given, for a Region whose stream is known."""
        found = {"name": self.name, "regions": ",".join(self.regions)}
        found["tellsThresholds"] = str(self.tells(region)).lower()
        return {**found, **({"streamArn": stream_arn} if stream_arn else {}), **self.params}

    def deployed(self, region: str) -> Stack:
        """The service's stack in a Region."""
        return aws.stack(region, self.service)

    def refuse_another_table(self) -> None:
        """A forgotten tableName would send everybody to another table. Raises DeploymentRefused."""
        for region in self.regions:
            there = self.deployed(region).parameters.get("TableName", self.table)
            if there != self.table:
                raise DeploymentRefused(
                    f"the service in {region} has the table {there}, and this deployment {self.table}: say tableName "
                    "in PARAMS or serverless.yml, or --switch-table when that is meant. Nothing was changed"
                )


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
    if not all(key and value for key, _, value in pairs) or len(given) < len(pairs):
        raise DeploymentRefused(f"PARAMS='{params}': name=value, each name once, separated by spaces")
    target = Deployment(name, stage, names, given)
    wrong = parameters.unknown(given) or parameters.refusals(target.parameters)
    try:
        for region in names if not wrong else ():
            target.tells(region)
    except InvalidSettings as error:
        wrong.append(error.why)
    if wrong:
        raise DeploymentRefused(f"{' '.join(wrong)} Nothing was changed (docs/deploying.md, Parameters)")
    return target
