"""What the account has and the deployer may: a deployment asks for both before it makes anything.

Rule 1: What is known to be missing is refused by name: CloudFormation says it ten minutes later, with a table made.
Rule 2: What cannot be asked, because a right to ask is missing, is said to be unknown, and the deployment goes on.
Rule 3: Rights are asked of IAM's simulator, a resource at a time. What hangs on a condition that it does not know
counts as unknown. It does not see everything (a policy of a resource, a session's own), so --no-ask leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.deployment import Deployment
from infra.refusals import KEPT
from infra.table_stack import DeploymentRefused

FLOOR = 100
"""Concurrency that AWS leaves unreserved in every account; one that has no more in all can reserve none."""

RIGHTS = {
    "arn:{partition}:dynamodb:{region}:{account}:table/{table}": (
        "dynamodb: CreateTable CreateTableReplica DescribeContinuousBackups DescribeTable UpdateContinuousBackups "
        "UpdateTable TagResource ListTagsOfResource Query Scan GetItem PutItem UpdateItem DeleteItem BatchWriteItem"
    ),
    "arn:{partition}:iam::{account}:role/aws-service-role/replication.dynamodb.amazonaws.com/*": (
        "iam: CreateServiceLinkedRole"
    ),
    "arn:{partition}:cloudformation:{region}:{account}:stack/{table}-table/*": (
        "cloudformation: CreateStack DeleteStack DescribeStackEvents DescribeStacks UpdateStack "
        "UpdateTerminationProtection"
    ),
    "arn:{partition}:cloudformation:{region}:{account}:stack/{service}/*": (
        "cloudformation: CreateChangeSet CreateStack DeleteStack DescribeChangeSet DescribeStackEvents "
        "DescribeStackResource DescribeStacks ExecuteChangeSet ListStackResources UpdateStack"
    ),
    "arn:{partition}:s3:::{service}-serverlessdeploymentbucket-x": (
        "s3: CreateBucket GetBucketLocation ListBucket PutBucketPolicy PutBucketPublicAccessBlock "
        "PutEncryptionConfiguration"
    ),
    "arn:{partition}:s3:::{service}-serverlessdeploymentbucket-x/serverless/x": "s3: DeleteObject GetObject PutObject",
    "arn:{partition}:iam::{account}:role/{service}-x": (
        "iam: AttachRolePolicy CreateRole DeleteRole DeleteRolePolicy DetachRolePolicy GetRole PassRole PutRolePolicy"
    ),
    "arn:{partition}:iam::{account}:policy/{service}-x": "iam: CreatePolicy CreatePolicyVersion DeletePolicy GetPolicy",
    "arn:{partition}:lambda:{region}:{account}:function:{service}-api": (
        "lambda: AddPermission CreateFunction DeleteFunction GetFunction InvokeFunction PutFunctionConcurrency "
        "PutFunctionEventInvokeConfig PutFunctionRecursionConfig UpdateFunctionCode UpdateFunctionConfiguration"
    ),
    "arn:{partition}:lambda:{region}:{account}:event-source-mapping:x": (
        "lambda: CreateEventSourceMapping DeleteEventSourceMapping GetEventSourceMapping UpdateEventSourceMapping"
    ),
    "arn:{partition}:sqs:{region}:{account}:{service}-changes": (
        "sqs: CreateQueue DeleteQueue GetQueueAttributes SetQueueAttributes"
    ),
    "arn:{partition}:sns:{region}:{account}:{service}-alarms": (
        "sns: CreateTopic DeleteTopic GetTopicAttributes SetTopicAttributes Subscribe"
    ),
    "arn:{partition}:events:{region}:{account}:rule/{service}-sweep": (
        "events: DeleteRule DescribeRule PutRule PutTargets RemoveTargets"
    ),
    "arn:{partition}:logs:{region}:{account}:log-group:/aws/lambda/{service}-api": (
        "logs: CreateLogGroup DeleteLogGroup PutRetentionPolicy"
    ),
    "arn:{partition}:apigateway:{region}::/apis": "apigateway: DELETE GET PATCH POST",
    "arn:{partition}:cloudwatch:{region}:{account}:alarm:{service}-failed": "cloudwatch: DeleteAlarms PutMetricAlarm",
    "arn:{partition}:cloudwatch::{account}:dashboard/{service}-{region}": "cloudwatch: DeleteDashboards PutDashboard",
}
"""What a deployment asks for, by an example of the resource. docs/deploying.md has the same list."""


def check(target: Deployment, client: Callable[[str, str], Any], say: Callable[[str], None]) -> None:
    """Raises DeploymentRefused for what the account lacks or the deployer may not."""
    for region in target.regions:
        _check_concurrency(target, region, client, say)
    home = target.regions[0]
    try:
        principal = _principal(client, home)
        denied = [] if principal is None else list(_denied(target, principal, client("iam", home), say))
    except (BotoCoreError, ClientError) as error:
        say(f"unknown whether these credentials may do all of docs/deploying.md, The deployer: {error}")
        return
    if denied:
        raise DeploymentRefused(
            f"by IAM's simulator {principal} may not: {'; '.join(denied)}. Nothing was changed (docs/deploying.md, The "
            "deployer). Where the simulator is wrong, --no-ask deploys without asking it"
        )


def _check_concurrency(target: Deployment, region: str, client: Any, say: Callable[[str], None]) -> None:
    try:
        limit = client("lambda", region).get_account_settings()["AccountLimit"]
        stack = target.stack(region) or {}
    except (BotoCoreError, ClientError) as error:
        say(f"{region}: unknown how much concurrency the account has: {error}")
        return
    most, free = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
    said = target.said(region)
    wanted = {f"reserved{name}": said.number(f"reserved{name}") for name in KEPT}
    there = {each["ParameterKey"]: each["ParameterValue"] for each in stack.get("Parameters", [])}
    more = sum(wanted.values()) - sum(int(there.get(f"Reserved{name}") or 0) for name in KEPT)
    if more > 0 and free - more < min(FLOOR, most):
        kept = " ".join(f"{name}={number}" for name, number in wanted.items() if number)
        raise DeploymentRefused(
            f"{kept}: the account may run {most} functions at once in {region}, and AWS lets nobody reserve the last "
            f"{min(FLOOR, most)}; {free} are unreserved now. Say reservedCanary=0 and keep none, or ask for more "
            "(Service Quotas, AWS Lambda, Concurrent executions). Nothing was changed"
        )
    queues = {name: said.number(name) for name in ("changesConcurrency", "workConcurrency")}
    if sum(queues.values()) >= most:
        concurrency = " and ".join(f"{name}={number}" for name, number in queues.items())
        say(f"{region}: {concurrency}, and the account may run {most} functions at once: the queues can starve the API")


def _principal(client: Any, region: str) -> str | None:
    """Whose policies are asked, as IAM names it; None for the account itself, which may do everything."""
    arn: str = client("sts", region).get_caller_identity()["Arn"]
    if arn.endswith(":root"):
        return None
    if ":assumed-role/" in arn:
        name = arn.split("/")[1]
        return str(client("iam", region).get_role(RoleName=name)["Role"]["Arn"])
    return arn


def _denied(target: Deployment, principal: str, iam: Any, say: Callable[[str], None]) -> Iterator[str]:
    _, partition, _, _, account, _ = principal.split(":", 5)
    unknown = 0
    simulated = set()
    for region in target.regions:
        names = {"partition": partition, "account": account, "region": region}
        for form, actions in RIGHTS.items():
            arn = form.format(table=target.table, service=target.service, **names)
            if arn in simulated:
                continue  # of no Region
            simulated.add(arn)
            service, *action_names = actions.split()
            answer = iam.simulate_principal_policy(
                PolicySourceArn=principal,
                ActionNames=[service + name for name in action_names],
                ResourceArns=[arn],
                ContextEntries=[
                    {"ContextKeyName": "aws:RequestedRegion", "ContextKeyType": "string", "ContextKeyValues": [region]}
                ],
                MaxItems=1_000,
            )
            refused = [each for each in answer["EvaluationResults"] if each["EvalDecision"] != "allowed"]
            unknown += sum(bool(each.get("MissingContextValues")) for each in refused)
            if wrong := [each["EvalActionName"] for each in refused if not each.get("MissingContextValues")]:
                yield f"{' '.join(wrong)} on {arn}"
    if unknown:
        say(f"unknown whether {principal} may do {unknown} things: they hang on conditions that nobody can know before")
