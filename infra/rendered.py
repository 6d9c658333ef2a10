"""What a rendered template starts the functions with, held against what they accept.

Rule 1: Settings that contradict each other would end every function at its import, in one Region after the other.
Rule 2: They are refused with the library's own message before anything is deployed.
"""

import json
from pathlib import Path

from infra.table_stack import DeploymentRefused
from ledger.errors import InvalidSettings
from ledger.settings import REGION_FROM, Settings


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
    return settings
