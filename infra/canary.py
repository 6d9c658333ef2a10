"""Between two Regions of a deployment: the canary of the one that was deployed, until what it added is read and folded.

Rule 1: A canary's answer is service/canary's. It adds; and it tells up to which time its lane is folded. So it is asked
again until that is the time of what it added first.
Rule 2: What fails is asked again until the time is over, because a role that is new may not be known everywhere yet. A
wrong value is never asked again.
Rule 3: The deployment stops, and says what is deployed where and what to do.
"""

from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict, ValidationError

from infra import aws

POLL_S = 10
SPARE_S = 120
"""Beyond two rings: a cold start, a stream's shard that is found, a role that becomes known."""


class CheckFailed(Exception):
    """What a Region's canary did not do; the message says it, and in which Region."""


class Answer(BaseModel):
    model_config = ConfigDict(strict=True)

    read: bool
    added: int
    newest_ms: int
    folded_ms: int | None = None


def bound_s(ring_delay_s: int) -> int:
    """How long a canary is asked; `ring_delay_s` is from a change that rings to the look at its lane."""
    return 2 * ring_delay_s + SPARE_S


def wait_for(name: str, region: str, within_s: int) -> float:
    """Ask the function `name` until what it added is folded: how many seconds it took. Raises CheckFailed."""
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
        problem = f"what the canary of {region} added was read, and is not folded (canary-late)"
    raise CheckFailed(f"after {within_s} s: {problem}")


def _ask(name: str, region: str) -> Answer:
    try:
        answered = aws.client("lambda", region).invoke(FunctionName=name, Payload=b"{}")
        text = answered["Payload"].read().decode()
    except (ClientError, BotoCoreError) as error:
        raise CheckFailed(f"the canary of {region} cannot be asked: {error}") from error
    if "FunctionError" in answered:
        raise CheckFailed(f"the canary of {region} failed (functions-failing): {text[:500]}")
    try:
        return Answer.model_validate_json(text)
    except ValidationError as error:
        raise CheckFailed(f"the canary of {region} answered {text[:200]}, which is no canary's answer") from error
