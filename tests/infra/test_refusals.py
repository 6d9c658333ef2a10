"""A deployment with other shards or Regions than the table's, or with bad settings, is refused before any change."""

import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infra import account, deploy, framework, parameters, refusals, table_shape
from infra.build import ROOT
from infra.canary import CanaryCheck, CheckFailed
from infra.deploy import DeploymentStopped
from infra.deployment import Deployment, deployment
from infra.table_stack import DeploymentRefused, TableStack
from ledger import items, tokens
from ledger.errors import Unavailable
from ledger.lane import directory
from ledger.limit import Limit, Shape
from ledger.memory import MemoryTable
from ledger.requests import Get, Put, Request
from ledger.values import Delta, Lane
from service.canary.handler import COUNTER
from tests.infra import template

HOME, OTHER, THIRD = "eu-west-1", "us-east-1", "ap-south-1"


class World:
    """The steps of a deployment in their order, tables by Region that are one, and what the framework renders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        self.steps: list[str] = []
        self.stacks: dict[str, Any] = {}
        self.sick: str | None = None
        self.table: Any = MemoryTable()
        self.path = path
        monkeypatch.setattr(framework, "check_tools", lambda: None)
        monkeypatch.setattr(framework, "package", self.package)
        monkeypatch.setattr(framework, "lint", lambda template, region: None)
        monkeypatch.setattr(framework, "run", lambda _, __, region, ___: self.steps.append(f"service in {region}"))
        monkeypatch.setattr(subprocess, "run", self.run)
        monkeypatch.setattr(deploy, "build", lambda where: ROOT / "build" / "lambda.zip")
        monkeypatch.setattr(deploy, "sizes", lambda artifact: "")
        monkeypatch.setattr(deploy, "_account", lambda regions: "111122223333")
        monkeypatch.setattr(account, "check", lambda target, client, say: None)
        monkeypatch.setattr(Deployment, "stack", lambda target, region: self.stacks.get(region))
        monkeypatch.setattr(CanaryCheck, "__call__", self.ask)
        monkeypatch.setattr(deploy, "say", lambda text: None)
        monkeypatch.setattr(TableStack, "deploy", lambda stack, regions, **_: self.steps.append("table"))
        monkeypatch.setattr(TableStack, "stream_arn", lambda stack, region: "stream")
        monkeypatch.setattr(table_shape, "table_of", lambda name, region, client: self)

    def package(self, stage: str, region: str, params: Mapping[str, str]) -> Path:
        """The functions' environment, rendered from serverless.yml."""
        said = template.framework()
        known = {**said["params"]["default"], **said["params"].get(stage, {}), **params}
        variables = {
            name: re.sub(r"\$\{param:(\w+)\}", lambda param: str(known[param[1]]), text)
            for name, text in said["provider"]["environment"].items()
        }
        properties = {"Environment": {"Variables": variables | {"LEDGER_TABLE": "ledger-dev"}}}
        function = {"Type": "AWS::Lambda::Function", "Properties": properties}
        packaged = self.path / "template.json"
        packaged.write_text(json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}, "ApiFunction": function}}))
        return packaged

    def run(self, command: Sequence[str], **_: Any) -> Any:
        """What package ends with is these tests: they are not started from here."""
        self.steps.append(" ".join(command[1:]))
        return SimpleNamespace(returncode=0)

    def ask(self, region: str) -> float:
        """A canary, which the check of the deployment asks as a method of its own."""
        self.steps.append(f"canary of {region}")
        if region == self.sick:
            raise CheckFailed(f"the canary of {region} is not folded (canary-late)")
        return 80.0

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, Put):
            self.steps.append("shape")
        return self.table.answer(request)

    def deploy(self, regions: str, params: str = "", **options: bool) -> None:
        self.steps.clear()
        deploy.deploy(stage="dev", regions=regions, name="ledger", params=params, **options)

    @property
    def shape(self) -> Shape:
        return items.shape_of(self.table.answer(Get(items.SHAPE_KEY)))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return World(monkeypatch, tmp_path)


