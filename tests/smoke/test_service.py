"""S6: the service is deployed, the user of lab/e2e uses it and its judge judges it; and a
stranger.
"""

import subprocess
import sys
from collections.abc import Callable

import httpx
import pytest

from infra import aws
from lab.smoke.visit import ROOT, Visit
from tests.contract.conftest import emptied


@pytest.mark.shows(18, 19)
def test_the_user_of_e2e_finds_everything_right(visit: Visit, say: Callable[[str], None]) -> None:
    # of what the steps before left, which is nothing that a function would understand
    emptied(visit)
    command = [sys.executable, "-m", "lab.e2e", "--table-url", visit.table_url]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0, (
        "its lines say what is wrong"
    )
    say("all that it sent was counted once, told and read in both Regions")


@pytest.mark.shows(20)
def test_a_stranger_is_refused_on_every_path(on_aws: Visit, say: Callable[[str], None]) -> None:
    for region in on_aws.regions:
        url = aws.stack(region, on_aws.table).outputs["HttpApiUrl"].rstrip("/")
        found = [
            httpx.get(f"{url}{path}").status_code for path in ("/counters?counter=x", "/nowhere")
        ]
        assert {*found} <= {401, 403}, region
    say(f"answered {found} in both Regions")
