"""`python -m infra.deploy package|deploy|remove` (`make package`, `make deploy`, `make remove`): all Regions, in order.

Rule 1: Package makes no call to AWS. deploy renders every template first, so that what it refuses was not half
deployed; then it makes the table, because a service stack needs its replica's stream.
Rule 2: What the table's shape does not allow, or the account lacks, is refused before anything is changed. The shape is
written last: from then on a process whose settings lack a new Region is refused.
Rule 3: Every step may be repeated: a deployment that was cut off is put right by the same command.
Rule 4: Regions come one after the other, and each next one when the canary of the one before was read and folded. A
Region that is new to the shape starts with the shape, so its canary is asked after that.
Rule 5: Remove keeps the table, and does not throw away changes or outcomes that still wait in a queue.
"""

import ipaddress
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from botocore.exceptions import BotoCoreError, ClientError

from infra import framework, table_shape
from infra.account import account_of, check_concurrency
from infra.build import ROOT, BuildFailed, build, sizes
from infra.canary import CanaryCheck, CheckFailed
from infra.deployment import Deployment, client, deployment
from infra.table_stack import DeploymentRefused
from infra.table_template import template_of
from ledger.settings import Settings

QUEUES = ("ChangesQueueUrl", "ChangesDeadLetterQueueUrl", "OutcomesQueueUrl")
OUTPUTS = ("HttpApiUrl", *QUEUES)
COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed")

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

Stage = Annotated[str, typer.Option(help="The stage, such as dev or prod.")]
Regions = Annotated[str, typer.Option(help="One Region or more; the table's stack is in the first.")]
Name = Annotated[str, typer.Option(help="Opens the name of every resource.")]
Params = Annotated[str, typer.Option(envvar="PARAMS", help="name=value …: parameters of serverless.yml, over its own.")]


class DeploymentStopped(Exception):
    """Some Regions were deployed and others were not; the message says which, and what to do."""


@app.command()
def package(
    stage: Stage = "dev", regions: Regions = "eu-west-1 us-east-1", name: Name = "ledger", params: Params = ""
) -> None:
    """Build the zip, package every Region without calling AWS, and check all templates."""
    target = deployment(name, stage, regions, params)
    framework.check_tools()
    say(sizes(build("lambda")))
    templates, _ = _render(target)
    table = framework.PACKAGED / f"{target.table}-table.json"
    table.write_text(template_of(len(target.regions), target.parameters(target.regions[0]).capacity))
    framework.lint(table, target.regions[0])
    for region, template in templates.items():
        framework.lint(template, region)
    environment = {**os.environ, "LEDGER_PACKAGED": os.pathsep.join(map(str, templates.values()))}
    rules = [sys.executable, "-m", "pytest", "-q", "tests/infra"]
    if subprocess.run(rules, cwd=ROOT, env=environment, check=False).returncode != 0:
        raise DeploymentRefused("the templates break a rule of tests/infra; see above")
    say(f"packaged for {' '.join(target.regions)} in build/package; cfn-lint has no objections")


