"""Deploys the service to an engine with the same command as to AWS, and tells where it is.

Rule 1: infra.deploy does the work, told only by AWS_ENDPOINT_URL that AWS is elsewhere.
Rule 2: Nothing of the service is imported here.
Rule 3: Times are short, so that a fold, a clean and a backstop happen within minutes. What this engine takes as a
number alone, not as its text, is in serverless.yml under this stage.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

ROOT = Path(__file__).parents[2]
NAME, STAGE = "ledger", "e2e"
TABLE = f"{NAME}-{STAGE}"
REGIONS = ("eu-west-1", "us-east-1")
SEATS, CEILING = "seats:", 30
TANK, FULL = "tank:", 25
THRESHOLDS = {
    TANK: [{"above": FULL, "name": region, "region": region} for region in REGIONS],
    SEATS: [{"above": CEILING - 1, "name": "sold-out"}],
}
PARAMS = {
    "limits": json.dumps({SEATS: {"ceiling": CEILING, "region": REGIONS[0]}}, separators=(",", ":")),
    "thresholds": json.dumps(THRESHOLDS, separators=(",", ":")),
    "outcomes": "true",
    "ringEverySeconds": "5",
    "keepMs": "61000",  # above read_time_max_ms
    "allowedLatenessMs": "5000",
    "foldMin": "2",
    "sweepHours": "0.003",  # 11 s: every run is a whole pass
}
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}


class NotDeployed(Exception):
    """The service could not be deployed to the engine; the message says why."""


@dataclass(frozen=True, slots=True)
class Service:
    """Where the service is in one Region."""

    region: str
    api: str
    queues: dict[
        str, str
    ]  # changes, changes-dlq, work, work-dlq, failed and, if there is one, outcomes, by these names


def environment(endpoint_url: str) -> dict[str, str]:
    """What makes every AWS client of a process talk to the engine, with credentials that mean nothing."""
    unset = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)
    return {**CREDENTIALS, **unset, "AWS_ENDPOINT_URL": endpoint_url, "NO_PROXY": "127.0.0.1,localhost"}


def run(
    command: str,
    endpoint_url: str,
    table_endpoint_url: str,
    regions: Sequence[str] = REGIONS,
    params: Mapping[str, str] = PARAMS,
) -> None:
    """`make deploy` or `make remove`. Raises NotDeployed."""
    said = {**params, "endpointUrl": table_endpoint_url}
    given = ["--stage", STAGE, "--regions", " ".join(regions), "--name", NAME]
    given += ["--params", " ".join(f"{name}={value}" for name, value in said.items())]
    done = subprocess.run(
        [sys.executable, "-m", "infra.deploy", command, *given],
        cwd=ROOT,
        env={**os.environ, **environment(endpoint_url)},
        check=False,
    )
    if done.returncode:
        raise NotDeployed(f"`infra.deploy {command}` failed with exit code {done.returncode}; its messages are above")


def service(region: str, endpoint_url: str) -> Service:
    """What a Region's stack says of itself."""
    stack = client("cloudformation", region, endpoint_url).describe_stacks(StackName=f"{NAME}-{STAGE}")["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    sqs = client("sqs", region, endpoint_url)
    names = ("changes", "changes-dlq", "work", "work-dlq", "failed")
    queues = {name: sqs.get_queue_url(QueueName=f"{NAME}-{STAGE}-{name}")["QueueUrl"] for name in names}
    if "OutcomesQueueUrl" in outputs:
        queues["outcomes"] = outputs["OutcomesQueueUrl"]
    api_id = outputs["HttpApiUrl"].split("//")[1].split(".")[0]
    # The engine serves an API under its own address.
    return Service(region, f"{endpoint_url}/_aws/execute-api/{api_id}/$default", queues)


def client(name: Any, region: str, endpoint_url: str) -> Any:
    """A boto3 client of the engine, as a user's own would be."""
    return boto3.client(
        name,
        region_name=region,
        endpoint_url=endpoint_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"mode": "standard", "total_max_attempts": 5}, read_timeout=60, proxies={}),
    )