def canaried(region: str) -> list[str]:
    return [f"service in {region}", f"canary of {region}"]


def test_the_shape_is_written_last_and_once(world: World) -> None:
    world.deploy(f"{HOME} {OTHER}", 'shards={"stock:":4}')
    assert world.steps == ["table", *canaried(HOME), *canaried(OTHER), "shape"]
    assert world.shape == Shape((HOME, OTHER), {"stock:": 4})
    world.deploy(f"{HOME} {OTHER}", 'shards={"stock:":4}')
    assert "shape" not in world.steps


@pytest.mark.parametrize(
    ("regions", "params", "says"),
    [
        (f"{HOME} {OTHER}", "", "shards="),  # PARAMS was forgotten
        (f"{HOME} {OTHER}", 'shards={"stock:":8}', "'stock:': 8"),
        (HOME, 'shards={"stock:":4}', "added in us-east-1"),
        (f"{HOME} {OTHER}", 'shards={"stock:":4} foldMin=9000', "fold_min=9000"),
    ],
)
def test_other_shards_and_a_forgotten_region_are_refused_at_first(
    world: World, regions: str, params: str, says: str
) -> None:
    world.deploy(f"{HOME} {OTHER}", 'shards={"stock:":4}')
    with pytest.raises(DeploymentRefused, match=says):
        world.deploy(regions, params)
    assert world.steps == []
    assert world.shape.version == 1


SEATS = 'limits={"seats:":{"ceiling":100,"region":"eu-west-1"}}'


def test_limits_are_in_the_shape_and_may_only_be_added(world: World) -> None:
    world.deploy(HOME)
    world.deploy(HOME, SEATS)
    assert world.steps[-1] == "shape"
    assert world.shape == Shape((HOME,), {}, 2, limits={"seats:": Limit(ceiling=100, region=HOME)})


def test_a_limit_of_counters_that_have_changes_is_refused_at_first(world: World) -> None:
    world.deploy(HOME)
    lane = Lane(HOME, 0, "seats:gig")
    world.table.answer(Put(directory.item_of(lane)))
    world.table.answer(Put(items.delta_item(Delta(lane, tokens.last_of(0), 1))))
    with pytest.raises(DeploymentRefused, match="counters seats:gig have changes"):
        world.deploy(HOME, SEATS)
    assert world.steps == []


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ("", "limits"),  # PARAMS was forgotten
        (SEATS.replace("100", "99"), "set_limit"),
        (SEATS[:-1] + ',"seats:gig":{"floor":0}}', "would change the limit"),
    ],
)
def test_another_limit_is_refused_at_first(world: World, params: str, says: str) -> None:
    world.deploy(HOME, SEATS)
    with pytest.raises(DeploymentRefused, match=says):
        world.deploy(HOME, params)
    assert world.steps == []


def test_a_region_more_is_in_the_shape_when_its_functions_are_there(world: World) -> None:
    world.deploy(HOME)
    world.deploy(f"{HOME} {OTHER}")
    assert world.steps == ["table", *canaried(HOME), f"service in {OTHER}", "shape", f"canary of {OTHER}"]
    assert world.shape == Shape((HOME, OTHER), {}, 2)


def test_a_table_that_does_not_answer_is_not_changed(world: World) -> None:
    class Silent(MemoryTable):
        def answer(self, request: Request, /) -> Any:
            raise Unavailable("no answer")

    world.table = Silent()
    with pytest.raises(DeploymentRefused, match="cannot be read"):
        world.deploy(HOME)
    assert world.steps == []


