"""The parameters of a deployment, as the framework will take them: PARAMS over the stage's over those of all stages.

Rule 1: serverless.yml and infra/regions.yml are where they stand; nothing is repeated here but what depends on them.
Rule 2: What PARAMS names is a parameter that is there. One that nobody knows would be lost without a word.
Rule 3: What a variable of the framework gives is left to it, and is not here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from infra.build import ROOT
from infra.table_template import Capacity, Range

SERVERLESS, REGIONAL = ROOT / "serverless.yml", ROOT / "infra" / "regions.yml"
DEPLOYS = {"name": "NAME", "regions": "REGIONS", "artifact": "", "streamArn": "", "tellsThresholds": ""}
"""What infra.deploy gives itself, and what one says instead."""

GONE = {
    "markBatch": "ringBatch",
    "findSchedule": "sweepSchedule",
    "foldLagThresholdMs": "canaryLagThresholdMs",
    "otherRegion1": "REGIONS",
    "otherRegion2": "REGIONS",
}
"""What earlier versions had, and what is there instead."""

RATE = re.compile(r"rate\(([0-9]+) minutes?\)")
PROVISIONED = "PROVISIONED"


class _Loader(yaml.SafeLoader):
    """Reads past CloudFormation's tags, of which no parameter has one."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is said for one Region, by name, as text."""

    said: Mapping[str, str]

    @classmethod
    def of(cls, stage: str, region: str, given: Mapping[str, str]) -> Parameters:
        """What a stage has in a Region; `given` is PARAMS."""
        of_region = (_load(REGIONAL).get(stage) or {}).get(region) or {}
        all_stages = _load(SERVERLESS)["params"]
        said = {**all_stages["default"], **all_stages.get(stage, {}), **given, **of_region}
        return cls({name: str(value) for name, value in said.items() if "${" not in str(value)})

    def __getitem__(self, name: str) -> str:
        return self.said[name]

    def number(self, name: str) -> int:
        """0 for what is empty. Raises ValueError."""
        return int(self.said[name] or 0)

    def minutes(self, name: str) -> int:
        """How often, of a schedule rate(n minutes); 0 for another."""
        rate = RATE.fullmatch(self.said[name])
        return int(rate[1]) if rate else 0

    @property
    def ring_delay_s(self) -> int:
        """From a change that rings to the look at its lane."""
        return self.number("ringEverySeconds") + 5 + -(-self.number("allowedLatenessMs") // 1_000)

    @property
    def capacity(self) -> Capacity:
        """The table's, once infra/refusals.py has found nothing wrong in it."""
        writes, reads = (
            Range(self.number(f"table{kind}Min"), self.number(f"table{kind}Max"), self.number("tableTargetPercent"))
            if self["tableBilling"] == PROVISIONED
            else None
            for kind in ("Write", "Read")
        )
        limits = self.number("tableWriteLimit"), self.number("tableReadLimit")
        return Capacity(writes, reads, *limits, self.number("tableWarmWrites"), self.number("tableWarmReads"))


def unknown(given: Mapping[str, str]) -> list[str]:
    """What PARAMS may not say: sentences."""
    known = _load(SERVERLESS)["params"]["default"]
    wrong = []
    for name, value in given.items():
        if name in GONE:
            wrong.append(f"{name} is gone: say {GONE[name]}.")
        elif name in DEPLOYS:
            instead = f": say {DEPLOYS[name]}=" if DEPLOYS[name] else ""
            wrong.append(f"{name} is given by the deployment{instead}.")
        elif name not in known:
            wrong.append(f"{name} is no parameter of serverless.yml.")
        elif not value:
            wrong.append(f"{name} has no value: leave it out, or say 0 for no number.")
    return wrong


@cache
def _load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text(), _Loader)
    return found
