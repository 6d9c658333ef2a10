"""The table's template: what would lose or endanger data if it were otherwise."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.table_template import ON_DEMAND, SOURCE, Capacity, Range, named, regions_of, template_of

STEADY = Capacity(Range(1_000, 9_000, 70), Range(500, 2_000, 60))
SALE = Capacity(write_limit=20_000, read_limit=30_000, warm_writes=15_000, warm_reads=16_000)
BODY_CHARACTERS = 51_200
"""Of a template that CloudFormation takes without a bucket."""


@pytest.fixture(params=[ON_DEMAND, STEADY, SALE], ids=["on-demand", "provisioned", "warmed"])
def table(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(template_of(3, request.param))
    return found


def properties(capacity: Capacity, regions: int = 2) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(template_of(regions, capacity))["Resources"]["Table"]["Properties"]
    return found


@pytest.mark.parametrize("number", [1, 2, 8, 30])
def test_a_table_has_as_many_regions_as_are_named_each_with_the_same_replica(number: int) -> None:
    text = template_of(number, STEADY)
    assert len(text) < BODY_CHARACTERS
    found = json.loads(text)
    replicas = found["Resources"]["Table"]["Properties"]["Replicas"]
    assert [each.pop("Region") for each in replicas] == [{"Ref": f"Region{n}"} for n in range(1, number + 1)]
    assert all(each == replicas[0] for each in replicas)
    asked = found["Parameters"].keys()
    assert {f"Region{n}" for n in range(1, number + 1)} == {name for name in asked if name.startswith("Region")}


def test_a_stack_says_its_regions_in_their_order_also_one_of_an_earlier_version() -> None:
    many = [f"xx-east-{number}" for number in range(1, 13)]
    assert regions_of(dict(sorted(named(many).items()))) == many
    assert regions_of({"TableName": "t", "Region2": "us-east-1", "Region1": "eu-west-1", "Region3": ""}) == [
        "eu-west-1",
        "us-east-1",
    ]


def test_the_table_is_a_global_table_with_the_librarys_keys(table: dict[str, Any]) -> None:
    assert table["Resources"]["Table"]["Type"] == "AWS::DynamoDB::GlobalTable"
    keys = {key["AttributeName"]: key["KeyType"] for key in table["Resources"]["Table"]["Properties"]["KeySchema"]}
    assert keys == {"pk": "HASH", "sk": "RANGE"}


def test_nothing_is_lost_by_a_mistake_and_nothing_expires(table: dict[str, Any]) -> None:
    found = table["Resources"]["Table"]
    for replica in found["Properties"]["Replicas"]:
        assert replica["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert replica["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
    assert table["Parameters"]["DeletionProtection"]["Default"] == "true"
    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert "TimeToLiveSpecification" not in found["Properties"]


def test_the_table_is_encrypted_streamed_and_has_transactions(table: dict[str, Any]) -> None:
    found = table["Resources"]["Table"]["Properties"]
    assert found["SSESpecification"]["SSEEnabled"] is True
    assert found.get("MultiRegionConsistency", "EVENTUAL") == "EVENTUAL"
    assert found["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_a_table_is_on_demand_without_bounds_unless_it_is_said_otherwise() -> None:
    found = properties(ON_DEMAND)
    assert found["BillingMode"] == "PAY_PER_REQUEST"
    assert not [name for name in (*found, *found["Replicas"][0]) if "Throughput" in name]


def test_provisioned_capacity_is_scaled_and_begins_with_the_most() -> None:
    found = properties(STEADY)
    assert found["BillingMode"] == "PROVISIONED"
    for settings, kind, scaled in (
        (found["WriteProvisionedThroughputSettings"], "Write", STEADY.writes),
        *((each["ReadProvisionedThroughputSettings"], "Read", STEADY.reads) for each in found["Replicas"]),
    ):
        assert scaled is not None
        assert settings == {
            f"{kind}CapacityAutoScalingSettings": {
                "MinCapacity": scaled.least,
                "MaxCapacity": scaled.most,
                "SeedCapacity": scaled.most,
                "TargetTrackingScalingPolicyConfiguration": {"TargetValue": scaled.target},
            }
        }


def test_on_demand_may_have_a_limit_and_be_warmed() -> None:
    found = properties(SALE)
    assert found["BillingMode"] == "PAY_PER_REQUEST"
    assert found["WriteOnDemandThroughputSettings"] == {"MaxWriteRequestUnits": 20_000}
    assert {each["ReadOnDemandThroughputSettings"]["MaxReadRequestUnits"] for each in found["Replicas"]} == {30_000}
    assert found["WarmThroughput"] == {"WriteUnitsPerSecond": 15_000, "ReadUnitsPerSecond": 16_000}
    assert properties(Capacity(warm_writes=5_000))["WarmThroughput"] == {"WriteUnitsPerSecond": 5_000}


def test_the_source_is_plain_yaml_which_any_library_reads() -> None:
    lines = [line.partition("#")[0] for line in SOURCE.read_text().splitlines()]
    assert not [line for line in lines if "!" in line]


def test_cfn_lint_has_no_objection_to_any_capacity(tmp_path: Path) -> None:
    paths = []
    for number, capacity in enumerate((ON_DEMAND, STEADY, SALE, Capacity(warm_reads=20_000)), 1):
        path = tmp_path / f"{number}.json"
        path.write_text(template_of(number, capacity))
        paths.append(str(path))
    program = str(Path(sys.executable).with_name("cfn-lint"))
    done = subprocess.run(
        [program, "--regions", "eu-west-1", "--", *paths], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