@pytest.mark.parametrize("command", [deploy.package, deploy.deploy])
@pytest.mark.parametrize(
    ("params", "says"),
    [
        ("foldMin=9000", "fold_min=9000 is above fold_max=8000"),
        ("keepMs=50000", "keep_ms=50000 must be above read_time_max_ms=60000"),
        ("shards=four", "LEDGER_SHARDS='four' cannot be read as shards"),
        ('limits={"stock:":{"floor":5}}', "LEDGER_LIMITS: floor=5 is not an int from"),
        ("clean=perhaps", "LEDGER_CLEAN='perhaps' cannot be read as clean"),
        ('limits={"":{"ceiling":9,"region":"eu-west-1"}}', "ledger:canary, the counter of the canaries"),
    ],
)
def test_settings_with_which_no_function_would_start_are_refused(
    command: Callable[..., None], params: str, says: str, world: World
) -> None:
    with pytest.raises(DeploymentRefused, match=says):
        command("dev", f"{HOME} {OTHER}", "ledger", params)
    assert world.steps == []


CONTRADICTIONS = [
    ("ringEverySeconds=300 allowedLatenessMs=300000", "a change may be ahead, 905 s"),
    ("ringEverySeconds=601", "ringEverySeconds=601 is not a number from 1 to 600"),
    ("keepMs=70000 allowedLatenessMs=80000", "keepMs=70000 is below allowedLatenessMs=80000"),
    ("workAgeThresholdSeconds=75", "every message is 75 s old"),
    ("canaryLagThresholdMs=135000", "a fold may be 135 s after its change"),
    ("workWindowSeconds=0", "workBatch=50 and workWindowSeconds=0"),
    ("changesWindowSeconds=0", "changesBatch=100 and changesWindowSeconds=0"),
    ("workBatch=1", "nothing to gather"),
    ("changesWindowSeconds=6", "more than half of it"),
    ("canarySchedule=rate(6_minutes)", "canarySchedule=rate"),
    ("canarySchedule=rate(6 minutes)", "ring-silent and canary-silent"),
    ("sweepSchedule=cron(0 4 * * ? *)", "sweep-silent"),
    ("reservedAddFromQueue=49", "reservedAddFromQueue=49 is below changesConcurrency=50"),
    ("reservedCompact=5", "reservedCompact=5 is below workConcurrency=10"),
    ("changesConcurrency=1", "changesConcurrency=1 is not a number from 2 to 1000"),
    ("sweepHours=none", "sweepHours=none is not a number"),
    ("verifyOneIn=-1", "verifyOneIn=-1 is not a number"),
    ("outcomes=yes", "outcomes=yes is not true or false"),
    ("jwtIssuer=https://id.example", "jwtIssuer=https://id.example and jwtAudience=: both or none"),
    ("jwtReadScope=read jwtWriteScope=add", "jwtIssuer names nobody"),
    ("jwtIssuer=https://id.example jwtAudience=shop jwtReadScope=read", "jwtWriteScope=: both or none"),
    ("allowedPrefixes=stock:", "allowedPrefixes=stock: is not a JSON list of prefixes"),
    ("producerAccounts=1234", "account ids of 12 digits"),
    ("producerAccounts=111122223333, 444455556666", "account ids of 12 digits"),
    ("producerAccounts=*", "nobody else would be let in"),
    ("tableBilling=provisioned", "tableBilling=provisioned is not PAY_PER_REQUEST or PROVISIONED"),
    ("tableWriteMin=10", "tableWriteMin=10 is not of a table with tableBilling=PAY_PER_REQUEST"),
    ("tableReadMax=10", "ReadMax=10 is not of a table with tableBilling=PAY_PER_REQUEST"),
    ("tableBilling=PROVISIONED", "tableWriteMin=0 and tableWriteMax=0: PROVISIONED needs both"),
    (
        "tableBilling=PROVISIONED tableWriteMin=9 tableWriteMax=8 tableReadMin=1 tableReadMax=1",
        "tableWriteMin=9 and tableWriteMax=8",
    ),
    (
        "tableBilling=PROVISIONED tableWriteMin=1 tableWriteMax=8 tableReadMin=1 tableReadMax=1 tableWriteLimit=50",
        "WriteLimit=50 is not of a table with tableBilling=PROVISIONED",
    ),
    ("tableTargetPercent=95", "tableTargetPercent=95 is not a number from 20 to 90"),
    ("tableWarmWrites=3999", "takes 4000 a second from its first day"),
    ("markBatch=100", "markBatch is gone: say ringBatch"),
    ("findSchedule=rate(5 minutes)", "findSchedule is gone: say sweepSchedule"),
    ("foldmin=8", "foldmin is no parameter of serverless.yml"),
    ("reservedApi=", "reservedApi has no value"),
    ("regions=eu-west-1", "regions is given by the deployment: say REGIONS="),
    ("streamArn=arn:aws:x", "streamArn is given by the deployment."),
    ("tellsThresholds=true", "tellsThresholds is given by the deployment."),
    ("thresholdBus=my_bus!", "thresholdBus=my_bus! is not the name of an event bus"),
    ("thresholdBus=orders", "thresholdBus=orders and thresholds={}: there is nothing to tell"),
    ("thresholds=low", "LEDGER_THRESHOLDS='low' cannot be read as thresholds"),
    ('thresholds={"stock:":[{"below":10},{"above":9}]}', "above=9 and below=10 contradict each other"),
    ('thresholds={"stock:":[{"below":10,"region":"ap-south-1"}]}', "below-10 is told in no Region of regions="),
]


