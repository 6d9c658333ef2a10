"""A deployment and the table's shape: compares the functions' settings with it, and writes it.

Rule 1: The settings are those that the rendered templates give the functions, so a forgotten
parameter shows. Settings that contradict each other would end every function at its import, in one
Region after the other.
Rule 2: The deployer reads the shape before every change, and writes it after the last one.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from infra import aws
from infra.aws import DeploymentRefused
from ledger.core.clocks import instants, wall_clock
from ledger.core.errors import InvalidSettings, LedgerError, SettingsMismatch, TableMissing
from ledger.core.limit import Shape
from ledger.core.requests import Table
from ledger.core.running import run
from ledger.core.settings import Settings
from ledger.core.variables import REGION_FROM
from ledger.lane.shape import check_growth, stored, write
from ledger.tables.dynamo import DynamoTable

CANARY = "ledger:canary"
"""The counter of the canaries (service/canary)."""


VARIABLES_BYTES_MAX = 4_096
"""Of one function's environment, as JSON:
https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html. What CloudFormation fills
in later, such as a queue's URL, counts here as its reference."""


def settings_of(template: Path, region: str) -> Settings:
    """The settings with which a template starts its functions in `region`.

    Raises DeploymentRefused.
    """
    settings: Settings | None = None
    for name, resource in json.loads(template.read_text())["Resources"].items():
        if resource["Type"] != "AWS::Lambda::Function":
            continue
        said = resource["Properties"].get("Environment", {}).get("Variables", {})
        if (size := len(json.dumps(said, separators=(",", ":")).encode())) > VARIABLES_BYTES_MAX:
            raise DeploymentRefused(
                f"the variables of {name} have {size:,} bytes, and Lambda takes "
                f"{VARIABLES_BYTES_MAX:,}. Nothing was deployed. Give fewer or shorter prefixes "
                "in shards, limits, periods and thresholds"
            )
        # a Ref is known later
        known = {key: str(value) for key, value in said.items() if not isinstance(value, dict)}
        try:
            settings = Settings.from_env(known | {REGION_FROM: region})
        except InvalidSettings as error:
            why = f"{name} would not start in {region}: {error.why}"
            raise DeploymentRefused(
                f"{why} Nothing was deployed. Correct PARAMS or serverless.yml"
            ) from None
    if settings is None:
        raise DeploymentRefused(
            f"the template of {region} has no function. Nothing was deployed. Mend serverless.yml"
        )
    if settings.plan(CANARY).limit is not None:
        why = (
            f"{CANARY}, the counter of the canaries, rises for ever, and a prefix of limits fits it"
        )
        raise DeploymentRefused(
            f"limits={dict(settings.limits)}: {why}. Nothing was deployed. Choose others"
        )
    if settings.plan(CANARY).keep is not None:
        why = (
            f"{CANARY}, the counter of the canaries, ends with no period, and a prefix of "
            "periods fits it"
        )
        raise DeploymentRefused(
            f"periods={[*settings.periods]}: {why}. Nothing was deployed. Choose others"
        )
    return settings


def table_of(name: str, region: str) -> Table:
    # a client takes longer than a request
    return DynamoTable(name, region, cache(partial(aws.client, "dynamodb")))


def refuse_another(settings: Settings, table: Table) -> Shape | None:
    """The shape, if there is one. Raises DeploymentRefused where it has other shards or limits, or
    a Region that the settings lack, and where counters of a new limit have changes already."""
    try:
        shape = run(stored(), table, instants(wall_clock))
        run(check_growth(settings, shape), table, instants(wall_clock))
    except TableMissing:
        return None
    except SettingsMismatch as error:
        raise DeploymentRefused(
            f"{error} Nothing was changed. Correct REGIONS, PARAMS or serverless.yml "
            "(docs/data-model.md, Shape)"
        ) from None
    except LedgerError as error:
        raise DeploymentRefused(
            f"the table's shape cannot be read: {error} Nothing was changed"
        ) from error
    return shape


def write_in(settings: Settings, tables: Mapping[str, Table]) -> None:
    """Write or grow the shape in every Region, whose processes each read their own.

    Raises DeploymentRefused.
    """
    for region, table in tables.items():
        try:
            done = run(write(replace(settings, region=region)), table, instants(wall_clock))
        except LedgerError as error:
            why = f"the service is deployed, and the shape is not written in {region}: {error}"
            raise DeploymentRefused(f"{why} Deploy again") from error
        aws.say(f"{region}: the table's shape is {done}")
