"""The canary: it adds one pack, reads it, and tells how far the one before has come."""

import importlib
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from compactor import Compactor
from lab.engines.ministack import Engine
from ledger import items
from ledger.errors import DamagedItem, InvalidSettings, SettingsMismatch, Throttled
from ledger.limit import Limit, Shape
from ledger.requests import Get, Key, Put, Request
from reader import Reader
from service import observe
from service.canary.handler import COUNTER, Canary
from service.observe import Watch
from tests.service.http_client import Context
from tests.support import KEEP_MS, LATENESS_MS, A, B, Region, settings, two_regions

FOLD_MIN = 32


class World:
    """Two Regions, and a canary in one."""

    def __init__(self, table: Region | None = None, region: str = A, **changed: Any) -> None:
        self.home, self.away = two_regions()
        self.home = table or self.home
        self.settings = settings(region, fold_min=FOLD_MIN, **changed)
        self.watch = Watch.here("canary", io.StringIO())
        self.canary = Canary(self.settings, self.home, self.watch, clock=lambda: self.home.now_ms)

    def run(self, later_ms: int = 0) -> dict[str, Any]:
        self.home.now_ms += later_ms
        self.watch.metrics.clear_metrics()
        answer = self.canary()
        assert json.loads(json.dumps(answer)) == answer, "Lambda and the deployment want JSON"
        return answer

    def fold(self) -> None:
        home, away = self.home, self.away
        Compactor(self.settings, clock=lambda: home.now_ms, tables={A: home, B: away}).compact(COUNTER)

    def told(self, name: str) -> list[float]:
        told: list[float] = self.watch.metrics.metric_set.get(name, {"Value": []})["Value"]
        return told


def test_a_canary_puts_one_pack_of_as_many_changes_as_ring_for_certain_and_reads_them() -> None:
    world = World()
    answer = world.run()
    (pack,) = world.home.items.values()
    lane = world.settings.lanes_of(COUNTER, A)[0]
    assert len(items.entries_of(lane, pack).tokens) == FOLD_MIN
    assert answer == {
        "region": A,
        "value": FOLD_MIN,
        "added": FOLD_MIN,
        "read": True,
        "newest_ms": world.home.now_ms,
        "folded_ms": None,
        "lag_ms": 0,
    }
    assert [world.told(each) for each in ("CanaryRuns", "CanaryWrong", "CanaryLagMs")] == [[1], [0], [0]]


def test_every_run_has_changes_of_its_own() -> None:
    world = World()
    assert [world.run()["value"] for _ in range(3)] == [FOLD_MIN, 2 * FOLD_MIN, 3 * FOLD_MIN]


def test_what_was_folded_before_is_no_lag_and_its_time_is_told() -> None:
    world = World()
    first = world.run()
    world.home.now_ms += LATENESS_MS + 1
    world.fold()
    answer = world.run(300_000)
    assert (answer["folded_ms"], answer["lag_ms"], answer["read"]) == (first["newest_ms"], 0, True)


def test_what_was_not_folded_is_lag_from_run_to_run() -> None:
    world = World()
    world.run()
    assert [world.run(300_000)["lag_ms"] for _ in range(3)] == [300_000, 600_000, 900_000]
    assert world.told("CanaryLagMs") == [900_000]


@pytest.mark.parametrize("clean", [True, False])
def test_a_run_reads_no_more_however_many_there_were(clean: bool) -> None:
    world = World(clean=clean)
    asked = []
    for _ in range(4):
        world.run(KEEP_MS + LATENESS_MS)
        world.home.now_ms += LATENESS_MS + 1
        world.fold()
        world.home.copy_to(world.away)
        world.home.asked.clear()
        world.canary()
        asked.append(len(world.home.asked))
        world.home.now_ms += LATENESS_MS + 1
        world.fold()
    assert asked[1:] == asked[:1] * 3


def test_a_change_of_another_regions_canary_in_between_is_nothing_to_this_one() -> None:
    class Meanwhile(Region):
        """Another Region's pack arrives with ours."""

        def answer(self, request: Request, /) -> Any:
            answered = super().answer(request)
            if isinstance(request, Put):
                other = World(region=B)
                other.run()
                self.store(other.home.items.values())
            return answered

    answer = World(Meanwhile()).run()
    assert (answer["read"], answer["value"]) == (True, FOLD_MIN)


