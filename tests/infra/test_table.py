"""The table's template: what would lose or endanger data if it were otherwise, of every
capacity.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from infra.table_template import Capacity, Range, named, regions_of, template_of

BODY_CHARACTERS = 51_200
"""Of a template that CloudFormation takes without a bucket."""


def scaled(kind: str, least: int, most: int) -> dict[str, Any]:
    scaling = {"MinCapacity": least, "MaxCapacity": most, "SeedCapacity": most}
    policy = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70}}
    return {
        f"{kind}ProvisionedThroughputSettings": {
            f"{kind}CapacityAutoScalingSettings": scaling | policy
        }
    }


MOST_WRITES = {"WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": 20_000}}
MOST_READS = {"ReadOnDemandThroughputSettings": {"MaxReadRequestUnits": 30_000}}
CAPACITIES: list[tuple[Capacity, str, dict[str, Any], dict[str, Any]]] = [
    # capacity                                             billing            of the table  of each
    #                                                      replica
    (Capacity(), "PAY_PER_REQUEST", {}, {}),
    (Capacity(Range(0, 20_000)), "PAY_PER_REQUEST", MOST_WRITES, {}),
    (Capacity(Range(0, 20_000), Range(0, 30_000)), "PAY_PER_REQUEST", MOST_WRITES, MOST_READS),
    (
        Capacity(Range(1_000, 9_000), Range(500, 2_000)),
        *("PROVISIONED", scaled("Write", 1_000, 9_000), scaled("Read", 500, 2_000)),
    ),
]


def test_a_table_of_any_capacity_is_kept_encrypted_and_streamed() -> None:
    for capacity, billing, writes, reads in CAPACITIES:
        template = json.loads(template_of(3, capacity))
        table = template["Resources"]["Table"]
        assert table["Type"] == "AWS::DynamoDB::GlobalTable"
        assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")
        assert template["Parameters"]["DeletionProtection"]["Default"] == "true"
        found = table["Properties"]
        assert {key["AttributeName"]: key["KeyType"] for key in found["KeySchema"]} == {
            "pk": "HASH",
            "sk": "RANGE",
        }
        # else: no transactions
        assert not found.keys() & {"TimeToLiveSpecification", "MultiRegionConsistency"}
        assert found["SSESpecification"]["SSEEnabled"] is True
        assert found["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
        assert found["BillingMode"] == billing
        assert {name: value for name, value in found.items() if "Throughput" in name} == writes
        for replica in found["Replicas"]:
            assert replica["PointInTimeRecoverySpecification"] == {
                "PointInTimeRecoveryEnabled": True
            }
            assert replica["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
            assert {name: value for name, value in replica.items() if "Throughput" in name} == reads


def test_time_to_live_is_on_for_periods_alone() -> None:
    for capacity, *_ in CAPACITIES:
        without, of_periods = (
            json.loads(template_of(2, capacity, retires=retires)) for retires in (False, True)
        )
        of_table = of_periods["Resources"]["Table"]["Properties"]
        assert of_table.pop("TimeToLiveSpecification") == {
            "AttributeName": "retires",
            "Enabled": True,
        }
        assert of_periods == without


def test_a_table_has_the_named_regions_in_order() -> None:
    for number in (1, 30):
        text = template_of(number, CAPACITIES[-1][0])
        assert len(text) < BODY_CHARACTERS
        found = json.loads(text)
        replicas = found["Resources"]["Table"]["Properties"]["Replicas"]
        assert [each["Region"] for each in replicas] == [
            {"Ref": f"Region{n}"} for n in range(1, number + 1)
        ]
        regions = [f"xx-east-{n}" for n in range(1, number + 1)]
        assert named(regions).keys() <= found["Parameters"].keys()
        assert regions_of({"TableName": "t", **dict(sorted(named(regions).items()))}) == regions


def test_cfn_lint_has_no_objection_to_any_capacity(tmp_path: Path) -> None:
    for number, (capacity, *_) in enumerate(CAPACITIES):
        (tmp_path / f"{number}.json").write_text(
            template_of(number + 1, capacity, retires=number % 2 > 0)
        )
    command = [str(Path(sys.executable).with_name("cfn-lint")), "--regions", "eu-west-1", "--"]
    done = subprocess.run(
        [*command, *map(str, tmp_path.iterdir())], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
