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
GIVEN = ("name", "regions", "streamArn", "tellsThresholds")
"""What infra.deploy gives itself, from NAME, REGIONS and what it finds out."""

RANGE = re.compile(r"([0-9]*)\.\.([0-9]+)")


class _Loader(yaml.SafeLoader):
    """Reads past CloudFormation's tags, of which no parameter has one."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What holds for one Region, by name, as text."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, stage: str, region: str, given: Mapping[str, str]) -> Parameters:
        """What a stage has in a Region; `given` is PARAMS."""
        of_region = (_load(REGIONAL).get(stage) or {}).get(region) or {}
        stages = _load(SERVERLESS)["params"]
        values = {**stages["default"], **stages.get(stage, {}), **given, **of_region}
        return cls({name: str(value) for name, value in values.items() if "${" not in str(value)})

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def number(self, name: str) -> int:
        return int(self.values[name])

    @property
    def ring_delay_s(self) -> int:
        """From a change that rings to the look at its lane."""
        return self.number("ringEverySeconds") + 5 + -(-self.number("allowedLatenessMs") // 1_000)

    @property
    def capacity(self) -> Capacity:
        """The table's, once infra/refusals.py has found nothing wrong in it."""
        found = (RANGE.fullmatch(self[name]) for name in ("tableWrites", "tableReads"))
        writes, reads = (Range(int(each[1] or 0), int(each[2])) if each else None for each in found)
        return Capacity(writes, reads)


def unknown(given: Mapping[str, str]) -> list[str]:
    """What PARAMS may not say: sentences."""
    known = _load(SERVERLESS)["params"]["default"]
    wrong = [f"{name} is given by the deployment." for name in given if name in GIVEN]
    wrong += [f"{name} is no parameter of serverless.yml." for name in given if name not in known]
    return wrong + [f"{name} has no value: leave it out." for name, value in given.items() if not value]


@cache
def _load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text(), _Loader)
    return found
