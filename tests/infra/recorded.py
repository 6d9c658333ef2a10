"""An AWS account of recorded answers: real clients of boto3, of which no request leaves this
process.

Rule 1: A request and an answer have the form of botocore's models; an answer of another form fails
the test.
Rule 2: IAM's simulation decides by the policies that it is given, as AWS's pages say.
"""

import fnmatch
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.validate import validate_parameters

ACCOUNT = "111122223333"
Answer = Any
"""A dictionary; an error's code and message; or what makes one of them, of a Region and a
request.
"""


def denied(right: str) -> tuple[str, str]:
    return (
        "AccessDenied",
        (
            f"User: arn:aws:iam::{ACCOUNT}:user/me is not authorized to perform: {right} on "
            "resource: *"
        ),
    )


class Recorded:
    """answers: by operation. asked: the operations, with the Region of each."""

    def __init__(self) -> None:
        self._session = boto3.session.Session("id", "secret")
        self._clients: dict[tuple[str, str], Any] = {}
        self.begin()

    def begin(self) -> None:
        """An account that has nothing yet, of whoever may do all; clients stay, because they
        take long to make.
        """
        self.asked: list[tuple[str, str]] = []
        self.iam = Iam()
        self.answers: dict[str, Answer] = {
            "GetCallerIdentity": {
                "Account": ACCOUNT,
                "Arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/me",
            },
            "GetRole": {"Role": role(f"arn:aws:iam::{ACCOUNT}:role/teams/deployer")},
            "GetServiceQuota": {"Quota": {"Value": 40_000.0}},
            "DescribeStacks": lambda region, asked: (
                "ValidationError",
                f"Stack {asked['StackName']} does not exist",
            ),
            "DescribeTable": ("ResourceNotFoundException", "Requested resource not found"),
            "GetItem": ("ResourceNotFoundException", "Requested resource not found"),
            "GetAccountSettings": limits(1_000),
            "ListQueues": {},
            "DescribeLogGroups": {"logGroups": []},
            "ValidateTemplate": {},
            "SimulatePrincipalPolicy": lambda region, asked: self.iam.simulated(asked),
            "SimulateCustomPolicy": lambda region, asked: self.iam.simulated(asked),
            "CreateChangeSet": {},
            "DescribeChangeSet": {"Status": "CREATE_COMPLETE", "Changes": [{"Type": "Resource"}]},
            "DeleteChangeSet": {},
            "DeleteStack": {},
        }

    def client(self, service: Any, region: str) -> Any:
        if (service, region) not in self._clients:
            made = self._session.client(service, region_name=region)
            made.meta.events.register_first("before-parameter-build.*.*", self._keep)
            made.meta.events.register_first("before-call.*.*", partial(self._answer, region))
            self._clients[service, region] = made
        return self._clients[service, region]

    def _keep(self, params: Any, context: Any, **more: Any) -> None:
        context["asked"] = params

    def _answer(self, region: str, model: Any, context: Any, **more: Any) -> Any:
        self.asked.append((model.name, region))
        answer = self.answers[model.name]
        if callable(answer):
            answer = answer(region, context["asked"])
        failed = isinstance(answer, tuple)
        if not failed and model.output_shape is not None:
            validate_parameters(answer, model.output_shape)
        parsed = (
            {"Error": dict(zip(("Code", "Message"), answer, strict=True))}
            if failed
            else dict(answer)
        )
        return AWSResponse("", 400 if failed else 200, HTTPHeaders(), None), parsed | {
            "ResponseMetadata": {}
        }


def role(arn: str) -> dict[str, Any]:
    return {"Path": "/", "RoleName": "deployer", "RoleId": "A" * 16, "Arn": arn, "CreateDate": 0}


def limits(most: int) -> Answer:
    return {"AccountLimit": {"ConcurrentExecutions": most, "UnreservedConcurrentExecutions": most}}


def quota(value: float) -> Answer:
    return {"Quota": {"Value": value}}


def stack(state: str, **parameters: str) -> Answer:
    given = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
    return {
        "Stacks": [{"StackName": "x", "CreationTime": 0, "StackStatus": state, "Parameters": given}]
    }


class Iam:
    """without: what the caller may not do, by Region. missing: what it would need. substitutes,
    all_values, null: what of AWS's pages on conditions is so."""

    def __init__(self) -> None:
        self.without: dict[str, set[str]] = {}
        self.missing: list[str] = []
        self.substitutes = self.all_values = self.null = True

    def simulated(self, asked: Mapping[str, Any]) -> Answer:
        context = {
            each["ContextKeyName"]: each["ContextKeyValues"] for each in asked["ContextEntries"]
        }
        (arn,) = asked["ResourceArns"]
        results = []
        for action in asked["ActionNames"]:
            if "PolicyInputList" in asked:
                statements = (
                    each
                    for text in asked["PolicyInputList"]
                    for each in json.loads(text)["Statement"]
                )
                allowed = any(self._allows(each, action, arn, context) for each in statements)
            else:
                allowed = action not in self.without.get(context["aws:RequestedRegion"][0], ())
            decision = {
                "EvalActionName": action,
                "EvalDecision": "allowed" if allowed else "implicitDeny",
            }
            results.append(decision | {"MissingContextValues": [] if allowed else self.missing})
        return {"EvaluationResults": results, "IsTruncated": False}

    def _allows(
        self, statement: Any, action: str, arn: str, context: Mapping[str, list[str]]
    ) -> bool:
        resources = (
            statement["Resource"]
            if isinstance(statement["Resource"], list)
            else [statement["Resource"]]
        )
        return (
            action in statement["Action"]
            and any(fnmatch.fnmatchcase(arn, each) for each in resources)
            and all(
                self._holds(test, context.get(key, []), values, context["aws:RequestedRegion"][0])
                for test, keys in statement.get("Condition", {}).items()
                for key, values in keys.items()
            )
        )

    def _holds(self, test: str, has: list[str], values: Any, region: str) -> bool:
        match test:
            case "StringEquals":
                return has[0] in values
            case "Null":
                return (not has) is (values == "true") or not self.null
            case "ForAllValues:StringLike":
                patterns = [
                    each.replace("${aws:RequestedRegion}", region) if self.substitutes else each
                    for each in values
                ]
                fit = [
                    any(fnmatch.fnmatchcase(one, pattern) for pattern in patterns) for one in has
                ]
                return all(fit) if self.all_values else any(fit)
        raise AssertionError(test)
