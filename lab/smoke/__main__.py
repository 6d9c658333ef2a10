"""`python -m lab.smoke` (`make smoke`): tries the claims of docs/assumptions.md in an account, and
deletes all that it made.

Rule 1: It asks once, with the account and the cap, before it makes anything.
Rule 2: However it ends, but for SIGKILL, it cleans up and writes its report; `make smoke-clean ID=`
cleans up again.
Rule 3: After a step in which a test fails the next ones follow.
"""

import os
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError

from infra import aws
from infra.aws import DeploymentRefused
from infra.deployment import Deployment
from infra.table_stack import TableStack
from infra.table_template import Capacity
from lab.engines import proxy
from lab.engines.children import Children
from lab.engines.ministack import ENVIRONMENT, Engine, EngineMissing, end_on_signals
from lab.smoke import clean, report
from lab.smoke.report import OF_THE_TABLE, STEPS
from lab.smoke.visit import Visit, visit_of

CAP = {True: "10 minutes, at most 0.10 dollars", False: "40 minutes, at most 1.20 dollars"}
"""For the table alone, and for all: twice the estimate."""

Regions = Annotated[
    str, typer.Option(help="Two Regions, with a space; the table's stack is in the first.")
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Accept the account and the cap without a question.")
]
OnlyTable = Annotated[
    bool, typer.Option("--table", help=f"Only {' '.join(OF_THE_TABLE)}: ten minutes, five cents.")
]
Here = Annotated[bool, typer.Option("--here", help="Use an engine on this computer, not AWS.")]
CleanId = Annotated[
    str | None,
    typer.Option("--clean", metavar="ID", help="Only delete what the run of this ID left."),
]


def main(
    regions: Regions = "eu-west-1 us-east-1",
    yes: Yes = False,
    only_table: OnlyTable = False,
    here: Here = False,
    clean_id: CleanId = None,
) -> None:
    """Try the claims of docs/assumptions.md in an AWS account, and clean up.

    Exit code: 0 if all that was tried holds, 1 if something does not, 2 if it could not go on or
    something is left.
    """
    end_on_signals()
    try:
        with ExitStack() as held:
            if clean_id is not None:
                visit = visit_of(clean_id)
                if (account := _account(visit.regions)) != visit.account:
                    why = (
                        f"the run was in the account {visit.account}, and the credentials are "
                        f"of {account}"
                    )
                    raise DeploymentRefused(
                        f"{why}. Nothing was deleted. Give credentials of {visit.account}"
                    )
                raise typer.Exit(2 if _clean(visit) else 0)
            visit, _control = _begin(regions, held, here)  # the proxy ends with the second
            if not (yes or here):
                typer.confirm(
                    f"Account {visit.account}, {regions}: {CAP[only_table]}. Go on?", abort=True
                )
            raise typer.Exit(play(visit, OF_THE_TABLE if only_table else tuple(STEPS)))
    except (DeploymentRefused, EngineMissing) as error:
        aws.say(f"error: {error}")
        raise typer.Exit(2) from None


def play(visit: Visit, steps: Sequence[str]) -> int:
    """Deploy the table, play every step, then clean up and write the report.

    Returns the exit code.
    """
    stack = TableStack(visit.table, visit.regions, Capacity())
    visit.begin(stack.name, f"{visit.name}-roles", visit.table)
    stopped, left, codes = "S1", ["unknown"], set[int]()
    try:
        named = ["--stage", visit.stage, "--regions", " ".join(visit.regions), "--name", visit.name]
        if not visit.engine and visit.child("infra.deploy", "preflight", *named) == 1:
            raise DeploymentRefused(
                "preflight found something to mend, see above. Nothing was made. Mend it first"
            )
        stopped = "the table"
        stack.deploy(deletion_protection=False)
        for stopped in steps:
            aws.say(f"{visit.name} {stopped}")
            to = ["-ojunit_family=xunit1", f"--junit-xml={report.results(visit, stopped)}"]
            codes.add(visit.child("pytest", "-qs", "-pno:cacheprovider", *to, STEPS[stopped]))
        stopped = ""
    except (DeploymentRefused, BotoCoreError, ClientError) as error:
        stopped = f"{stopped}: {error}"
    finally:
        aws.say(f"{visit.name} S9: cleaning up")
        try:
            left = _clean(visit)
        finally:
            text = report.page(visit, left, stopped)
            visit.journal.with_suffix(".md").write_text(text)
            aws.say(text)
    return 2 if left or stopped else int(any(codes))


def _begin(regions: str, held: ExitStack, here: bool) -> tuple[Visit, object]:
    names = regions.split()
    if len(set(names)) != 2 or len(names) != 2:
        raise DeploymentRefused(
            f"REGIONS='{regions}': name two different Regions. Nothing was made"
        )
    engine, table_url, control = "", "", None
    if here:
        running, children = held.enter_context(Engine()), held.enter_context(Children())
        engine = running.endpoint_url
        os.environ.update(ENVIRONMENT, AWS_ENDPOINT_URL=engine)
        control, url = proxy.start(children, running, 1, {})
        table_url = f"{url}/{proxy.OUTSIDE}"
    return Visit(secrets.token_hex(4), _account(names), names, engine, table_url), control


def _account(regions: Sequence[str]) -> str:
    return Deployment("smoke", "dev", tuple(regions)).account()


def _clean(visit: Visit) -> list[str]:
    left = ["unknown, because the clean-up did not end"]
    try:
        left = clean.clean(visit)
    finally:
        again = f"left: {'; '.join(left)}. Clean up again: make smoke-clean ID={visit.id}"
        aws.say(f"{visit.name}: {again if left else 'nothing is left'}")
    return left


if __name__ == "__main__":
    typer.run(main)
