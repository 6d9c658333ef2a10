"""What the checks of `make preflight` work on, and what a check finds where AWS refuses an answer.

Rule 1: A check finds what is ok; what to mend, and how; what is unknown, and which right is missing
to find out.
Rule 2: No answer of AWS ends a check with a stack trace. A right has AWS's name.
Rule 3: What the deployer itself would refuse is to mend, in the deployer's words.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.aws import DeploymentRefused
from infra.deployment import Deployment
from ledger.core.errors import NotAllowed, Throttled, Unavailable

OK, MEND, UNKNOWN = "ok", "mend", "unknown"
REFUSES = ("ValidationError", "ValidationException")
RIGHT = re.compile(r"perform: ([\w-]+:\w+)")
UNREAD = (NotAllowed, Throttled, Unavailable)
Findings = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Flight:
    """principal: the ARN of the caller. files: the service's rendered templates by Region."""

    target: Deployment
    principal: str
    files: Mapping[str, Path]

    @property
    def home(self) -> str:
        return self.target.regions[0]

    @property
    def account(self) -> str:
        return self.principal.split(":")[4]

    @property
    def partition(self) -> str:
        return self.principal.split(":")[1]

    def template(self, region: str) -> Any:
        return json.loads(self.files[region].read_text())


def found(ask: Callable[[], Findings]) -> Findings:
    """What a check finds, whatever AWS answers."""
    try:
        yield from ask()
    except DeploymentRefused as error:
        yield UNKNOWN if isinstance(error.__cause__, UNREAD) else MEND, str(error)
    except ClientError as error:
        code, right = error.response["Error"]["Code"], RIGHT.search(str(error))
        if re.search("AccessDenied|Unauthorized", code):
            yield (
                UNKNOWN,
                f"you may not look: {right[1] if right else error.operation_name} is missing",
            )
        else:
            yield MEND if code in REFUSES else UNKNOWN, str(error)
    except BotoCoreError as error:
        yield UNKNOWN, str(error)
