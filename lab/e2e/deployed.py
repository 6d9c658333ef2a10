"""Deploys the service to an engine, or to an account, with the same command.

Rule 1: infra.deploy does the work; only AWS_ENDPOINT_URL in its environment says that AWS is
elsewhere.
Rule 2: Nothing of the service is imported here.
Rule 3: The environment says where: without AWS_ENDPOINT_URL it is AWS. E2E_PLACE is the name, the
stage and the two Regions of a place that somebody else made and will clean up (lab/smoke).
Rule 4: Times are short, so that a fold, a clean and a backstop happen within minutes. What this
engine takes as a number alone, not as its text, is in serverless.yml under this stage.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAME, STAGE, *_regions = os.environ.get("E2E_PLACE", "ledger e2e eu-west-1 us-east-1").split()
TABLE = f"{NAME}-{STAGE}"
REGIONS = tuple(_regions)
SKEW_MS = 2_000 if "E2E_PLACE" in os.environ and "AWS_ENDPOINT_URL" not in os.environ else 0
"""Between this machine's clock and the functions': on an engine it is the same."""

SEATS, CEILING = "seats:", 30
TANK, FULL = "tank:", 25
CALLS, QUOTA = "calls", "quota"  # months; those of the second have a limit
THRESHOLDS = {
    TANK: [{"above": FULL, "name": region, "region": region} for region in REGIONS],
    SEATS: [{"above": CEILING - 1, "name": "sold-out"}],
}


def compact(value: object) -> str:
    """JSON without spaces, as a parameter takes it."""
    return json.dumps(value, separators=(",", ":"))


PARAMS = {
    "limits": compact(
        {name: {"ceiling": CEILING, "region": REGIONS[0]} for name in (SEATS, QUOTA)}
    ),
    "thresholds": compact(THRESHOLDS),
    "outcomes": "true",
    "ringEverySeconds": "5",
    "keepMs": "61000",  # above read_time_max_ms
    "allowedLatenessMs": "5000",
    "foldMin": "2",
    "sweepHours": "0.003",  # 11 s: every run is a whole pass
}


class NotDeployed(Exception):
    """The service could not be deployed to the engine; the message says why."""


def run(
    command: str,
    table_endpoint_url: str,
    regions: Sequence[str] = REGIONS,
    params: Mapping[str, str] = PARAMS,
) -> None:
    """`make deploy` or `make remove`. Raises NotDeployed."""
    values = {**params, "endpointUrl": table_endpoint_url}
    options = ["--stage", STAGE, "--regions", " ".join(regions), "--name", NAME]
    given = [f"{name}={value}" for name, value in values.items() if value]
    options += ["--params", " ".join([*given, os.environ.get("PARAMS", "")])]
    options += ["--no-deletion-protection"] if command == "deploy" else []
    done = subprocess.run(
        [sys.executable, "-m", "infra.deploy", command, *options], cwd=ROOT, check=False
    )
    if done.returncode:
        raise NotDeployed(
            f"`infra.deploy {command}` ended with exit code {done.returncode}; see its messages "
            "above"
        )
