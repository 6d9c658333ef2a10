"""What is asked of an account before a deployment, and what of the answers stops it."""

import re
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra import account
from infra.deployment import Deployment, deployment
from infra.table_stack import DeploymentRefused
from tests.infra.template import ROOT

HOME, OTHER = "eu-west-1", "us-east-1"
ROLE = "arn:aws:iam::111122223333:role/teams/Deployer"


class Aws:
    """STS, Lambda's limits and IAM's simulator, which allows what is not in `denied`. Nobody may ask for `silent`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.arn = "arn:aws:sts::111122223333:assumed-role/Deployer/someone"
        self.limits = {"ConcurrentExecutions": 1_000, "UnreservedConcurrentExecutions": 1_000}
        self.denied: set[str] = set()
        self.hidden: set[str] = set()  # what hangs on a condition
        self.silent: set[str] = set()
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.said: list[str] = []
        self.stacks: dict[str, Any] = {}
        monkeypatch.setattr(Deployment, "stack", lambda target, region: self.stacks.get(region))

    def client(self, service: str, region: str) -> Any:
        return self

    def _may(self, operation: str) -> None:
        if operation in self.silent:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": f"not {operation}"}}, operation)

    def get_account_settings(self) -> Any:
        self._may("GetAccountSettings")
        return {"AccountLimit": self.limits}

    def get_caller_identity(self) -> Any:
        return {"Arn": self.arn}

    def get_role(self, RoleName: str) -> Any:
        assert RoleName == "Deployer"
        self._may("GetRole")
        return {"Role": {"Arn": ROLE}}

    def simulate_principal_policy(
        self, *, PolicySourceArn: str, ActionNames: list[str], ResourceArns: list[str], **_: Any
    ) -> Any:
        assert PolicySourceArn == ROLE
        self._may("SimulatePrincipalPolicy")
        (arn,) = ResourceArns
        self.asked.append((arn, tuple(ActionNames)))
        results = [
            {
                "EvalActionName": name,
                "EvalDecision": "implicitDeny" if name in self.denied | self.hidden else "allowed",
                "MissingContextValues": ["aws:MultiFactorAuthPresent"] if name in self.hidden else [],
            }
            for name in ActionNames
        ]
        return {"EvaluationResults": results}

    def check(self, params: str = "") -> list[str]:
        target = deployment("ledger", "dev", f"{HOME} {OTHER}", params)
        account.check(target, self.client, self.said.append)
        return self.said


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Aws:
    return Aws(monkeypatch)


def test_an_account_that_has_all_and_a_deployer_who_may_all_are_told_nothing(aws: Aws) -> None:
    assert aws.check() == []
    assert len(aws.asked) == len(set(aws.asked)) > len(account.RIGHTS)  # of each Region, and once of none
    tables = [arn for arn, _ in aws.asked if arn.endswith(":table/ledger-dev")]
    assert tables == [f"arn:aws:dynamodb:{region}:111122223333:table/ledger-dev" for region in (HOME, OTHER)]


@pytest.mark.parametrize("most", [10, 50, 100])
def test_a_new_account_that_can_reserve_nothing_is_refused_with_what_to_say(aws: Aws, most: int) -> None:
    aws.limits = dict.fromkeys(aws.limits, most)
    with pytest.raises(DeploymentRefused, match=f"reservedCanary=1: .* {most} .*Say reservedCanary=0.*Nothing was"):
        aws.check()
    assert all(f"may run {most} functions" in each for each in aws.check("reservedCanary=0"))
    assert len(aws.said) == (2 if most <= 60 else 0)  # changesConcurrency and workConcurrency are 60


def test_what_the_service_has_reserved_already_counts_as_its_own(aws: Aws) -> None:
    aws.limits["UnreservedConcurrentExecutions"] = 100
    with pytest.raises(DeploymentRefused, match="reservedCanary=1"):
        aws.check()
    there = {"Parameters": [{"ParameterKey": "ReservedCanary", "ParameterValue": "1"}]}
    aws.stacks = dict.fromkeys((HOME, OTHER), there)
    assert aws.check() == []
    with pytest.raises(DeploymentRefused, match="reservedRing=2 reservedCanary=1"):
        aws.check("reservedRing=2")


def test_what_the_deployer_may_not_is_named_with_its_resource(aws: Aws) -> None:
    aws.denied = {"dynamodb:CreateTableReplica", "dynamodb:Scan", "iam:CreateServiceLinkedRole"}
    with pytest.raises(DeploymentRefused) as refused:
        aws.check()
    for region in (HOME, OTHER):
        table = f"arn:aws:dynamodb:{region}:111122223333:table/ledger-dev"
        assert f"dynamodb:CreateTableReplica dynamodb:Scan on {table}" in str(refused.value)
    for said in (ROLE, "iam:CreateServiceLinkedRole", "Nothing was changed", "--no-ask"):
        assert said in str(refused.value)


@pytest.mark.parametrize("silent", ["GetRole", "SimulatePrincipalPolicy", "GetAccountSettings"])
def test_what_cannot_be_asked_is_unknown_and_the_deployment_goes_on(aws: Aws, silent: str) -> None:
    aws.silent = {silent}
    assert aws.check() != []
    assert all("unknown" in each and f"not {silent}" in each for each in aws.said)


def test_what_hangs_on_a_condition_is_unknown(aws: Aws) -> None:
    aws.hidden = {"iam:PassRole"}
    (said,) = aws.check()
    assert said.startswith(f"unknown whether {ROLE} may do 1 things")


@pytest.mark.parametrize(
    ("arn", "asked"), [("arn:aws:iam::111122223333:root", False), ("arn:aws:iam::111122223333:user/me", True)]
)
def test_the_account_itself_may_all_and_a_user_is_asked_by_its_own_name(
    aws: Aws, arn: str, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "ROLE", arn)
    aws.arn = arn
    assert aws.check() == []
    assert bool(aws.asked) is asked


def test_the_page_on_deploying_lists_what_is_asked() -> None:
    text = (ROOT / "docs" / "deploying.md").read_text()
    section = text.partition("## The deployer\n")[2].partition("\n## ")[0]
    listed: dict[str, set[str]] = {}
    for service, actions in re.findall(r"^\| .*? \| `([a-z0-9]+)`: ([A-Za-z, ]+) \|$", section, re.MULTILINE):
        listed.setdefault(service, set()).update(actions.split(", "))
    asked: dict[str, set[str]] = {}
    for actions in account.RIGHTS.values():
        service, _, names = actions.partition(": ")
        asked.setdefault(service, set()).update(names.split())
    assert listed == asked
