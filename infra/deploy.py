"""`python -m infra.deploy package|deploy|remove` (`make package`, `make deploy`, `make remove`): all Regions, in order.

Rule 1: Package makes no call to AWS. deploy renders every template first, so that what it refuses was not half
deployed; then it makes the table, because a service stack needs its replica's stream.
Rule 2: What the table's shape does not allow is refused before anything is changed. The shape is written last: from
then on a process whose settings lack a new Region is refused.
Rule 3: Every step may be repeated: a deployment that was cut off is put right by the same command.
Rule 4: Remove keeps the table, and does not throw away changes or outcomes that still wait in a queue.
"""

import ipaddress
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import boto3
import typer
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra import framework, table_shape
from infra.build import ROOT, BuildFailed, build, sizes
from infra.table_stack import REGIONS_MAX, DeploymentRefused, TableStack
from ledger.settings import Settings

NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
PARAMS_GAP = re.compile(r"\s+(?=\w+=)")  # a value may hold spaces: "keepMs=600000 sweepSchedule=rate(5 minutes)"
CONFIG = Config(connect_timeout=5, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 5})
QUEUES = ("ChangesQueueUrl", "ChangesDeadLetterQueueUrl", "OutcomesQueueUrl")
OUTPUTS = ("HttpApiUrl", *QUEUES)
COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed")

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

Stage = Annotated[str, typer.Option(help="The stage, such as dev or prod.")]
Regions = Annotated[str, typer.Option(help="One to three Regions; the table's stack is in the first.")]
Name = Annotated[str, typer.Option(help="Opens the name of every resource.")]
Params = Annotated[str, typer.Option(envvar="PARAMS", help="name=value …: parameters of serverless.yml, over its own.")]


@dataclass(frozen=True, slots=True)
class Deployment:
    """What one command works on."""

    name: str
    stage: str
    regions: tuple[str, ...]
    params: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> str:
        return f"{self.name}-{self.stage}"

    @property
    def table_stack(self) -> TableStack:
        return TableStack(f"{self.table}-table", self.table, client, say)

    def params_of(self, artifact: str, stream_arn: str | None = None) -> dict[str, str]:
        """What the framework is told, for a Region whose stream is known."""
        given = {"name": self.name, "artifact": artifact, "regions": ",".join(self.regions)}
        return {**given, **({"streamArn": stream_arn} if stream_arn else {}), **self.params}


@app.command()
def package(
    stage: Stage = "dev", regions: Regions = "eu-west-1 us-east-1", name: Name = "ledger", params: Params = ""
) -> None:
    """Build the zip, package every Region without calling AWS, and check all templates."""
    target = deployment(name, stage, regions, params)
    framework.check_tools()
    artifact = build("lambda")
    say(sizes(artifact))
    framework.lint(ROOT / "infra" / "table.yml", target.regions[0])
    templates, _ = _render(target, artifact)
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
) -> None:
    """Deploy the table, wait for its replicas, then the service in every Region."""
    target = deployment(name, stage, regions, params)
    framework.check_tools()
    say(f"account {_account(target.regions)}, stage {stage}, {' '.join(target.regions)}")
    artifact = build("here" if runs_here(os.environ.get("AWS_ENDPOINT_URL", "")) else "lambda")
    say(sizes(artifact))
    _, settings = _render(target, artifact)
    tables = {region: table_shape.table_of(target.table, region, client) for region in target.regions}
    table_shape.refuse_another(settings, tables[target.regions[0]])
    table = target.table_stack
    table.deploy(target.regions, deletion_protection=deletion_protection)
    for region in target.regions:
        stream_arn = table.stream_arn(region)
        framework.run("deploy", stage, region, target.params_of(str(artifact.relative_to(ROOT)), stream_arn))
    table_shape.write_in(settings, tables, say)
    for region in target.regions:
        outputs = _outputs(target, region) or {}
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
    _account(target.regions)
    deployed = {region: _outputs(target, region) for region in target.regions}
    for region, outputs in deployed.items():
        if outputs is not None and not drop_changes:
            _refuse_waiting(region, outputs)
    for region, outputs in deployed.items():
        if outputs is None:
            say(f"no service in {region}")
        else:
            framework.run("remove", stage, region, target.params_of("unused.zip"))
    say(f"kept: the table {target.table} with all its replicas, and its stack {target.table}-table")


def say(text: str) -> None:
    print(text, flush=True)


def client(service: Any, region: str) -> Any:
    """A boto3 client; AWS_ENDPOINT_URL sends it to another endpoint."""
    return boto3.session.Session().client(service, region_name=region, config=CONFIG)


def main() -> None:
    """Run a command; what it refuses ends it with one line and exit code 1."""
    try:
        app()
    except (DeploymentRefused, BuildFailed) as error:
        sys.exit(f"error: {error}")
    except (BotoCoreError, ClientError) as error:
        sys.exit(f"error: AWS answered: {error}")


def deployment(name: str, stage: str, regions: str, params: str) -> Deployment:
    """The options of a command, checked. Raises DeploymentRefused."""
    for label, text in (("NAME", name), ("STAGE", stage)):
        if not NAME.fullmatch(text):
            raise DeploymentRefused(f"{label}={text}: 1 to 20 small letters, digits and hyphens, a letter first")
    names = tuple(regions.split())
    if not 1 <= len(names) <= REGIONS_MAX or len(set(names)) != len(names):
        raise DeploymentRefused(f"REGIONS='{regions}': one to {REGIONS_MAX} different Regions, separated by spaces")
    known = boto3.session.Session().get_available_regions("dynamodb")
    for region in names:
        if region not in known:
            raise DeploymentRefused(f"REGIONS='{regions}': {region} is no Region of DynamoDB")
    pairs = [pair.partition("=") for pair in PARAMS_GAP.split(params.strip()) if pair]
    if any(not key or not equals for key, equals, _ in pairs):
        raise DeploymentRefused(f"PARAMS='{params}': name=value, separated by spaces")
    return Deployment(name, stage, names, {key: value for key, _, value in pairs})


def _render(target: Deployment, artifact: Path) -> tuple[dict[str, Path], Settings]:
    """Each Region's template, and the settings of the first's functions; calls no AWS. Raises DeploymentRefused."""
    templates, settings = {}, []
    for region in target.regions:
        params = target.params_of(str(artifact.relative_to(ROOT)))
        templates[region] = framework.package(target.stage, region, params)
        settings.append(table_shape.settings_of(templates[region], region))
    return templates, settings[0]


def _account(regions: tuple[str, ...]) -> str:
    """The account of the credentials, after trying them in every Region: one that is not enabled refuses them."""
    account = ""
    for region in regions:
        try:
            account = client("sts", region).get_caller_identity()["Account"]
        except (BotoCoreError, ClientError) as error:
            raise DeploymentRefused(
                f"AWS does not accept the credentials in {region}: {error}. Give some (AWS_PROFILE, or "
                "AWS_ACCESS_KEY_ID and the rest), and enable the Region for the account"
            ) from error
    return account


def runs_here(endpoint_url: str) -> bool:
    """Whether functions run on this machine: then with its own Python, where arm64 wheels do not load."""
    host = urlsplit(endpoint_url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _outputs(deployment: Deployment, region: str) -> dict[str, str] | None:
    """The outputs of a Region's service stack; None if it is not there."""
    try:
        stacks = client("cloudformation", region).describe_stacks(StackName=deployment.table)["Stacks"]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return {output["OutputKey"]: output["OutputValue"] for output in stacks[0].get("Outputs", [])}


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
