"""The table's template: what would lose or endanger data if it were otherwise."""

from typing import Any

from tests.infra import template

TABLE = template.table()["Resources"]["Table"]
REPLICAS: list[Any] = [each["Fn::If"][1] if "Fn::If" in each else each for each in TABLE["Properties"]["Replicas"]]


def test_the_table_is_a_global_table_of_up_to_three_regions() -> None:
    assert TABLE["Type"] == "AWS::DynamoDB::GlobalTable"
    assert [replica["Region"] for replica in REPLICAS] == [{"Ref": f"Region{number}"} for number in (1, 2, 3)]


def test_every_replica_can_be_restored_to_any_second_and_is_protected_from_deletion() -> None:
    for replica in REPLICAS:
        assert replica["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert replica["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
    assert template.table()["Parameters"]["DeletionProtection"]["Default"] == "true"


def test_neither_removing_the_stack_nor_replacing_the_table_deletes_it() -> None:
    assert (TABLE["DeletionPolicy"], TABLE["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_the_stream_has_new_and_old_images() -> None:
    assert TABLE["Properties"]["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_the_keys_are_the_librarys_and_nothing_expires() -> None:
    keys = {key["AttributeName"]: key["KeyType"] for key in TABLE["Properties"]["KeySchema"]}
    assert keys == {"pk": "HASH", "sk": "RANGE"}
    assert "TimeToLiveSpecification" not in TABLE["Properties"]


def test_the_table_is_on_demand_encrypted_and_has_transactions() -> None:
    properties = TABLE["Properties"]
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["SSESpecification"]["SSEEnabled"] is True
    assert properties.get("MultiRegionConsistency", "EVENTUAL") == "EVENTUAL"
