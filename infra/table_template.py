"""The template of the table's stack: infra/table.yml with the Regions and the capacity of a deployment.

Rule 1: A Region is a parameter of the stack, `Region1` the stack's own: so the stack itself says which Regions it has,
in which order. How many there are is for DynamoDB to say; nothing here bounds it.
Rule 2: A write in one Region is a write in each, so writes have one capacity for all; reads have it in each replica.
Rule 3: Provisioned capacity begins with the most that autoscaling may give (SeedCapacity), because after a switch from
on demand the scaling may come some minutes later.
"""

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SOURCE = Path(__file__).parent / "table.yml"
REGION = re.compile(r"Region([1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Range:
    """Units a second between which autoscaling keeps a capacity, for a use of `target` percent of it."""

    least: int
    most: int
    target: int

    def settings(self, kind: str) -> dict[str, Any]:
        scaling = {"MinCapacity": self.least, "MaxCapacity": self.most, "SeedCapacity": self.most}
        policy = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": self.target}}
        return {f"{kind}CapacityAutoScalingSettings": scaling | policy}


@dataclass(frozen=True, slots=True)
class Capacity:
    """writes, reads: provisioned, in each Region; None: on demand. Of the latter a limit, of both what is warm: units a
    second, 0 for none."""

    writes: Range | None = None
    reads: Range | None = None
    write_limit: int = 0
    read_limit: int = 0
    warm_writes: int = 0
    warm_reads: int = 0


ON_DEMAND = Capacity()


def template_of(regions: int, capacity: Capacity = ON_DEMAND) -> str:
    """The template for so many Regions, as JSON."""
    found: dict[str, Any] = yaml.safe_load(SOURCE.read_text())
    table = found["Resources"]["Table"]["Properties"]
    (replica,) = table["Replicas"]
    if capacity.writes and capacity.reads:
        table["BillingMode"] = "PROVISIONED"
        table["WriteProvisionedThroughputSettings"] = capacity.writes.settings("Write")
        replica["ReadProvisionedThroughputSettings"] = capacity.reads.settings("Read")
    if capacity.write_limit:
        table["WriteOnDemandThroughputSettings"] = {"MaxWriteRequestUnits": capacity.write_limit}
    if capacity.read_limit:
        replica["ReadOnDemandThroughputSettings"] = {"MaxReadRequestUnits": capacity.read_limit}
    warm = {"WriteUnitsPerSecond": capacity.warm_writes, "ReadUnitsPerSecond": capacity.warm_reads}
    if any(warm.values()):
        table["WarmThroughput"] = {name: units for name, units in warm.items() if units}
    for number in range(2, regions + 1):
        found["Parameters"][f"Region{number}"] = found["Parameters"]["Region1"]
        table["Replicas"].append(copy.deepcopy(replica) | {"Region": {"Ref": f"Region{number}"}})
    return json.dumps(found, indent=1)


def named(regions: Sequence[str]) -> dict[str, str]:
    """The parameters that name Regions."""
    return {f"Region{number}": region for number, region in enumerate(regions, 1)}


def regions_of(parameters: Mapping[str, str]) -> list[str]:
    """The Regions that a stack's parameters name, in their order."""
    numbered = {int(match[1]): value for key, value in parameters.items() if (match := REGION.fullmatch(key))}
    return [numbered[number] for number in sorted(numbered) if numbered[number]]
