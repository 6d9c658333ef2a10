"""The edge of the deployer: AWS clients and stacks, printing, time; and how a command refuses."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

CONFIG = Config(
    connect_timeout=5, read_timeout=60, retries={"mode": "adaptive", "total_max_attempts": 5}
)
"""Adaptive, because IAM's simulation takes few requests a second, and `make preflight` has
hundreds.
"""


class DeploymentRefused(Exception):
    """Something is not as it must be. The message says what, what was changed, and what to do."""


class Stack(NamedTuple):
    """A stack, as CloudFormation describes it. One that is not there has no status."""

    status: str
    protected: bool
    parameters: dict[str, str]
    outputs: dict[str, str]

    @property
    def busy(self) -> bool:
        """Whether CloudFormation is at work; a review waits for a person."""
        return self.status.endswith("_IN_PROGRESS") and self.status != "REVIEW_IN_PROGRESS"


ABSENT = Stack("", False, {}, {})

WHOLE = tuple(
    f"{done}_COMPLETE"
    for done in ("CREATE", "UPDATE", "UPDATE_ROLLBACK", "IMPORT", "IMPORT_ROLLBACK")
)
"""The states of a stack that can be updated."""

BY_A_PERSON = {
    "REVIEW_IN_PROGRESS": (
        "execute the change set that waits, such as an import, or `aws cloudformation delete-stack`"
    ),
    "UPDATE_FAILED": "run `aws cloudformation rollback-stack`",
    "UPDATE_ROLLBACK_FAILED": (
        "mend what its events name, then run `aws cloudformation continue-update-rollback`"
    ),
}
OR_ELSE = (
    "find out why in its events, turn off its termination protection and delete it, which "
    "keeps a table"
)
"""What a person does with a stack that CloudFormation cannot update in its state."""


def client(service: Any, region: str) -> Any:
    """A boto3 client; AWS_ENDPOINT_URL sends it to another endpoint."""
    return boto3.session.Session().client(service, region_name=region, config=CONFIG)


def stack(region: str, name: str) -> Stack:
    try:
        found = client("cloudformation", region).describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            return ABSENT
        raise
    return Stack(
        found["StackStatus"],
        found.get("EnableTerminationProtection", False),
        {each["ParameterKey"]: each["ParameterValue"] for each in found.get("Parameters", [])},
        {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])},
    )


def say(text: str) -> None:
    print(text, flush=True)


def polls(wait_s: float, poll_s: float) -> Iterator[float]:
    """The seconds since the first one, every `poll_s` seconds, until `wait_s` are over."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) <= wait_s:
        yield passed
        time.sleep(poll_s)