@pytest.mark.parametrize("command", [deploy.package, deploy.deploy])
@pytest.mark.parametrize(("params", "says"), CONTRADICTIONS)
def test_parameters_that_contradict_each_other_are_refused_by_name_before_anything_is_changed(
    command: Callable[..., None], params: str, says: str, world: World
) -> None:
    with pytest.raises(DeploymentRefused, match=says.replace("(", "\\(").replace("*", "\\*")) as refused:
        command("dev", f"{HOME} {OTHER}", "ledger", params)
    assert "Nothing was changed" in str(refused.value)
    assert world.steps == []


AGREED = [
    "",
    "ringEverySeconds=300 allowedLatenessMs=290000 workAgeThresholdSeconds=1200 canaryLagThresholdMs=1200000",
    "workBatch=10 workWindowSeconds=0 changesBatch=10 changesWindowSeconds=0",
    "reservedAddFromQueue=50 reservedCompact=20 reservedApi=0 reservedCanary=0",
    "jwtIssuer=https://id.example jwtAudience=shop jwtReadScope=read jwtWriteScope=add",
    'producerAccounts=111122223333,444455556666 allowedPrefixes=["stock:", "votes:"]',
    "tableBilling=PROVISIONED tableWriteMin=1 tableWriteMax=8 tableReadMin=1 tableReadMax=1 tableWarmWrites=100",
    'thresholds={"stock:": [{"below": 10}], "votes:": [{"above": 5, "name": "quorum"}]} thresholdBus=orders',
    "tableWriteLimit=1000 tableReadLimit=1000 tableWarmReads=12000",
]


@pytest.mark.parametrize("params", AGREED)
def test_parameters_that_agree_are_deployed(world: World, params: str) -> None:
    world.deploy(HOME, params)
    assert world.steps == ["table", *canaried(HOME), "shape"]


def test_the_region_that_tells_of_a_threshold_is_found_out_for_the_templates() -> None:
    both = f"{HOME} {OTHER}"

    def told(thresholds: str) -> list[str]:
        target = deployment("ledger", "dev", both, f"thresholds={thresholds}")
        return [target.params_of(region, "a.zip")["tellsThresholds"] for region in (HOME, OTHER)]

    assert told("{}") == ["false", "false"]
    assert told('{"stock:":[{"below":10}]}') == ["true", "false"]
    assert told(f'{{"stock:":[{{"below":10,"region":"{OTHER}"}}]}}') == ["false", "true"]
    assert told(f'{{"stock:":[{{"below":10,"region":"{OTHER}"}},{{"below":5}}]}}') == ["true", "true"]


