"""A small evaluator of IAM policies, for the roles of the service's template.

Rule 1: A request names all its partition keys, and one statement must cover them all: ForAllValues.
Rule 2: A statement that hangs on a condition of the template says so: `If`; one that several roles share: `Shared`.
Rule 3: What another resource's ARN would be is its logical name.
"""

import fnmatch
from collections.abc import Sequence
from typing import Any

from tests.infra.template import listed, of_type

HOME, OTHER, THIRD = "eu-west-1", "us-east-1", "ap-south-1"
ACCOUNT = "111122223333"
VALUES = {
    "AWS::Partition": "aws",
    "AWS::Region": HOME,
    "AWS::AccountId": ACCOUNT,
    "TableName": "ledger-dev",
    "Regions": [HOME, OTHER],
    "StreamArn": f"arn:aws:dynamodb:{HOME}:{ACCOUNT}:table/ledger-dev/stream/2026",
    "Name": "ledger",
    "Stage": "dev",
}
CONDITIONS = {"HasOtherRegions": True, "HasOutcomes": True, "TellsThresholds": True}


def table_in(region: str) -> str:
    return f"arn:aws:dynamodb:{region}:{ACCOUNT}:table/ledger-dev"


def statements_of(service: dict[str, Any], role: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of the role itself, and of the policies that it has with others: `Shared`."""
    managed = of_type(service, "AWS::IAM::ManagedPolicy")
    shared = [managed[each["Ref"]]["PolicyDocument"] for each in role.get("ManagedPolicyArns", [])]
    own = [policy["PolicyDocument"] for policy in role["Policies"]]
    return [
        found | ({"Shared": True} if document in shared else {})
        for document in (*own, *shared)
        for each in document["Statement"]
        if (found := _resolved(each))
    ]


def allowing(
    service: dict[str, Any], function: str, action: str, resource: str, region: str, pks: Sequence[str | None] = ()
) -> list[dict[str, Any]]:
    """The statements of a function's role that allow a request, sent to a Region."""
    role = of_type(service, "AWS::IAM::Role")[f"{function}Role"]
    return [
        statement
        for statement in statements_of(service, role)
        if action in listed(statement["Action"])
        and any(fnmatch.fnmatchcase(resource, pattern) for pattern in listed(statement["Resource"]))
        and all(_holds(statement.get("Condition"), region, pk) for pk in pks or (None,))
    ]


def _resolved(value: Any) -> Any:
    """A value with Ref, Sub, GetAtt and If worked out."""
    if isinstance(value, list):
        return [found for found in map(_resolved, value) if found is not None]
    if not isinstance(value, dict):
        return value
    if "Ref" in value:
        return VALUES.get(value["Ref"]) if value["Ref"] != "AWS::NoValue" else None
    if "Fn::Sub" in value:
        text: str = value["Fn::Sub"]
        for name, replacement in VALUES.items():
            text = text.replace(f"${{{name}}}", str(replacement))
        return text
    if "Fn::If" in value:
        condition, yes, no = value["Fn::If"]
        found = _resolved(yes if CONDITIONS[condition] else no)
        return found | {"If": condition} if isinstance(found, dict) else found
    if "Fn::GetAtt" in value:
        return value["Fn::GetAtt"][0]
    return {key: _resolved(each) for key, each in value.items()}


def _holds(condition: dict[str, Any] | None, region: str, pk: str | None) -> bool:
    """As IAM has it: `${aws:RequestedRegion}` stands for the Region that was asked, and every operator must hold."""
    if condition is None:
        return True
    if condition["Null"] == {"dynamodb:LeadingKeys": "false"} and pk is None:
        return False
    if region not in condition.get("StringEquals", {}).get("aws:RequestedRegion", [region]):
        return False
    return pk is None or any(fits(pk, pattern, region) for pattern in patterns_of(condition))


def patterns_of(condition: dict[str, Any] | None) -> list[str]:
    """Those of partition keys."""
    found = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] if condition else []
    return [pattern.replace("\\$", "$") for pattern in found]


def fits(pk: str, pattern: str, region: str) -> bool:
    return fnmatch.fnmatchcase(pk, pattern.replace("${aws:RequestedRegion}", region))
