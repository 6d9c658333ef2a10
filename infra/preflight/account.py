"""Checks of the account: whose it is, whether it has the Regions, and whether its concurrency and
quotas suffice.

Rule 1: A Region is enabled if it accepts the credentials: that takes no right, and shows a name
that is no Region, too.
Rule 2: CloudFormation works with the caller's session, so a session that ends early leaves a
deployment half done. A whole deployment takes half an hour; a new replica of a large table takes
hours, which no check foresees.
"""

from datetime import UTC, datetime

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from infra import aws
from infra.aws import DeploymentRefused
from infra.deployment import Deployment
from infra.preflight.flight import MEND, OK, UNKNOWN, Findings, Flight

SESSION_MIN = 45
WRITES = ("write units of a table", "dynamodb", "L-AB614373")
READS = ("read units of a table", "dynamodb", "L-CF0CBE56")
REQUESTS = ("requests a second of all APIs", "apigateway", "L-8A5B8E43")


def session(flight: Flight) -> Findings:
    who = f"account {flight.account}, {flight.principal}"
    # where botocore knows it
    ends = getattr(boto3.session.Session().get_credentials(), "_expiry_time", None)
    if ends is not None:
        left_min = int((ends - datetime.now(UTC)).total_seconds() // 60)
        again = (
            f": log in again, for {SESSION_MIN} minutes or more" if left_min < SESSION_MIN else ""
        )
        yield MEND if again else OK, f"{who}, for {left_min} minutes{again}"
    elif ":sts:" in flight.principal:
        yield (
            UNKNOWN,
            f"{who}: its credentials do not say when they end (AWS_CREDENTIAL_EXPIRATION)",
        )
    else:
        yield OK, f"{who}, whose credentials do not end"


def enabled(flight: Flight, region: str) -> Findings:
    flight.target.identity(region)
    yield OK, "accepts the credentials"


def concurrency(flight: Flight, region: str) -> Findings:
    free, given = flight.target.concurrency(region), flight.target.parameters(region)
    queues = int(given["changesConcurrency"]) + int(given["workConcurrency"])
    said, less = (
        f"{free} functions at once, and those of the queues take up to {queues}",
        max(2, free // 4),
    )
    if queues < free:
        yield OK, said
    else:
        mend = f'PARAMS="changesConcurrency={less} workConcurrency={less}"'
        yield (
            MEND,
            f"{said}, so the API would wait: {mend}, or request more (Service Quotas, AWS Lambda)",
        )


def quotas(flight: Flight) -> Findings:
    """Of capacity and requests.

    AWS makes no replica in a Region whose writes have another quota.
    """
    regions, capacity = flight.target.regions, flight.target.table_stack.capacity.writes
    writes = {region: _quota(region, *WRITES[1:]) for region in regions}
    for region in regions:
        yield _judged(
            region, writes[region], max(*writes.values(), capacity.most if capacity else 0), *WRITES
        )
        yield from lacking(flight.target, region, ("reads",))
        rate = int(flight.target.parameters(region)["apiRate"])
        yield _judged(region, _quota(region, *REQUESTS[1:]), rate, *REQUESTS)


def lacking(target: Deployment, region: str, of: tuple[str, ...] = ("writes", "reads")) -> Findings:
    """Of the parameters tableWrites and tableReads: whether a Region's quotas of a table allow
    their most.
    """
    for name, quota in (("writes", WRITES), ("reads", READS)):
        units = getattr(target.table_stack.capacity, name) if name in of else None
        if units is not None:
            yield _judged(region, _quota(region, *quota[1:]), units.most, *quota)


def _judged(
    region: str, has: float, needs: float, what: str, service: str, code: str
) -> tuple[str, str]:
    said = f"{what}: {has:.0f} in {region}"
    if has >= needs:
        return OK, said
    which = (
        f"--region {region} --service-code {service} --quota-code {code} --desired-value "
        f"{needs:.0f}"
    )
    return (
        MEND,
        (
            f"{said}, and it needs {needs:.0f}: aws service-quotas request-service-quota-increase "
            f"{which}"
        ),
    )


def _quota(region: str, service: str, code: str) -> float:
    client = aws.client("service-quotas", region)
    try:
        answer = client.get_service_quota(ServiceCode=service, QuotaCode=code)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchResourceException":
            raise
        # nobody has changed it
        answer = client.get_aws_default_service_quota(ServiceCode=service, QuotaCode=code)
    return float(answer["Quota"]["Value"])


def refuse_too_low_quotas(target: Deployment) -> None:
    """Raises DeploymentRefused where a table may not have what tableWrites or tableReads ask
    for.
    """
    for region in target.regions:
        try:
            wrong = [text for state, text in lacking(target, region) if state == MEND]
        except (BotoCoreError, ClientError) as error:
            aws.say(f"{region}: the quotas of a table are unknown: {error}")
            continue
        if wrong:
            raise DeploymentRefused(f"{'; '.join(wrong)}. Nothing was changed")