def test_what_a_region_has_different_is_judged_too(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    regional = tmp_path / "regions.yml"
    regional.write_text("none: {}\ndev:\n  us-east-1:\n    workConcurrency: 200\n")
    monkeypatch.setattr(parameters, "REGIONAL", regional)
    world.deploy(HOME, "reservedCompact=100")
    with pytest.raises(DeploymentRefused, match="reservedCompact=100 is below workConcurrency=200"):
        world.deploy(f"{HOME} {OTHER}", "reservedCompact=100")


def test_every_parameter_that_is_a_number_is_checked_and_every_name_is_there() -> None:
    """What is a number in serverless.yml, or empty for none, is a number with bounds, or a setting of the library."""
    default = template.framework()["params"]["default"]
    of_settings = {"readTimeMaxMs", "foldMin", "foldMax", "cleanUnitsPerS"}
    numbers = {name for name, value in default.items() if isinstance(value, int)}
    assert numbers - set(refusals.NUMBERS) - of_settings == {"logRetentionDays"}
    assert set(refusals.NUMBERS) <= set(default)
    assert set(refusals.SWITCHES) <= set(default)
    assert not set(parameters.GONE) & set(default)
    assert set(parameters.DEPLOYS) <= set(default)


def test_a_canary_that_is_not_folded_stops_the_deployment_before_the_next_region(world: World) -> None:
    world.sick = HOME
    with pytest.raises(DeploymentStopped) as stopped:
        world.deploy(f"{HOME} {OTHER}")
    assert world.steps == ["table", *canaried(HOME)]
    for said in ("canary-late", f"{HOME} has what was deployed just now", f"left as it was: {OTHER}", "--no-check"):
        assert said in str(stopped.value)
    world.sick = None
    world.deploy(f"{HOME} {OTHER}")
    assert world.steps == ["table", *canaried(HOME), *canaried(OTHER), "shape"]


def test_a_canary_of_a_new_region_is_asked_when_the_shape_has_it_and_its_failure_says_that_all_is_deployed(
    world: World,
) -> None:
    world.deploy(HOME)
    world.sick = OTHER
    with pytest.raises(DeploymentStopped, match="all else is deployed"):
        world.deploy(f"{HOME} {OTHER}")
    assert world.shape.regions == (HOME, OTHER)


def test_nobody_is_asked_where_the_check_is_left_out(world: World) -> None:
    world.deploy(HOME)
    world.sick = OTHER
    world.deploy(f"{HOME} {OTHER}", check=False)
    assert world.steps == ["table", f"service in {HOME}", f"service in {OTHER}", "shape"]


def test_a_forgotten_table_name_does_not_send_the_service_to_another_table(world: World) -> None:
    there = {"Parameters": [{"ParameterKey": "TableName", "ParameterValue": "restored"}]}
    world.stacks[HOME] = there
    with pytest.raises(DeploymentRefused, match="has the table restored, and this deployment ledger-dev"):
        world.deploy(HOME)
    assert world.steps == []
    world.deploy(HOME, "tableName=restored")
    world.deploy(HOME, switch_table=True)
    assert world.steps[0] == "table"


def test_what_the_account_lacks_stops_a_deployment_before_anything_is_made_unless_nobody_asks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(*_: object) -> None:
        raise DeploymentRefused("no concurrency")

    monkeypatch.setattr(account, "check", lacks)
    with pytest.raises(DeploymentRefused, match="no concurrency"):
        world.deploy(HOME)
    assert world.steps == []
    world.deploy(HOME, ask=False)
    assert world.steps[0] == "table"


def test_the_canaries_counter_is_the_functions() -> None:
    assert table_shape.CANARY == COUNTER
