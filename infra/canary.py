"""Between two Regions of a deployment: wait until the service has read and folded what the first
one's canary added.

Rule 1: A canary's answer is that of service/canary. Each call adds, and says up to which time its
lane is folded. So the deployer calls it again until that is the time of what the first call added.
Rule 2: The deployer calls a canary that fails again until the time is over, because a new role may
not be known everywhere yet. It never calls again after a wrong value.
Rule 3: The deployment stops, and says what is deployed where and what to do.
"""

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict, ValidationError

from infra import aws

POLL_S = 10
SPARE_S = 120
"""Beyond two rings: a cold start, the time until Lambda finds a stream's shard, the time until a
role is known.
"""


class CheckFailed(Exception):
    """A Region's canary did not do what it must; the message says what, and in which Region."""


class CanaryAnswer(BaseModel):
    model_config = ConfigDict(strict=True)

    read: bool
    added: int
    newest_ms: int
    folded_ms: int | None = None


def bound_s(ring_delay_s: int) -> int:
    """The most seconds to wait for a canary.

    ring_delay_s: from a change that rings to the look at its lane.
    """
    return 2 * ring_delay_s + SPARE_S


def wait_for(name: str, region: str, within_s: int) -> float:
    """Call the function `name` until what it added is folded.

    Returns the seconds that took. Raises CheckFailed.
    """
    newest_ms: int | None = None
    problem = ""
    for passed_s in aws.polls(within_s, POLL_S):
        try:
            answer = _ask(name, region)
        except CheckFailed as failure:
            problem = str(failure)
            continue
        newest_ms = newest_ms or answer.newest_ms
        if not answer.read:
            why = f"added {answer.added} changes and read another difference"
            raise CheckFailed(f"the canary of {region} {why} (value-wrong)")
        if answer.folded_ms is not None and answer.folded_ms >= newest_ms:
            return passed_s
        problem = f"the canary of {region} read what it added, and that is not folded (canary-late)"
    raise CheckFailed(f"after {within_s} s: {problem}")


def _ask(name: str, region: str) -> CanaryAnswer:
    try:
        answered = aws.client("lambda", region).invoke(FunctionName=name, Payload=b"{}")
        text = answered["Payload"].read().decode()
    except (ClientError, BotoCoreError) as error:
        raise CheckFailed(f"AWS does not call the canary of {region}: {error}") from error
    if "FunctionError" in answered:
        raise CheckFailed(f"the canary of {region} failed (functions-failing): {text[:500]}")
    try:
        return CanaryAnswer.model_validate_json(text)
    except ValidationError as error:
        raise CheckFailed(
            f"the canary of {region} answered {text[:200]}, which is no canary's answer"
        ) from error
