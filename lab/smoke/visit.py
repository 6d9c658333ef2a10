"""A run of smoke: its name and its journal.

Rule 1: All that a run makes has a name that begins with the run's, in the account and the Regions
of its journal. The journal has each stack before CloudFormation gets the request, so a crash leaves
nothing that nobody knows.
Rule 2: The processes of a step end with it: a framework that went on would deploy what was cleaned
up just now.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from infra import aws

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "smoke"


@dataclass
class Visit:
    """engine: the endpoint of an engine here; empty: AWS. table_url: where functions find the
    table; empty: AWS's.
    stacks: the names of those that the run has begun."""

    id: str
    account: str
    regions: list[str]
    engine: str = ""
    table_url: str = ""
    stacks: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"smoke-{self.id}"

    @property
    def stage(self) -> str:
        return "e2e" if self.engine else "dev"  # e2e leaves out what the engine does not take

    @property
    def table(self) -> str:
        """The name of the table, and of the service's stack."""
        return f"{self.name}-{self.stage}"

    @property
    def journal(self) -> Path:
        return FOLDER / f"{self.id}.json"

    def client(self, service: str, region: str = "") -> Any:
        return _client(service, region or self.regions[0], os.environ.get("AWS_ENDPOINT_URL"))

    def begin(self, *stacks: str) -> None:
        """Note the stacks of the next requests in the journal."""
        self.stacks += stacks
        FOLDER.mkdir(parents=True, exist_ok=True)
        partial = self.journal.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self), indent=1))
        partial.replace(self.journal)

    def child(self, *arguments: str) -> int:
        """Run a program of the checkout to its end. Returns its exit code."""
        place = " ".join([self.name, self.stage, *self.regions])
        environment = {**os.environ, "SMOKE": self.id, "E2E_PLACE": place}
        command = [sys.executable, "-m", *arguments]
        with subprocess.Popen(
            command, cwd=ROOT, env=environment, start_new_session=True
        ) as process:
            try:
                return process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise


@cache  # a client takes a second of CPU
def _client(service: str, region: str, endpoint_url: str | None) -> Any:
    return aws.client(service, region)


def visit_of(id_: str) -> Visit:
    """The run of an id, from its journal. Raises DeploymentRefused."""
    journal = FOLDER / f"{id_}.json"
    if not journal.is_file():
        raise aws.DeploymentRefused(
            f"ID={id_}: there is no journal {journal}. Nothing was deleted. Give a run's ID"
        )
    return Visit(**json.loads(journal.read_text()))
