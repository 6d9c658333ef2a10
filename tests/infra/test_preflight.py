"""Preflight on recorded answers: each check is ok, to be mended and unknown; the command prints
all, and only reads.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from infra import aws as edge
from infra import deploy
from infra.aws import DeploymentRefused
from infra.build import ARTIFACT
from infra.deployment import Deployment, deployment
from infra.preflight import account as session
from infra.preflight import verdict
from infra.preflight.flight import MEND, OK, UNKNOWN, Flight
from ledger.core import items
from ledger.core.limit import Shape
from tests.infra import template
from tests.infra.aws import HOME, OTHER, package
from tests.infra.recorded import ACCOUNT, Recorded, denied, limits, quota, stack

READS = re.compile("(Describe|Get|List|Simulate|Validate)[A-Z]")
BOTH = f"{HOME} {OTHER}"
WHO = f"arn:aws:iam::{ACCOUNT}:user/me"
Found = Callable[..., list[tuple[str, str]]]


RECORDED = Recorded()
NOW = datetime(2031, 1, 1, tzinfo=UTC)


def render(folder: Path, target: Deployment) -> dict[str, Path]:
    found = {}
    for region in target.regions:
        package(folder / region, target.params_of(region))
        found[region] = folder / region / "cloudformation-template-update-stack.json"
        (api,) = json.loads(found[region].read_text())["Resources"].values()
        whole = json.loads(json.dumps(template.source()).replace(r"\\$", "$"))
        for function in template.of_type(whole, "AWS::Lambda::Function").values():
            function |= api["Properties"]
        found[region].write_text(json.dumps(whole))
    return found


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorded:
    RECORDED.begin()
    monkeypatch.setattr(edge, "client", RECORDED.client)
    monkeypatch.setattr(deploy, "render", partial(render, tmp_path))
    monkeypatch.setattr(deploy, "build", lambda target: ARTIFACT)
    monkeypatch.setattr(deploy, "sizes", lambda archive: "service.zip: 5.00 MiB")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setattr(session, "datetime", SimpleNamespace(now=lambda zone: NOW))
    expires(monkeypatch, 300)
    return RECORDED


def expires(monkeypatch: pytest.MonkeyPatch, minutes: int) -> None:
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", (NOW + timedelta(minutes=minutes)).isoformat())


@pytest.fixture
def found(account: Recorded, tmp_path: Path) -> Found:
    """What one check finds on an account that answers otherwise: states with texts."""
    recorded = account.answers

    def found(
        check: str, params: str = "", who: str = WHO, **answers: Any
    ) -> list[tuple[str, str]]:
        account.answers = recorded | answers
        target = deployment("ledger", "dev", BOTH, params)
        flight, checks = (
            Flight(target, who, render(tmp_path, target)),
            verdict.CHECKS | verdict.CHANGE_SETS,
        )
        return [(state, says) for _, state, says in verdict.lines(flight, {check: checks[check]})]

    return found


QUEUE = f"https://sqs.{HOME}.amazonaws.com/{ACCOUNT}/ledger-dev-changes"
GROUPS = ["/aws/vendedlogs/apis/ledger-dev", "/aws/vendedlogs/apis/ledger-dev-x"]
SHAPE = {"Item": items.shape_item(Shape((HOME, OTHER), {"stock:": 4}))}


def quotas(region: str, asked: Any) -> Any:
    return quota(40_000 if region == OTHER else 80_000)


TO_MEND = [
    # check, PARAMS,            what AWS answers, what is said
    ("concurrency {}", "", {"GetAccountSettings": limits(10)}, ("reservedCanary=1: the account "
                                                               "may run 10.*or request")),
    ("concurrency {}", "reservedCanary=0", {"GetAccountSettings": limits(10)},
     'PARAMS="changesConcurrency=2 work'),
    ("quotas", "", {"GetServiceQuota": quotas},
     (f"40000 in {OTHER}, and it needs 80000: aws .*increase --region {OTHER} .*dynamodb "
     ".*L-AB614373 .*value 80000")),
    ("quotas", "tableWrites=..50000", {}, f"40000 in {HOME}, and it needs 50000"),
    ("quotas", "apiRate=50000", {}, (f"40000 in {HOME}, and it needs 50000: .*--service-code "
                                    "apigateway")),
    ("table", "", {"DescribeTable": {"Table": {"TableStatus": "ACTIVE"}}},
     "no stack ledger-dev-table in .* made"),
    ("table", "", {"DescribeStacks": stack("UPDATE_FAILED")}, ("UPDATE_FAILED, .* `aws "
                                                              "cloudformation rollback-stack`")),
    ("table", "", {"DescribeStacks": stack("ROLLBACK_FAILED")}, "find out why in its events"),
    ("table", "",
     {"DescribeStacks": stack("UPDATE_COMPLETE", Region1=HOME, Region2="ap-south-1")},
     "Name them all"),
    ("table", "",
     {"DescribeStacks": stack("CREATE_COMPLETE", Region1=HOME, Region2=OTHER, TableName="x")},
     "has the table x"),
    ("shape", "", {"GetItem": SHAPE}, "stock:.*Nothing was changed"),
    ("service {}", "", {"DescribeStacks": stack("ROLLBACK_COMPLETE")},
     "ROLLBACK_COMPLETE: find out why"),
    ("service {}", "", {"DescribeStacks": stack("REVIEW_IN_PROGRESS")},
     "execute the change set that waits"),
    ("service {}", "", {"DescribeStacks": stack("UPDATE_IN_PROGRESS")}, ": wait$"),
    ("service {}", "", {"ListQueues": {"QueueUrls": [QUEUE, f"{QUEUE}-x"]}},
     f"aws sqs delete-queue .*-url {QUEUE},"),
    ("service {}", "",
     {"DescribeLogGroups": {"logGroups": [{"logGroupName": each} for each in GROUPS]}},
     f"aws logs delete-log-group --region {HOME} --log-group-name {GROUPS[0]}$"),
    ("templates {}", "", {"ValidateTemplate": ("ValidationError", "Unresolved dependencies [X]")},
     "Unresolved"),
    ("change set {}", "", {"CreateChangeSet": ("ValidationError", "Invalid template")},
     "Invalid template"),
    ("change set {}", "",
     {"DescribeChangeSet": {"Status": "FAILED", "StatusReason": "it is there"}}, ": it is there"),
]  # fmt: skip


def test_an_obstacle_is_to_be_mended_and_its_line_says_how(found: Found) -> None:
    for check, params, answers, says in TO_MEND:
        lines = found(check, params, **answers)
        assert any(state == MEND and re.search(says, said) for state, said in lines), (says, lines)
        assert not any("-x" in said for _, said in lines), "it is another stage's"


ALREADY = stack("UPDATE_COMPLETE", Region1=HOME, Region2=OTHER, TableName="ledger-dev")
FINE = [
    (
        "concurrency {}",
        "reservedCanary=0 changesConcurrency=2 workConcurrency=2",
        {"GetAccountSettings": limits(10)},
    ),
    ("table", "", {"DescribeStacks": ALREADY}),
    ("table", "", {"DescribeStacks": stack("CREATE_IN_PROGRESS")}),
    ("shape", 'shards={"stock:":4}', {"GetItem": SHAPE}),
    ("service {}", "", {"DescribeStacks": ALREADY}),
    ("change set {}", "", {"DescribeStacks": ALREADY}),
    (
        "change set {}",
        "",
        {"DescribeChangeSet": {"Status": "FAILED", "StatusReason": "it didn't contain changes."}},
    ),
]


def test_what_is_deployed_already_or_fits_is_fine(found: Found) -> None:
    for check, params, answers in FINE:
        lines = found(check, params, **answers)
        assert lines
        assert {state for state, _ in lines} == {OK}, lines


RIGHTS = {  # the operation of which a check's right is missing
    "GetAccountSettings": ("concurrency {}", "lambda:GetAccountSettings"),
    "GetServiceQuota": ("quotas", "servicequotas:GetServiceQuota"),
    "DescribeStacks": ("table", "cloudformation:DescribeStacks"),
    "DescribeTable": ("table", "dynamodb:DescribeTable"),
    "ListQueues": ("service {}", "sqs:ListQueues"),
    "DescribeLogGroups": ("service {}", "logs:DescribeLogGroups"),
    "SimulatePrincipalPolicy": ("deployer {}", "iam:SimulatePrincipalPolicy"),
    "SimulateCustomPolicy": ("roles", "iam:SimulateCustomPolicy"),
    "ValidateTemplate": ("templates {}", "cloudformation:ValidateTemplate"),
    "CreateChangeSet": ("change set {}", "cloudformation:CreateChangeSet"),
}


def test_what_may_not_be_asked_is_unknown_and_the_right_is_named(
    found: Found, account: Recorded
) -> None:
    for operation, (check, right) in RIGHTS.items():
        assert {*found(check, **{operation: denied(right)})} == {
            (UNKNOWN, f"you may not look: {right} is missing")
        }
    assert len([each for each, _ in account.asked if each == "SimulateCustomPolicy"]) == 1
    ((state, said),) = found(
        "shape", GetItem=("AccessDeniedException", "not authorized: dynamodb:GetItem")
    )
    assert (state, "dynamodb:GetItem" in said) == (UNKNOWN, True)
    assert {
        state for state, _ in found("quotas", GetServiceQuota=("ServiceException", "later"))
    } == {UNKNOWN}
    never_changed = {
        "GetServiceQuota": ("NoSuchResourceException", ""),
        "GetAWSDefaultServiceQuota": quota(40_000),
    }
    assert {state for state, _ in found("quotas", **never_changed)} == {OK}


def test_a_session_that_ends_too_early_is_said(
    found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"account {ACCOUNT}, {WHO}"
    assert found("session") == [(OK, f"{said}, for 300 minutes")]
    expires(monkeypatch, 44)
    assert found("session") == [
        (MEND, f"{said}, for 44 minutes: log in again, for 45 minutes or more")
    ]
    monkeypatch.delenv("AWS_CREDENTIAL_EXPIRATION")
    assert found("session") == [(OK, f"{said}, whose credentials do not end")]
    assert found("session", who=f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/me")[0][0] == UNKNOWN


def test_a_region_that_is_not_enabled_is_to_be_mended(found: Found) -> None:
    def identity(region: str, asked: Any) -> Any:
        return (
            ("InvalidClientTokenId", "The security token is invalid")
            if region == OTHER
            else {"Account": ACCOUNT}
        )

    fine, (state, said) = found("Region {}", GetCallerIdentity=identity)
    assert (fine, state) == ((OK, "accepts the credentials"), MEND)
    assert f"aws account enable-region --region-name {OTHER}" in said


def test_a_role_that_iam_takes_otherwise_is_to_be_mended(found: Found, account: Recorded) -> None:
    def wrong(**otherwise: bool) -> dict[str, str]:
        vars(account.iam).update(
            {"substitutes": True, "all_values": True, "null": True} | otherwise
        )
        return {said.partition(":")[0]: said for state, said in found("roles") if state == MEND}

    assert wrong() == {}
    without_variables = wrong(substitutes=False)
    assert {*without_variables} == {"AddFromQueue", "Api"}
    denied = f"dynamodb:GetItem is denied and must be allowed on gate#{HOME}#x in {HOME}"
    assert denied in without_variables["AddFromQueue"]
    assert len(wrong(all_values=False)) == 6
    assert all("is allowed and must not be on table" in said for said in wrong(null=False).values())


def test_the_deployer_lacks_what_a_region_denies(found: Found, account: Recorded) -> None:
    account.iam.without = {OTHER: {"iam:PassRole", "dynamodb:CreateTableReplica"}}
    (fine, _), (state, said) = found("deployer {}")
    assert (fine, state) == (OK, MEND)
    assert (
        "IAM denies 2 of 170 actions: dynamodb:CreateTableReplica, iam:PassRole. Attach what"
        in said
    )
    account.iam.missing = ["aws:MultiFactorAuthPresent"]
    assert [state for state, _ in found("deployer {}")] == [OK, UNKNOWN]


PRINTED = """
service.zip: 5.00 MiB
session ok account 111122223333, arn:aws:sts::111122223333:assumed-role/deployer/me, for 300 minutes
Region eu-west-1 ok accepts the credentials
concurrency eu-west-1 ok 999 functions at once, and those of the queues take up to 60
quotas ok write units of a table: 40000 in eu-west-1
quotas ok requests a second of all APIs: 40000 in eu-west-1
table ok no stack ledger-dev-table and no table of that name
shape ok none yet
service eu-west-1 ok no stack, and nothing that has one of its names
deployer eu-west-1 ok IAM allows all 170 actions
roles ok AddFromQueue: 37 questions, as infra/rights.py has it
roles ok Api: 37 questions, as infra/rights.py has it
roles ok Ring: 37 questions, as infra/rights.py has it
roles ok Compact: 37 questions, as infra/rights.py has it
roles ok Sweep: 37 questions, as infra/rights.py has it
roles ok Canary: 37 questions, as infra/rights.py has it
templates eu-west-1 ok CloudFormation accepts them
16 ok, 0 mend, 0 unknown
"""


def run(*arguments: str) -> tuple[int, list[str]]:
    program = CliRunner(env={"COLUMNS": "200", "PARAMS": ""})
    ran = program.invoke(deploy.app, ["preflight", *arguments], catch_exceptions=False)
    return ran.exit_code, [" ".join(line.split()) for line in ran.output.splitlines()]


def test_a_run_prints_a_line_a_check_and_only_reads(account: Recorded) -> None:
    code, lines = run("--regions", HOME)
    assert lines == PRINTED.strip().splitlines()
    assert code == 0
    assert all(READS.match(operation) for operation, _ in account.asked)
    code, lines = run("--policy", "table")
    assert json.loads(" ".join(lines))["Statement"][0]["Resource"] == [
        f"arn:aws:dynamodb:*:{ACCOUNT}:table/ledger-dev"
    ]
    account.answers["GetCallerIdentity"] = ("InvalidClientTokenId", "The security token is invalid")
    account.asked.clear()
    with pytest.raises(DeploymentRefused, match=f"does not accept the credentials in {HOME}"):
        run()
    assert account.asked == [("GetCallerIdentity", HOME)]


def test_change_sets_are_made_on_demand_and_leave_nothing(
    account: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = set[tuple[str, str]]()

    def create(region: str, asked: Any) -> Any:
        made.add((region, asked["StackName"]))
        return {}

    def delete(region: str, asked: Any) -> Any:
        made.remove((region, asked["StackName"]))
        return {}

    def describe(region: str, asked: Any) -> Any:
        there = (region, asked["StackName"]) in made
        return stack("REVIEW_IN_PROGRESS") if there else ("ValidationError", "Stack does not exist")

    account.answers |= {
        "CreateChangeSet": create,
        "DescribeStacks": describe,
        "DeleteStack": delete,
    }
    account.answers["GetAccountSettings"] = limits(10)
    monkeypatch.setattr(verdict, "CHECKS", {"concurrency {}": verdict.CHECKS["concurrency {}"]})
    code, lines = run("--change-sets")
    assert (code, lines[-1], made) == (1, "3 ok, 2 mend, 0 unknown", set())
    writes = [operation for operation, _ in account.asked if not READS.match(operation)]
    # of the table, of each service
    assert writes == ["CreateChangeSet", "DeleteChangeSet", "DeleteStack"] * 3