@app.command()
def deploy(
    stage: Stage = "dev",
    regions: Regions = "eu-west-1 us-east-1",
    name: Name = "ledger",
    params: Params = "",
    deletion_protection: Annotated[bool, typer.Option(help="Of the table.")] = True,
    check: Annotated[bool, typer.Option(help="Wait for each Region's canary before the next Region.")] = True,
    switch_table: Annotated[bool, typer.Option(help="Also if the service has another table now.")] = False,
) -> None:
    """Deploy the table, wait for its replicas, then the service in one Region after the other."""
    target = deployment(name, stage, regions, params)
    framework.check_tools()
    say(f"account {account_of(target.regions, client)}, stage {stage}, {' '.join(target.regions)}")
    say(sizes(build("here" if runs_here(os.environ.get("AWS_ENDPOINT_URL", "")) else "lambda")))
    _, settings = _render(target)
    tables = {region: table_shape.table_of(target.table, region, client) for region in target.regions}
    shape = table_shape.refuse_another(settings, tables[target.regions[0]])
    if not switch_table:
        target.refuse_another_table()
    check_concurrency(target, client, say)
    table = target.table_stack(say)
    table.deploy(target.regions, deletion_protection=deletion_protection)
    canary = CanaryCheck(f"{target.service}-canary", target.parameters(target.regions[0]).ring_delay_s, client)
    new = {region for region in target.regions if shape is not None and region not in shape.regions}
    for number, region in enumerate(target.regions, 1):
        framework.run("deploy", stage, region, target.params_of(region, table.stream_arn(region)))
        if check and region not in new:
            _check(canary, region, (*target.regions[number:], "the table's shape"))
    table_shape.write_in(settings, tables, say)
    for region in sorted(new) if check else ():
        _check(canary, region, ())
    for region in target.regions:
        outputs = target.outputs(region) or {}
        say(f"{region}: " + " ".join(outputs[key] for key in OUTPUTS if key in outputs))


@app.command()
def remove(
    stage: Stage = "dev",
    regions: Regions = "eu-west-1 us-east-1",
    name: Name = "ledger",
    params: Params = "",
    drop_changes: Annotated[bool, typer.Option(help="Also if changes or outcomes wait: they are lost.")] = False,
) -> None:
    """Remove the service in every Region; the table and its data stay."""
    target = deployment(name, stage, regions, params)
    framework.check_tools()
    account_of(target.regions, client)
    deployed = {region: target.outputs(region) for region in target.regions}
    for region, outputs in deployed.items():
        if outputs is not None and not drop_changes:
            _refuse_waiting(region, outputs)
    for region, outputs in deployed.items():
        if outputs is None:
            say(f"no service in {region}")
        else:
            framework.run("remove", stage, region, target.params_of(region))
    say(f"kept: the table {target.table} with all its replicas, and its stack {target.table}-table")


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    """Run a command; what it refuses ends it with one line and exit code 1."""
    try:
        app()
    except (DeploymentRefused, DeploymentStopped, BuildFailed) as error:
        sys.exit(f"error: {error}")
    except (BotoCoreError, ClientError) as error:
        sys.exit(f"error: AWS answered: {error}")


def _check(canary: CanaryCheck, region: str, left: Sequence[str]) -> None:
    """`left`: what comes after. Raises DeploymentStopped."""
    say(f"{region}: waiting for its canary, {canary.bound_s} s at most")
    try:
        say(f"{region}: what its canary added was read, and folded after {canary(region):.0f} s")
    except CheckFailed as failure:
        rest = f"left as it was: {', '.join(left)}" if left else "all else is deployed"
        raise DeploymentStopped(
            f"{failure}. {region} has what was deployed just now; {rest}. Look for that alarm in docs/operations.md, "
            "mend it and deploy again, or go back to the commit before (docs/deploying.md, Rolling back). --no-check "
            "deploys without asking"
        ) from failure


def _render(target: Deployment) -> tuple[dict[str, Path], Settings]:
    """Each Region's template, and the settings of the first's functions; calls no AWS. Raises DeploymentRefused."""
    templates = {region: framework.package(target.stage, region, target.params_of(region)) for region in target.regions}
    settings = [table_shape.settings_of(template, region) for region, template in templates.items()]
    return templates, settings[0]


def runs_here(endpoint_url: str) -> bool:
    """Whether functions run on this machine: then with its own Python, where arm64 wheels do not load."""
    host = urlsplit(endpoint_url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_waiting(region: str, outputs: dict[str, str]) -> None:
    sqs = client("sqs", region)
    for url in (outputs[key] for key in QUEUES if key in outputs):
        counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(COUNTS))["Attributes"]
        waiting = sum(int(count) for count in counts.values())
        if waiting:
            raise DeploymentRefused(
                f"{waiting} messages wait in {url}: let them be handled, or redrive them. "
                "--drop-changes removes the service and loses them"
            )


if __name__ == "__main__":
    main()
