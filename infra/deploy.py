"""`python -m infra.deploy package|preflight|deploy|remove` (`make package` and so on): all Regions,
in order.

Rule 1: package does not call AWS. deploy renders every template first, so a template that it
refuses leaves nothing half deployed; then it makes the table, because a service stack needs its
replica's stream.
Rule 2: deploy refuses what the table's shape does not allow, or the account lacks, before it
changes anything. It writes the shape last: from then on every process refuses to start whose
settings lack a new Region.
Rule 3: Every step may be repeated: the same command completes a deployment that was cut off.
"""

import ipaddress
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from botocore.exceptions import BotoCoreError, ClientError

from infra import aws, canary, table_shape
from infra.aws import DeploymentRefused
from infra.build import ROOT, build, sizes
from infra.deployment import Deployment, deployment
from infra.parameters import ring_delay_s
from infra.preflight import account
from infra.preflight.flight import Flight
from infra.preflight.simulated import Document, document
from infra.preflight.verdict import is_ready
from infra.table_template import template_of

PACKAGED = ROOT / "build" / "package"
TEMPLATE = "cloudformation-template-update-stack.json"
QUEUES = ("ChangesQueueUrl", "ChangesDeadLetterQueueUrl", "OutcomesQueueUrl")
OUTPUTS = ("HttpApiUrl", *QUEUES)
COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)