class Losing(Region):
    """Answers a put, and keeps nothing of it."""

    def answer(self, request: Request, /) -> Any:
        return None if isinstance(request, Put) else super().answer(request)


def test_what_was_put_and_is_not_read_is_told_and_is_no_error_of_the_function(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(Losing())
    answer = world.run()
    assert (answer["read"], answer["value"]) == (False, 0)
    assert world.told("CanaryWrong") == [1]
    line = caplog.records[-1].__dict__
    assert (line["levelname"], line["added"], line["rose"]) == ("ERROR", FOLD_MIN, 0)


def test_what_is_added_by_somebody_else_is_read_as_wrong() -> None:
    class Twice(Region):
        def answer(self, request: Request, /) -> Any:
            if isinstance(request, Put):
                other = World()
                other.run()
                self.store(other.home.items.values())
            return super().answer(request)

    assert World(Twice()).run()["read"] is False


class Refusing(Region):
    def __init__(self, kind: type) -> None:
        super().__init__()
        self.kind = kind

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, self.kind):
            raise Throttled("the table refuses")
        return super().answer(request)


@pytest.mark.parametrize("kind", [Get, Put])
def test_what_the_table_refuses_is_an_error_of_the_function_and_the_run_is_told(kind: type) -> None:
    world = World(Refusing(kind))
    with pytest.raises(Throttled):
        world.run()
    assert world.told(observe.CANARY_RUNS) == [1]
    assert world.told(observe.CANARY_WRONG) == []


def test_nothing_is_put_where_the_shape_is_another() -> None:
    world = World()
    world.home.store([items.shape_item(Shape((A, B), {"ledger:": 4}))])
    with pytest.raises(SettingsMismatch):
        world.run()
    assert set(world.home.items) == {items.SHAPE_KEY}


def test_all_changes_are_in_one_lane_however_many_shards_the_counter_has() -> None:
    world = World(shards={"ledger:": 7})
    world.run()
    answer = world.run()
    assert {key.pk for key in world.home.items} == {f"delta#{A}#0#{COUNTER}"}
    assert (answer["read"], answer["value"]) == (True, 2 * FOLD_MIN)
    reader = Reader(world.settings, table=world.home, clock=lambda: world.home.now_ms)
    assert reader.value(COUNTER) == 2 * FOLD_MIN


@pytest.mark.parametrize("fold_min", [1, 8_000])
def test_one_pack_holds_as_few_and_as_many_as_settings_may_ask_for(fold_min: int) -> None:
    home = Region()
    changed = settings(fold_min=fold_min)
    answer = Canary(changed, home, Watch.here("canary", io.StringIO()), clock=lambda: home.now_ms)()
    assert (len(home.items), answer["added"], answer["value"]) == (1, fold_min, fold_min)


@pytest.mark.parametrize("prefix", ["", "ledger:", COUNTER])
def test_a_limit_that_fits_the_canary_is_refused_at_its_start(prefix: str) -> None:
    with pytest.raises(InvalidSettings, match=COUNTER):
        World(limits={prefix: Limit(ceiling=100, region=A)})


def test_a_damaged_checkpoint_is_an_error_and_names_its_key() -> None:
    world = World()
    lane = world.settings.lanes_of(COUNTER, A)[0]
    key: Key = items.checkpoint_key(lane)
    world.home.store([{"pk": {"S": key.pk}, "sk": {"S": key.sk}}])
    with pytest.raises(DamagedItem):
        world.run()


def test_the_function_answers_a_deployment_from_its_environment_alone(
    engine: Engine, table_names: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = next(table_names)
    engine.create_table(table, A)
    environ = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test")
    environ |= {"AWS_REGION": A, "LEDGER_TABLE": table, "LEDGER_ENDPOINT_URL": engine.endpoint_url}
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    handler = importlib.reload(importlib.import_module("service.canary.main")).handler
    first, second = handler({}, Context()), handler({}, Context())
    assert first | second == second
    assert (first["value"], second["value"], second["read"]) == (FOLD_MIN, 2 * FOLD_MIN, True)
    assert second["folded_ms"] is None
    assert second["lag_ms"] > 0
