"""S5: every role that the templates render, asked by real requests that change nothing.

The policies are the rendered ones, in a stack with the packaged template's roles alone, so
CloudFormation resolves them; only who may take a role, and queues that are not there yet, are
others. Writes have a condition that nothing fulfils, and an INSERT meets an item that is there.
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.exceptions import ClientError

from infra.rights import RIGHTS, ROLES
from lab.e2e import deployed
from lab.smoke.visit import ROOT, Visit

TEMPLATE = "cloudformation-template-update-stack.json"
KEPT = {"AWS::IAM::Role", "AWS::IAM::ManagedPolicy"}
KINDS = ("delta", "fold", "gate", "past", "hold", "lane", "crossing")
PLAIN = ("PutItem", "UpdateItem", "DeleteItem", "GetItem", "BatchGetItem", "Query")
OTHERS = ("PartiQLInsert", "PartiQLDelete", "Transact")
NEVER = {"ConditionExpression": "attribute_exists(pk) AND attribute_not_exists(pk)"}
THREADS, TRIES, KNOWN_S = 8, 6, 10  # a role that is new is not known everywhere at once


class Case(NamedTuple):
    role: str
    action: str
    pk: str
    region: str


def probes(packaged: Any, account: str) -> dict[str, Any]:
    """The template of the roles alone, for whoever is in the account."""
    who = {"AWS": {"Fn::Sub": f"arn:${{AWS::Partition}}:iam::{account}:root"}}
    may = {"Statement": [{"Effect": "Allow", "Principal": who, "Action": "sts:AssumeRole"}]}

    def elsewhere(node: Any) -> Any:
        if isinstance(node, list):
            return [elsewhere(part) for part in node]
        if not isinstance(node, dict):
            return node
        if "Fn::GetAtt" in node:
            return {"Fn::Sub": "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:none"}
        return {
            name: may if name == "AssumeRolePolicyDocument" else elsewhere(part)
            for name, part in node.items()
        }

    roles = {
        name: elsewhere(each)
        for name, each in packaged["Resources"].items()
        if each["Type"] in KEPT
    }
    return {name: packaged[name] for name in ("Parameters", "Conditions")} | {"Resources": roles}


def requests(table: str, pk: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The operation of an action."""
    key, here = {"pk": {"S": pk}, "sk": {"S": "smoke"}}, {"TableName": table}
    insert = f"INSERT INTO \"{table}\" VALUE {{'pk': ?, 'sk': ?}}"
    delete = f'DELETE FROM "{table}" WHERE "pk" = ? AND "sk" = ? AND "n" = \'never\''
    of_pk = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": key["pk"]}}
    return {
        "PutItem": ("put_item", {**here, "Item": key, **NEVER}),
        "UpdateItem": (
            "update_item",
            {**here, "Key": key, "UpdateExpression": "REMOVE n", **NEVER},
        ),
        "DeleteItem": ("delete_item", {**here, "Key": key, **NEVER}),
        "GetItem": ("get_item", {**here, "Key": key}),
        "BatchGetItem": ("batch_get_item", {"RequestItems": {table: {"Keys": [key]}}}),
        "Query": ("query", {**here, **of_pk}),
        "Scan": ("scan", {**here, "Limit": 1}),
        "Transact": (
            "transact_write_items",
            {"TransactItems": [{"Put": {**here, "Item": key, **NEVER}}]},
        ),
        **{
            action: (
                "batch_execute_statement",
                {"Statements": [{"Statement": text, "Parameters": [*key.values()]}]},
            )
            for action, text in (("PartiQLInsert", insert), ("PartiQLDelete", delete))
        },
    }


def is_expected(visit: Visit, case: Case) -> bool:
    action = "PutItem" if case.action == "Transact" else case.action
    asked = f"dynamodb:{action}", "table", case.region, (case.pk,), visit.regions[0]
    return any(right.uses(*asked) for right in RIGHTS[case.role])


def is_allowed(visit: Visit, clients: Any, case: Case) -> bool:
    operation, arguments = requests(visit.table, case.pk)[case.action]
    try:
        answer = getattr(clients[case.role, case.region], operation)(**arguments)
    except ClientError as error:
        return "AccessDenied" not in str(error)
    return "AccessDenied" not in str(answer.get("Responses", ""))