app = typer.Typer(
    help="Package, check, deploy and remove the table and the service, in all Regions.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Stage = Annotated[str, typer.Option(help="The stage, such as dev or prod.")]
Regions = Annotated[
    str, typer.Option(help="One Region or more, with spaces; the table's stack is in the first.")
]
Name = Annotated[str, typer.Option(help="The names of all resources begin with it.")]
Params = Annotated[
    str,
    typer.Option(
        envvar="PARAMS",
        help="Parameters as name=value, with spaces between; they win over serverless.yml.",
    ),
]


class DeploymentStopped(Exception):
    """deploy changed some Regions and not others; the message says which, and what to do."""


@app.command()
def package(
    stage: Stage = "dev",
    regions: Regions = "eu-west-1 us-east-1",
    name: Name = "ledger",
    params: Params = "",
) -> None:
    """Build the zip and all templates; AWS is not called."""
    target = deployment(name, stage, regions, params)
    aws.say(sizes(build("lambda")))
    render(target)
    table = PACKAGED / f"{target.table}-table.json"
    table.write_text(
        template_of(
            len(target.regions), target.table_stack.capacity, retires=target.table_stack.retires
        )
    )
    aws.say(f"packaged for {' '.join(target.regions)} in {PACKAGED.relative_to(ROOT)}")


@app.command()
def preflight(
    stage: Stage = "dev",
    regions: Regions = "eu-west-1 us-east-1",
    name: Name = "ledger",
    params: Params = "",
    change_sets: Annotated[
        bool,
        typer.Option(help="Also make change sets, show what they would change, and delete them."),
    ] = False,
    policy: Annotated[
        Document | None,
        typer.Option(help="Only print this IAM policy, which the role that deploys needs."),
    ] = None,
) -> None:
    """Check whether a deployment would work in the account, and change nothing.

    Exit code 1: mend something first.
    """
    target = deployment(name, stage, regions, params)
    who = target.identity(target.regions[0])
    if policy:
        aws.say(json.dumps(document(Flight(target, who["Arn"], {}), policy), indent=1))
        return
    aws.say(sizes(build("lambda")))
    # Rule 6: preflight changes nothing. It checks what deploy would send, so it builds and renders
    # that first.
    if not is_ready(Flight(target, who["Arn"], render(target)), change_sets=change_sets):
        raise typer.Exit(1)


@app.command()
def deploy(
    stage: Stage = "dev",
    regions: Regions = "eu-west-1 us-east-1",
    name: Name = "ledger",
    params: Params = "",
    deletion_protection: Annotated[
        bool, typer.Option(help="Protect the table from deletion.")
    ] = True,
    check: Annotated[
        bool, typer.Option(help="Wait for each Region's canary before the next Region.")
    ] = True,
    switch_table: Annotated[
        bool, typer.Option(help="Deploy also if the service has another table now.")
    ] = False,
) -> None:
    """Deploy the table and wait for its replicas, then deploy the service in one Region after the
    other.

    If it fails, run it again: it goes on.
    """
    target = deployment(name, stage, regions, params)
    aws.say(f"account {target.account()}, stage {stage}, {' '.join(target.regions)}")
    aws.say(sizes(build("here" if runs_here(os.environ.get("AWS_ENDPOINT_URL", "")) else "lambda")))
    settings = table_shape.settings_of(render(target)[target.regions[0]], target.regions[0])
    tables = {region: table_shape.table_of(target.table, region) for region in target.regions}
    shape = table_shape.refuse_another(settings, tables[target.regions[0]])
    if not switch_table:
        target.refuse_another_table()
    target.refuse_too_little_concurrency()
    account.refuse_too_low_quotas(target)
    table = target.table_stack
    table.deploy(deletion_protection=deletion_protection)
    new = {region for region in target.regions if shape is not None and region not in shape.regions}
    for number, region in enumerate(target.regions, 1):
        serverless("deploy", stage, region, target.params_of(region, table.stream_arn(region)))
        # Rule 4: regions come one after the other, the next one when the service has read and
        # folded the changes of the canary before. A Region that is new to the shape starts with
        # the shape, so deploy calls its canary after that.
        if check and region not in new:
            _check(target, region, (*target.regions[number:], "the table's shape"))
    table_shape.write_in(settings, tables)
    for region in sorted(new) if check else ():
        _check(target, region, ())
    for region in target.regions:
        outputs = target.deployed(region).outputs
        aws.say(f"{region}: " + " ".join(outputs[key] for key in OUTPUTS if key in outputs))


@app.command()
def remove(
    stage: Stage = "dev",
    regions: Regions = "eu-west-1 us-east-1",
    name: Name = "ledger",
    params: Params = "",
    drop_changes: Annotated[
        bool, typer.Option(help="Remove also if changes or outcomes wait, and lose them.")
    ] = False,
) -> None:
    """Remove the service in every Region, and keep the table and its data."""
    target = deployment(name, stage, regions, params)
    target.account()
    stacks = {region: target.deployed(region) for region in target.regions}
    for region, stack in stacks.items():
        if not drop_changes:
            # Rule 5: remove keeps the table, and does not throw away changes or outcomes that
            # still wait in a queue.
            _refuse_waiting(region, stack.outputs)
    for region, stack in stacks.items():
        if stack.status:
            serverless("remove", stage, region, target.params_of(region))
        else:
            aws.say(f"no service in {region}")
    aws.say(
        f"kept: the table {target.table} with all its replicas, and its stack {target.table}-table"
    )


def main() -> None:
    """Run a command. A refusal ends it with one line and exit code 1."""
    try:
        app()
    except (DeploymentRefused, DeploymentStopped) as error:
        sys.exit(f"error: {error}")
    except (BotoCoreError, ClientError) as error:
        sys.exit(
            f"error: AWS refused a request: {error}. Correct that and run the same command again"
        )


def _check(target: Deployment, region: str, left: Sequence[str]) -> None:
    """Wait for a Region's canary. left: what deploy has yet to do. Raises DeploymentStopped."""
    within_s = canary.bound_s(ring_delay_s(target.parameters(target.regions[0])))
    aws.say(f"{region}: waiting for its canary, {within_s} s at most")
    try:
        took_s = canary.wait_for(f"{target.service}-canary", region, within_s)
        aws.say(
            f"{region}: its canary read what it added, and that was folded after {took_s:.0f} s"
        )
    except canary.CheckFailed as failure:
        rest = f"unchanged: {', '.join(left)}" if left else "all else is deployed"
        raise DeploymentStopped(
            f"{failure}. {region} has the new deployment; {rest}. Look for that alarm in "
            "docs/operations.md, mend it and deploy again, or go back to the commit before "
            "(docs/deploying.md, Rolling back). --no-check deploys without waiting"
        ) from failure


def render(target: Deployment) -> dict[str, Path]:
    """Make each Region's template, and check that its functions start.

    AWS is not called. Raises DeploymentRefused.
    """
    found = {}
    for region in target.regions:
        directory = PACKAGED / f"{target.stage}-{region}"
        serverless(
            "package", target.stage, region, target.params_of(region), "--package", str(directory)
        )
        table_shape.settings_of(directory / TEMPLATE, region)
        found[region] = directory / TEMPLATE
    return found


def serverless(
    command: str, stage: str, region: str, params: Mapping[str, str], *more: str
) -> None:
    """Run the framework (osls) for a Region's service stack, by arguments alone.

    Raises DeploymentRefused.
    """
    given = [
        argument for name, value in params.items() for argument in ("--param", f"{name}={value}")
    ]
    arguments = [
        str(ROOT / "node_modules/.bin/serverless"),
        command,
        "--stage",
        stage,
        "--region",
        region,
    ]
    environment = {**os.environ, "SLS_NOTIFICATIONS_MODE": "off"}
    if (
        subprocess.run(
            [*arguments, *given, *more], cwd=ROOT, env=environment, check=False
        ).returncode
        != 0
    ):
        again = "Mend what it says and run the same command again"
        raise DeploymentRefused(
            f"`serverless {command}` failed in {region}; its message is above. {again}"
        )


def runs_here(endpoint_url: str) -> bool:
    """Whether functions run on this machine: then they need wheels for its own Python, not those
    for arm64.
    """
    host = urlsplit(endpoint_url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_waiting(region: str, outputs: dict[str, str]) -> None:
    sqs = aws.client("sqs", region)
    for url in (outputs[key] for key in QUEUES if key in outputs):
        counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(COUNTS))["Attributes"]
        waiting = sum(int(count) for count in counts.values())
        if waiting:
            raise DeploymentRefused(
                f"{waiting} messages wait in {url}. Nothing was removed. Wait until the queue is "
                "empty, or redrive a dead-letter queue. --drop-changes removes the service and "
                "loses them"
            )


if __name__ == "__main__":
    main()
