"""A deployment and the table's shape: what it would start the functions with, asked of the table and written into it.

Rule 1: The settings are those that the rendered templates give the functions, so a parameter that was forgotten is
seen. Those that contradict each other would end every function at its import, in one Region after the other.
Rule 2: Asking comes before every change, writing after the last one.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from infra import aws
from infra.aws import DeploymentRefused
from ledger.clocks import instants, wall_clock
from ledger.errors import InvalidSettings, LedgerError, SettingsMismatch, TableMissing
from ledger.lane.shape import check_growth, stored, write
from ledger.limit import Shape
from ledger.requests import Table, run
from ledger.settings import REGION_FROM, Settings
from ledger.table import DynamoTable

CANARY = "ledger:canary"
"""The counter of the canaries (service/canary)."""


def settings_of(template: Path, region: str) -> Settings:
    """The settings with which a template starts its functions in `region`. Raises DeploymentRefused."""
    settings: Settings | None = None
    for name, resource in json.loads(template.read_text())["Resources"].items():
        if resource["Type"] != "AWS::Lambda::Function":
            continue
        said = resource["Properties"].get("Environment", {}).get("Variables", {})
        known = {key: str(value) for key, value in said.items() if not isinstance(value, dict)}  # a Ref is known later
        try:
            settings = Settings.from_env(known | {REGION_FROM: region})
        except InvalidSettings as error:
            why = f"{name} would not start in {region}: {error.why}"
            raise DeploymentRefused(f"{why} Correct PARAMS or serverless.yml; nothing was deployed") from None
    if settings is None:
        raise DeploymentRefused(f"the template of {region} has no function; nothing was deployed")
    if settings.limit_of(CANARY) is not None:
        why = f"{CANARY}, the counter of the canaries, rises for ever, and a prefix of limits fits it"
        raise DeploymentRefused(f"limits={dict(settings.limits)}: {why}. Choose others; nothing was deployed")
    if settings.keep_of(CANARY) is not None:
        why = f"{CANARY}, the counter of the canaries, ends with no period, and a prefix of periods fits it"
        raise DeploymentRefused(f"periods={[*settings.periods]}: {why}. Choose others; nothing was deployed")
    return settings


def table_of(name: str, region: str) -> Table:
    return DynamoTable(name, region, cache(partial(aws.client, "dynamodb")))  # a client takes longer than a request


def refuse_another(settings: Settings, table: Table) -> Shape | None:
    """The shape, if there is one. Raises DeploymentRefused where it has other shards or limits, or a Region that the
    settings lack; or counters that have changes, which a new limit would be of."""
    try:
        shape = run(stored(), table, instants(wall_clock))
        run(check_growth(settings, shape), table, instants(wall_clock))
    except TableMissing:
        return None
    except SettingsMismatch as error:
        raise DeploymentRefused(
            f"{error} A deployment takes them from REGIONS, PARAMS and serverless.yml; nothing was changed "
            "(docs/data-model.md, Shape)"
        ) from None
    except LedgerError as error:
        raise DeploymentRefused(f"the table's shape cannot be read: {error}") from error
    return shape


def write_in(settings: Settings, tables: Mapping[str, Table]) -> None:
    """Write or grow the shape in every Region, whose processes each read their own. Raises DeploymentRefused."""
    for region, table in tables.items():
        try:
            done = run(write(replace(settings, region=region)), table, instants(wall_clock))
        except LedgerError as error:
            raise DeploymentRefused(f"the shape was not written in {region}: {error} Deploy again") from error
        aws.say(f"{region}: the table's shape is {done}")
