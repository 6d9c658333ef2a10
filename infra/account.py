"""What the account must have before a deployment makes anything: each Region, and concurrency for the canary.

Rule 1: What is known to be missing is refused by name: CloudFormation says it ten minutes later, with a table made.
Rule 2: What cannot be asked, because a right to ask is missing, is said to be unknown, and the deployment goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.deployment import Deployment
from infra.table_stack import DeploymentRefused

FLOOR = 100
"""Concurrency that AWS leaves unreserved in every account; one that has no more in all can reserve none."""


def account_of(regions: tuple[str, ...], client: Callable[[str, str], Any]) -> str:
    """The account of the credentials, after trying them in every Region: one that is not enabled refuses them."""
    found = ""
    for region in regions:
        try:
            found = client("sts", region).get_caller_identity()["Account"]
        except (BotoCoreError, ClientError) as error:
            raise DeploymentRefused(
                f"AWS does not accept the credentials in {region}: {error}. Give some (AWS_PROFILE, or "
                "AWS_ACCESS_KEY_ID and the rest), and enable the Region for the account"
            ) from error
    return found


def check_concurrency(target: Deployment, client: Callable[[str, str], Any], say: Callable[[str], None]) -> None:
    """Raises DeploymentRefused where the account cannot reserve what the canary keeps, beyond what it keeps already."""
    for region in target.regions:
        try:
            limit = client("lambda", region).get_account_settings()["AccountLimit"]
            kept = int(target.deployed(region).get("ReservedCanary", 0))
        except (BotoCoreError, ClientError) as error:
            say(f"{region}: unknown how much concurrency the account has: {error}")
            continue
        most, free = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
        more = target.parameters(region).number("reservedCanary") - kept
        if more > 0 and free - more < min(FLOOR, most):
            raise DeploymentRefused(
                f"reservedCanary={kept + more}: the account may run {most} functions at once in {region}, and AWS lets "
                f"nobody reserve the last {min(FLOOR, most)}; {free} are unreserved now. Say reservedCanary=0, or ask "
                "for more (Service Quotas, AWS Lambda, Concurrent executions). Nothing was changed"
            )
