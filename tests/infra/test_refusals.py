"""A deployment with other shards or Regions than the table's, or with bad settings, is refused before any change."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from infra import deploy, framework, table_shape
from infra.build import ROOT
from infra.table_stack import DeploymentRefused, TableStack
from ledger import items
from ledger.errors import Unavailable
from ledger.limit import Limit
from ledger.memory import MemoryTable
from ledger.requests import Get, Put, Request
from ledger.values import Shape
from tests.infra import template

HOME, OTHER, THIRD = "eu-west-1", "us-east-1", "ap-south-1"


class World:
    """The steps of a deployment in their order, tables by Region that are one, and what the framework renders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        self.steps: list[str] = []
        self.table: Any = MemoryTable()
        self.path = path
        monkeypatch.setattr(framework, "check_tools", lambda: None)
        monkeypatch.setattr(framework, "package", self.package)
        monkeypatch.setattr(framework, "lint", lambda template, region: None)
        monkeypatch.setattr(framework, "run", lambda _, __, region, ___: self.steps.append(f"service in {region}"))
        monkeypatch.setattr(deploy, "build", lambda where: ROOT / "build" / "lambda.zip")
        monkeypatch.setattr(deploy, "sizes", lambda artifact: "")
        monkeypatch.setattr(deploy, "_account", lambda regions: "111122223333")
        monkeypatch.setattr(deploy, "_outputs", lambda target, region: {})
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

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, Put):
            self.steps.append("shape")
        return self.table.answer(request)

    def deploy(self, regions: str, params: str = "") -> None:
        self.steps.clear()
        deploy.deploy(stage="dev", regions=regions, name="ledger", params=params)

    @property
    def shape(self) -> Shape:
        return items.shape_of(self.table.answer(Get(items.SHAPE_KEY)))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    return World(monkeypatch, tmp_path)


def test_the_shape_is_written_last_and_once(world: World) -> None:
    world.deploy(f"{HOME} {OTHER}", 'shards={"stock:":4}')
    assert world.steps == ["table", f"service in {HOME}", f"service in {OTHER}", "shape"]
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
    assert world.steps[-2:] == [f"service in {OTHER}", "shape"]
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
        ("keepMs=1000", "keep_ms=1000 must be above read_time_max_ms=60000"),
        ("shards=four", "LEDGER_SHARDS='four' cannot be read as shards"),
        ('limits={"stock:":{"floor":5}}', "LEDGER_LIMITS: floor=5 is not an int from"),
        ("clean=perhaps", "LEDGER_CLEAN='perhaps' cannot be read as clean"),
    ],
)
def test_settings_with_which_no_function_would_start_are_refused(
    command: Callable[..., None], params: str, says: str, world: World
) -> None:
    with pytest.raises(DeploymentRefused, match=says):
        command("dev", f"{HOME} {OTHER}", "ledger", params)
    assert world.steps == []
