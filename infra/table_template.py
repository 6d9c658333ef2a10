"""The template of the table's stack: infra/table.yml with the Regions and the capacity of a
deployment.

Rule 1: A Region is a parameter of the stack, and `Region1` is the stack's own: so the stack says
which Regions it has, in which order. DynamoDB bounds their number; nothing here does.
Rule 2: A write in one Region is a write in each, so writes have one capacity for all; reads have
one in each replica.
Rule 3: The table's time to live is on where there are periods, by the attribute that only their
items have.
"""

import copy
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ledger.core.items import RETIRES

SOURCE = Path(__file__).parent / "table.yml"
REGION = re.compile(r"Region([1-9][0-9]*)")
# Rule 4: provisioned capacity begins with the most that autoscaling may give (SeedCapacity),
# because after a switch from on demand the scaling may start some minutes later.
TARGET_PERCENT = 70
"""The use of a provisioned capacity that autoscaling keeps."""


class Range(NamedTuple):
    """Units a second.

    Without a least: on demand, at most `most`. With one: autoscaling keeps it between both.
    """

    least: int
    most: int


class Capacity(NamedTuple):
    """The capacity in each Region. None: on demand, without a maximum."""

    writes: Range | None = None
    reads: Range | None = None

    @property
    def scaled(self) -> int:
        """How many of the two are scaled between a least and a most."""
        return sum(1 for units in self if units and units.least)


def template_of(regions: int, capacity: Capacity, *, retires: bool = False) -> str:
    """The template for a number of Regions, as JSON.

    retires: there are periods, whose items the table deletes.
    """
    found: dict[str, Any] = yaml.safe_load(SOURCE.read_text())
    table = found["Resources"]["Table"]["Properties"]
    (replica,) = table["Replicas"]
    if capacity.scaled:
        table["BillingMode"] = "PROVISIONED"
    if retires:
        table["TimeToLiveSpecification"] = {"AttributeName": RETIRES, "Enabled": True}
    for properties, kind, units in (
        (table, "Write", capacity.writes),
        (replica, "Read", capacity.reads),
    ):
        if units and units.least:
            scaling: dict[str, Any] = {
                "MinCapacity": units.least,
                "MaxCapacity": units.most,
                "SeedCapacity": units.most,
            }
            scaling["TargetTrackingScalingPolicyConfiguration"] = {"TargetValue": TARGET_PERCENT}
            properties[f"{kind}ProvisionedThroughputSettings"] = {
                f"{kind}CapacityAutoScalingSettings": scaling
            }
        elif units:
            properties[f"{kind}OnDemandThroughputSettings"] = {f"Max{kind}RequestUnits": units.most}
    for number in range(2, regions + 1):
        found["Parameters"][f"Region{number}"] = found["Parameters"]["Region1"]
        table["Replicas"].append(copy.deepcopy(replica) | {"Region": {"Ref": f"Region{number}"}})
    return json.dumps(found, indent=1)


def named(regions: Sequence[str]) -> dict[str, str]:
    """The parameters that name Regions."""
    return {f"Region{number}": region for number, region in enumerate(regions, 1)}


def regions_of(parameters: Mapping[str, str]) -> list[str]:
    """The Regions that a stack's parameters name, in their order."""
    numbered = {
        int(match[1]): value
        for key, value in parameters.items()
        if (match := REGION.fullmatch(key))
    }
    return [numbered[number] for number in sorted(numbered) if numbered[number]]
