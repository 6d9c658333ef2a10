"""What each role may do to which items, by a small IAM evaluator: allowed what its code asks for, and no more."""

import fnmatch
import json
import re
from typing import Any

from tests.infra.template import listed, of_type

HOME, OTHER, THIRD = "eu-west-1", "us-east-1", "ap-south-1"
VALUES = {
    "AWS::Partition": "aws",
    "AWS::Region": HOME,
    "AWS::AccountId": "111122223333",
    "TableName": "ledger-dev",
    "OtherRegion1": OTHER,
    "OtherRegion2": "",
    "StreamArn": f"arn:aws:dynamodb:{HOME}:111122223333:table/ledger-dev/stream/2026",
    "Name": "ledger",
    "Stage": "dev",
}
CONDITIONS = {"HasOtherRegion1": True, "HasOtherRegion2": False, "HasOutcomes": True}

DELTA, DELTA_ELSEWHERE = f"delta#{HOME}#0#c", f"delta#{OTHER}#0#c"
FOLD, FOLD_ELSEWHERE = f"fold#{HOME}#0#c", f"fold#{OTHER}#0#c"
SHAPE = "shape"
MARK, MARK_ELSEWHERE = f"mark#{HOME}#3", f"mark#{OTHER}#3"
GATE, PAST, NOTE = (
    {region: f"{kind}#{region}#0#c" for region in (HOME, OTHER, THIRD)} for kind in ("gate", "past", "hold")
)
DECIDES = ("AddFromQueue", "Api")
POLICY_CHARACTERS = 6_144

ALLOWED = [
    (function, action, region, pk)
    for functions, actions, region, pk in (
        ("AddFromQueue Api Compact Find", "GetItem", HOME, SHAPE),
        *(
            (" ".join(DECIDES), actions, region, pk)
            for region, delta, fold in ((HOME, DELTA, FOLD), (OTHER, DELTA_ELSEWHERE, FOLD_ELSEWHERE))
            for actions, pk in (
                ("PutItem UpdateItem GetItem BatchGetItem", GATE[region]),
                ("BatchGetItem", GATE[THIRD]),  # copies
                ("PartiQLInsert Query GetItem", PAST[region]),
                ("PartiQLInsert PartiQLDelete Query GetItem", NOTE[region]),
                ("Query", delta),  # a gate is made only where nothing was added without one
                ("GetItem", fold),
            )
        ),
        ("Api", "BatchGetItem GetItem Query", HOME, GATE[OTHER]),
        ("Api", "Query", HOME, PAST[OTHER]),
        ("AddFromQueue", "PutItem", HOME, DELTA),
        ("AddFromQueue", "PartiQLInsert", HOME, DELTA_ELSEWHERE),  # a fail-over retry keeps its lane
        ("Api", "PutItem PartiQLInsert Query", HOME, DELTA),
        ("Api", "BatchGetItem", HOME, FOLD_ELSEWHERE),
        ("Api", "Query GetItem", HOME, FOLD),
        ("Mark", "UpdateItem", HOME, MARK),
        ("Plan", "Query UpdateItem", HOME, MARK),
        ("Compact", "GetItem PutItem", HOME, FOLD),
        ("Compact", "Query PartiQLDelete DeleteItem", HOME, DELTA),
        ("Compact", "GetItem", OTHER, FOLD),  # clean asks the other Regions
        ("Compact", "GetItem UpdateItem DeleteItem", HOME, MARK),
        ("Find", "Scan", HOME, None),
        ("Find", "GetItem PutItem", HOME, f"mark#{HOME}#find"),
        ("Find", "UpdateItem BatchGetItem", HOME, MARK),
        ("Find", "BatchGetItem GetItem", HOME, FOLD),
        ("Find", "Query", HOME, DELTA),
    )
    for function in functions.split()
    for action in actions.split()
]
ROLES = ("AddFromQueue", "Api", "Mark", "Plan", "Compact", "Find")
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete")
READS = ("GetItem", "BatchGetItem", "Query", "Scan", "PartiQLSelect", "ConditionCheckItem")
PLACES = [
    (region, pk)
    for region in (HOME, OTHER, THIRD)
    for pk in (DELTA, DELTA_ELSEWHERE, FOLD, FOLD_ELSEWHERE, MARK, MARK_ELSEWHERE, None)
]
NEW_GATES = [(HOME, DELTA), (HOME, FOLD), (OTHER, DELTA_ELSEWHERE), (OTHER, FOLD_ELSEWHERE)]
"""Where is looked before a gate is made."""

