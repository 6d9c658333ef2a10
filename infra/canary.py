"""Between two Regions of a deployment: the canary of the one that was deployed, until what it added is read and folded.

Rule 1: A canary's answer is service/canary's. It adds; and it tells up to which time its lane is folded. So it is asked
again until that is the time of what it added first.
Rule 2: What fails is asked again until the time is over, because a role that is new may not be known everywhere yet. A
wrong value is never asked again.
Rule 3: The deployment stops, and says what is deployed where and what to do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

POLL_S = 10
SPARE_S = 120
"""Beyond two rings: a cold start, a stream's shard that is found, a role that becomes known."""


class CheckFailed(Exception):
    """What a Region's canary did not do; the message says it, and in which Region."""


@dataclass(frozen=True, slots=True)
class CanaryCheck:
    """Asks the function `name`. `client` makes a boto3 client for a service and a Region.

    ring_delay_s: from a change that rings to the look at its lane.
    """

    name: str
    ring_delay_s: int
    client: Callable[[str, str], Any]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    @property
    def bound_s(self) -> int:
        return 2 * self.ring_delay_s + SPARE_S

    def __call__(self, region: str) -> float:
        """How many seconds it took. Raises CheckFailed."""
        began = self.clock()
        newest_ms: int | None = None
        while True:
            try:
                answer = self._ask(region)
            except CheckFailed as failure:
                problem = str(failure)
            else:
                newest_ms = answer["newest_ms"] if newest_ms is None else newest_ms
                if not answer["read"]:
                    why = f"added {answer['added']} changes and read another difference"
                    raise CheckFailed(f"the canary of {region} {why} (value-wrong)")
                folded_ms = answer["folded_ms"]
                if folded_ms is not None and folded_ms >= newest_ms:
                    return self.clock() - began
                problem = f"what the canary of {region} added was read, and is not folded (canary-late)"
            if self.clock() - began + POLL_S > self.bound_s:
                raise CheckFailed(f"after {self.bound_s} s: {problem}")
            self.sleep(POLL_S)

    def _ask(self, region: str) -> dict[str, Any]:
        try:
            answered = self.client("lambda", region).invoke(FunctionName=self.name, Payload=b"{}")
            answer = json.loads(answered["Payload"].read())
        except (ClientError, BotoCoreError, ValueError) as error:
            raise CheckFailed(f"the canary of {region} cannot be asked: {error}") from error
        if "FunctionError" in answered:
            said = answer.get("errorMessage", "no message") if isinstance(answer, dict) else answer
            raise CheckFailed(f"the canary of {region} failed (functions-failing): {said}")
        known = {"read": bool, "newest_ms": int, "folded_ms": int | None, "added": int}
        if not isinstance(answer, dict) or not all(isinstance(answer.get(k), kind) for k, kind in known.items()):
            raise CheckFailed(f"the canary of {region} answered {str(answer)[:200]}, which is no canary's answer")
        return answer
