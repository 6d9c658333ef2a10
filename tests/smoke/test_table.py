"""S2: the table, as its stack made it."""

from collections.abc import Callable

import pytest

from lab.smoke.visit import Visit

EXPECTED = {
    "GlobalTableVersion": "2019.11.21",
    "StreamViewType": "NEW_AND_OLD_IMAGES",
    "SSEType": "KMS",
    "PointInTimeRecoveryStatus": "ENABLED",
}


@pytest.mark.shows(1)
def test_each_replica_is_what_the_stack_asks_for(visit: Visit, say: Callable[[str], None]) -> None:
    for region in visit.regions:
        dynamodb = visit.client("dynamodb", region)
        table = dynamodb.describe_table(TableName=visit.table)["Table"]
        backups = dynamodb.describe_continuous_backups(TableName=visit.table)[
            "ContinuousBackupsDescription"
        ]
        parts = table, table["StreamSpecification"], table.get("SSEDescription", {})
        found = dict(
            part
            for each in (*parts, backups["PointInTimeRecoveryDescription"])
            for part in each.items()
        )
        if visit.engine and found.get("SSEType") is None:
            pytest.skip("MiniStack's CloudFormation leaves out encryption and backups")
        assert {name: found.get(name) for name in EXPECTED} == EXPECTED, region
    say(f"both replicas have {', '.join(EXPECTED.values())}")
