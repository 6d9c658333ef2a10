"""The table's template: what would lose or endanger data if it were otherwise."""

from typing import Any

from tests.infra import template

TABLE = template.table()["Resources"]["Table"]
PROPERTIES = TABLE["Properties"]
REPLICAS: list[Any] = [each["Fn::If"][1] if "Fn::If" in each else each for each in PROPERTIES["Replicas"]]


def test_the_table_is_a_global_table_of_up_to_three_regions_with_the_librarys_keys() -> None:
    assert TABLE["Type"] == "AWS::DynamoDB::GlobalTable"
    assert [replica["Region"] for replica in REPLICAS] == [{"Ref": f"Region{number}"} for number in (1, 2, 3)]
    keys = {key["AttributeName"]: key["KeyType"] for key in PROPERTIES["KeySchema"]}
    assert keys == {"pk": "HASH", "sk": "RANGE"}


def test_nothing_is_lost_by_a_mistake_and_nothing_expires() -> None:
    for replica in REPLICAS:
        assert replica["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert replica["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
    assert template.table()["Parameters"]["DeletionProtection"]["Default"] == "true"
    assert (TABLE["DeletionPolicy"], TABLE["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert "TimeToLiveSpecification" not in PROPERTIES


def test_the_table_is_on_demand_encrypted_streamed_and_has_transactions() -> None:
    assert PROPERTIES["BillingMode"] == "PAY_PER_REQUEST"
    assert PROPERTIES["SSESpecification"]["SSEEnabled"] is True
    assert PROPERTIES.get("MultiRegionConsistency", "EVENTUAL") == "EVENTUAL"
    assert PROPERTIES["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