REFUSED = [
    *(
        ("AddFromQueue", action, region, pk)
        for action in READS
        for region, pk in PLACES
        if action not in ("GetItem", "Query") or (region, pk) not in NEW_GATES
    ),
    *(("AddFromQueue", action, HOME, FOLD) for action in WRITES),
    *(("Api", action, HOME, pk) for action in WRITES for pk in (FOLD, MARK, None)),
    *(("Api", action, HOME, DELTA) for action in ("UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLDelete")),
    *((role, action, HOME, pk) for role in ("Mark", "Plan") for action in (*READS, *WRITES) for pk in (DELTA, FOLD)),
    *((role, action, HOME, MARK_ELSEWHERE) for role in ("Mark", "Plan", "Compact", "Find") for action in WRITES),
    *(("Compact", action, OTHER, pk) for action in WRITES for pk in (DELTA, FOLD, FOLD_ELSEWHERE, MARK)),
    *(("Compact", action, HOME, pk) for action in WRITES for pk in (DELTA_ELSEWHERE, FOLD_ELSEWHERE)),
    *(("Compact", action, OTHER, pk) for action in READS for pk in (DELTA, FOLD_ELSEWHERE)),
    *((role, action, HOME, SHAPE) for role in ("Mark", "Plan") for action in READS),
    *((role, action, HOME, SHAPE) for role in ROLES for action in WRITES),
    *(("Compact", action, HOME, DELTA) for action in WRITES if action not in ("PartiQLDelete", "DeleteItem")),
    *(("Compact", action, HOME, FOLD) for action in WRITES if action != "PutItem"),
    ("Compact", "Scan", HOME, None),
    *(("Find", action, HOME, pk) for action in WRITES for pk in (DELTA, FOLD)),
    *((role, action, THIRD, pk) for role in ("Api", "Compact") for action in READS for pk in (DELTA, FOLD, None)),
]
OF_GATES = {"gate": ("PutItem", "UpdateItem"), "past": ("PartiQLInsert",), "hold": ("PartiQLInsert", "PartiQLDelete")}
"""All that anybody may write of limited counters, each only at its own Region's endpoint."""

REFUSED += [
    (role, action, region, f"{kind}#{home}#0#c")
    for role in ROLES
    for kind, allowed in OF_GATES.items()
    for action in WRITES
    for region in (HOME, OTHER, THIRD)
    for home in (HOME, OTHER, THIRD)
    if role not in DECIDES or action not in allowed or region != home or region == THIRD
]


def _resolved(value: Any) -> Any:
    """A value with Ref, Sub and If worked out; what cannot be stands for nothing that a table's ARN matches."""
    if isinstance(value, list):
        return [found for found in map(_resolved, value) if found is not None]
    if not isinstance(value, dict):
        return value
    if "Ref" in value:
        return VALUES.get(value["Ref"]) if value["Ref"] != "AWS::NoValue" else None
    if "Fn::Sub" in value:
        text: str = value["Fn::Sub"]
        for name, replacement in VALUES.items():
            text = text.replace(f"${{{name}}}", replacement)
        return text
    if "Fn::If" in value:
        condition, yes, no = value["Fn::If"]
        return _resolved(yes if CONDITIONS[condition] else no)
    if "Fn::GetAtt" in value:
        return f"another resource: {value}"
    return {key: _resolved(each) for key, each in value.items()}


def _statements(service: dict[str, Any], role: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of the role itself and of the policies that it has with others."""
    managed = of_type(service, "AWS::IAM::ManagedPolicy")
    shared = [
        each["Fn::If"][1 if CONDITIONS[each["Fn::If"][0]] else 2] if "Fn::If" in each else each
        for each in role.get("ManagedPolicyArns", [])
    ]
    named = [managed[each["Ref"]] for each in shared if each != {"Ref": "AWS::NoValue"}]
    documents = [policy["PolicyDocument"] for policy in (*role["Policies"], *named)]
    return [_resolved(statement) for document in documents for statement in document["Statement"]]


def _allows(service: dict[str, Any], function: str, action: str, region: str, pk: str | None) -> bool:
    role = of_type(service, "AWS::IAM::Role")[f"{function}Role"]
    table = f"arn:aws:dynamodb:{region}:111122223333:table/ledger-dev"
    return any(
        f"dynamodb:{action}" in listed(statement["Action"])
        and any(fnmatch.fnmatchcase(table, resource) for resource in listed(statement["Resource"]))
        and _holds(statement.get("Condition"), pk)
        for statement in _statements(service, role)
        if statement
    )


def _holds(condition: dict[str, Any] | None, pk: str | None) -> bool:
    if condition is None:
        return True
    if condition["Null"] == {"dynamodb:LeadingKeys": "false"} and pk is None:
        return False
    patterns = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    return pk is None or any(fnmatch.fnmatchcase(pk, pattern) for pattern in patterns)


def test_the_policies_of_gates_are_the_same_in_every_region_and_fit_a_policy(service: dict[str, Any]) -> None:
    here, *there = (json.dumps(each) for each in of_type(service, "AWS::IAM::ManagedPolicy").values())
    assert len(here) < POLICY_CHARACTERS
    texts = [re.sub(r"\$\{OtherRegion\d\}", "${AWS::Region}", each) for each in there]
    assert [json.loads(each)["PolicyDocument"] for each in texts] == [json.loads(here)["PolicyDocument"]] * 2


def test_a_role_allows_what_its_function_asks_for(service: dict[str, Any]) -> None:
    assert [request for request in ALLOWED if not _allows(service, *request)] == []


def test_a_role_allows_nothing_else(service: dict[str, Any]) -> None:
    assert [request for request in REFUSED if _allows(service, *request)] == []
    asked = {(function, action) for function, action, _, _ in ALLOWED}
    for name, role in of_type(service, "AWS::IAM::Role").items():
        for statement in filter(None, _statements(service, role)):
            for action in listed(statement["Action"]):
                if action.startswith("dynamodb:") and statement["Sid"] != "Follow":
                    assert (name.removesuffix("Role"), action.removeprefix("dynamodb:")) in asked, (name, action)
