"""The table's template: what would lose or endanger data if it were otherwise, of every capacity."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from infra.table_template import ON_DEMAND, SOURCE, Capacity, Range, named, regions_of, template_of

STEADY = Capacity(Range(1_000, 9_000), Range(500, 2_000))
CAPPED = Capacity(Range(0, 20_000), Range(0, 30_000))
CAPACITIES = (ON_DEMAND, STEADY, CAPPED, Capacity(writes=Range(0, 5_000)))
BODY_CHARACTERS = 51_200
"""Of a template that CloudFormation takes without a bucket."""


def test_a_table_has_as_many_regions_as_are_named_each_with_the_same_replica_and_says_them_in_order() -> None:
    for number in (1, 2, 8, 30):
        text = template_of(number, STEADY)
        assert len(text) < BODY_CHARACTERS
        found = json.loads(text)
        replicas = found["Resources"]["Table"]["Properties"]["Replicas"]
        assert [each.pop("Region") for each in replicas] == [{"Ref": f"Region{n}"} for n in range(1, number + 1)]
        assert all(each == replicas[0] for each in replicas)
        regions = [f"xx-east-{n}" for n in range(1, number + 1)]
        assert named(regions).keys() <= found["Parameters"].keys()
        assert regions_of({"TableName": "t", **dict(sorted(named(regions).items()))}) == regions


def test_nothing_is_lost_by_a_mistake_nothing_expires_and_all_is_encrypted_and_streamed() -> None:
    for capacity in CAPACITIES:
        template = json.loads(template_of(3, capacity))
        table = template["Resources"]["Table"]
        assert table["Type"] == "AWS::DynamoDB::GlobalTable"
        assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")
        assert template["Parameters"]["DeletionProtection"]["Default"] == "true"
        found = table["Properties"]
        assert {key["AttributeName"]: key["KeyType"] for key in found["KeySchema"]} == {"pk": "HASH", "sk": "RANGE"}
        assert "TimeToLiveSpecification" not in found
        assert found["SSESpecification"]["SSEEnabled"] is True
        assert found["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
        assert found.get("MultiRegionConsistency", "EVENTUAL") == "EVENTUAL"  # the other has no transactions
        for replica in found["Replicas"]:
            assert replica["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
            assert replica["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}


def test_a_table_is_on_demand_unless_its_capacity_is_scaled_which_begins_with_the_most() -> None:
    def scaled(kind: str, least: int, most: int) -> dict[str, Any]:
        scaling = {"MinCapacity": least, "MaxCapacity": most, "SeedCapacity": most}
        policy = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70}}
        return {f"{kind}ProvisionedThroughputSettings": {f"{kind}CapacityAutoScalingSettings": scaling | policy}}

    most_writes = {"WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": 20_000}}
    most_reads = {"ReadOnDemandThroughputSettings": {"MaxReadRequestUnits": 30_000}}
    for capacity, mode, writes, reads in (
        (ON_DEMAND, "PAY_PER_REQUEST", {}, {}),
        (CAPPED, "PAY_PER_REQUEST", most_writes, most_reads),
        (STEADY, "PROVISIONED", scaled("Write", 1_000, 9_000), scaled("Read", 500, 2_000)),
    ):
        found = json.loads(template_of(2, capacity))["Resources"]["Table"]["Properties"]
        assert found["BillingMode"] == mode
        for expected, properties in ((writes, found), *((reads, replica) for replica in found["Replicas"])):
            assert {name: value for name, value in properties.items() if "Throughput" in name} == expected


def test_cfn_lint_has_no_objection_to_any_capacity(tmp_path: Path) -> None:
    assert not [line for line in SOURCE.read_text().splitlines() if "!" in line.partition("#")[0]]  # plain YAML
    for number, capacity in enumerate(CAPACITIES, 1):
        (tmp_path / f"{number}.json").write_text(template_of(number, capacity))
    program = str(Path(sys.executable).with_name("cfn-lint"))
    paths = map(str, tmp_path.iterdir())
    done = subprocess.run(
        [program, "--regions", "eu-west-1", "--", *paths], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