@pytest.fixture(scope="module")
def clients(visit: Visit) -> dict[tuple[str, str], Any]:
    """DynamoDB's client in each role at each endpoint."""
    deployed.run("package", visit.table_url)
    packaged = json.loads(
        (ROOT / "build/package" / f"{visit.stage}-{visit.regions[0]}" / TEMPLATE).read_text()
    )
    cloudformation, stack = visit.client("cloudformation"), f"{visit.name}-roles"
    body = json.dumps(probes(packaged, visit.account))
    cloudformation.create_stack(
        StackName=stack, TemplateBody=body, Capabilities=["CAPABILITY_NAMED_IAM"]
    )
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName=stack, WaiterConfig={"Delay": 3}
    )
    time.sleep(0 if visit.engine else KNOWN_S)
    found = cloudformation.list_stack_resources(StackName=stack)["StackResourceSummaries"]
    names = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in found}
    sts, clients = visit.client("sts"), dict[tuple[str, str], Any]()
    partition = sts.get_caller_identity()["Arn"].split(":")[1]
    for role in ROLES:
        arn = f"arn:{partition}:iam::{visit.account}:role/{names[f'{role}Role']}"
        given = sts.assume_role(RoleArn=arn, RoleSessionName="smoke")["Credentials"]
        session = boto3.session.Session(
            given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"]
        )
        clients |= {(role, region): session.client("dynamodb", region) for region in visit.regions}
    return clients


@pytest.fixture
def ask(
    visit: Visit, clients: Any, say: Callable[[str], None]
) -> Callable[[tuple[str, ...], list[str]], None]:
    """Each action on each kind of item, in each role: allowed by a row of infra/rights.py, or
    denied.
    """
    home, keys = (
        visit.regions[0],
        [f"{kind}#{region}#0#smoke" for kind, region in product(KINDS, visit.regions)],
    )
    keys += [f"{kind}#{home}#0#ledger:canary" for kind in ("delta", "fold")]
    keys += [*(f"sweep#{region}" for region in visit.regions), "shape", "smoke"]

    def asked(actions: tuple[str, ...], regions: list[str]) -> None:
        for pk in keys:
            visit.client("dynamodb").put_item(
                TableName=visit.table, Item={"pk": {"S": pk}, "sk": {"S": "smoke"}}
            )
        cases = wrong = [Case(*each) for each in product(ROLES, actions, keys, regions)]
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in range(1 if visit.engine else TRIES):
                allowed = pool.map(partial(is_allowed, visit, clients), wrong)
                wrong = [
                    case
                    for case, is_so in zip(wrong, allowed, strict=True)
                    if is_so != is_expected(visit, case)
                ]
                time.sleep(KNOWN_S if wrong and not visit.engine else 0)
        if visit.engine:
            pytest.skip(
                f"an engine asks no IAM: it allows {len(wrong)} of {len(cases)} requests that no "
                "row allows"
            )
        assert not wrong, (
            f"{len(wrong)} of {len(cases)} requests were answered otherwise: {wrong[:5]}"
        )
        say(
            f"{len(cases)} requests, {sum(is_expected(visit, case) for case in cases)} allowed, "
            "the others denied"
        )

    return asked


@pytest.mark.shows(14)
def test_a_role_reaches_the_keys_of_its_rows_and_no_others(visit: Visit, ask: Any) -> None:
    ask(PLAIN, visit.regions[:1])


@pytest.mark.shows(15)
def test_statements_and_transactions_are_held_to_the_same_keys(visit: Visit, ask: Any) -> None:
    ask(OTHERS, visit.regions[:1])


@pytest.mark.shows(16)
def test_a_right_in_a_region_is_held_to_that_regions_keys(visit: Visit, ask: Any) -> None:
    ask(PLAIN + OTHERS, visit.regions[1:])


@pytest.mark.shows(17)
def test_a_request_without_keys_is_refused(visit: Visit, ask: Any) -> None:
    ask(("Scan",), visit.regions)
