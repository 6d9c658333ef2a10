"""The canary: it adds one pack, reads it, and publishes how far the one before has come."""

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
from ledger.requests import Get, Put, Request, keyed
from service import observe
from service.canary.handler import COUNTER, Canary
from service.observe import Watch
from tests.service.http_client import Context
from tests.world import KEEP_MS, LATENESS_MS, A, B, Region, settings, two_regions

FOLD_MIN = 32


class Cage:
    """Two Regions, and a canary in one."""

    def __init__(self, table: Region | None = None, region: str = A, **changed: Any) -> None:
        self.home, self.away = two_regions()
        self.home = table or self.home
        self.settings = settings(region, **{"fold_min": FOLD_MIN} | changed)
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
        home.now_ms += LATENESS_MS + 1
        Compactor(self.settings, clock=lambda: home.now_ms, tables={A: home, B: away}).compact(COUNTER)

    def published(self, *names: str) -> list[list[float]]:
        return [self.watch.metrics.metric_set.get(name, {"Value": []})["Value"] for name in names]


def test_a_canary_puts_one_pack_of_as_many_changes_as_ring_for_certain_and_reads_them() -> None:
    for fold_min in (1, FOLD_MIN, 8_000):
        cage = Cage(fold_min=fold_min, shards={"ledger:": 7})
        answer = cage.run()
        (key,) = cage.home.items
        assert key.pk == f"delta#{A}#0#{COUNTER}"  # one lane, however many shards the counter has
        times = {"newest_ms": cage.home.now_ms, "folded_ms": None, "lag_ms": 0}
        assert answer == {"region": A, "value": fold_min, "added": fold_min, "read": True} | times
        assert cage.published("CanaryRuns", "CanaryWrong", "CanaryLagMs") == [[1], [0], [0]]
        assert [cage.run()["value"] for _ in range(2)] == [2 * fold_min, 3 * fold_min]


def test_what_was_folded_before_is_no_lag_and_what_was_not_is_from_run_to_run() -> None:
    cage = Cage()
    first = cage.run()
    cage.fold()
    answer = cage.run(300_000)
    assert (answer["folded_ms"], answer["lag_ms"], answer["read"]) == (first["newest_ms"], 0, True)
    assert [cage.run(300_000)["lag_ms"] for _ in range(3)] == [300_000, 600_000, 900_000]
    assert cage.published("CanaryLagMs") == [[900_000]]


def test_a_run_reads_no_more_however_many_there_were() -> None:
    for clean in (True, False):
        cage, asked = Cage(clean=clean), []
        for _ in range(4):
            cage.run(KEEP_MS + LATENESS_MS)
            cage.fold()
            cage.home.copy_to(cage.away)
            cage.home.asked.clear()
            cage.canary()
            asked.append(len(cage.home.asked))
            cage.fold()
        assert asked[1:] == asked[:1] * 3


class Meddled(Region):
    """Keeps nothing of a put, or another pack of this Region's canary, or of another one's, comes with it."""

    loses = False
    also: str | None = None

    def answer(self, request: Request, /) -> Any:
        if self.also is not None and isinstance(request, Put):
            other = Cage(region=self.also)
            other.run()
            self.store(other.home.items.values())
        return None if self.loses and isinstance(request, Put) else super().answer(request)


def test_what_is_read_and_was_not_put_or_was_put_and_is_not_read_is_wrong_and_no_error_of_the_function(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for loses, also, rose in ((True, None, 0), (False, A, 2 * FOLD_MIN), (False, B, FOLD_MIN)):
        table = Meddled()
        table.loses, table.also = loses, also
        cage = Cage(table)
        right = rose == FOLD_MIN
        assert cage.run()["read"] is right
        assert cage.published("CanaryWrong") == [[not right]]
        line = caplog.records[-1].__dict__
        assert (line["levelname"], line["added"]) == ("INFO" if right else "ERROR", FOLD_MIN)
        assert line.get("rose", FOLD_MIN) == rose


class Refusing(Region):
    kind: type = Get

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, self.kind):
            raise Throttled("the table refuses")
        return super().answer(request)


def test_what_the_table_refuses_is_an_error_of_the_function_and_the_run_is_published() -> None:
    for kind in (Get, Put):
        cage = Cage(table := Refusing())
        table.kind = kind
        with pytest.raises(Throttled):
            cage.run()
        assert cage.published(observe.CANARY_RUNS, observe.CANARY_WRONG) == [[1], []]
    cage = Cage()
    cage.home.store([items.shape_item(Shape((A, B), {"ledger:": 4}))])
    with pytest.raises(SettingsMismatch):
        cage.run()
    assert set(cage.home.items) == {items.SHAPE_KEY}
    cage = Cage()
    cage.home.store([keyed(items.checkpoint_key(cage.settings.lanes_of(COUNTER, A)[0]))])
    with pytest.raises(DamagedItem):
        cage.run()


@pytest.mark.parametrize("prefix", ["", "ledger:", COUNTER])
def test_a_limit_that_fits_the_canary_is_refused_at_its_start(prefix: str) -> None:
    with pytest.raises(InvalidSettings, match=COUNTER):
        Cage(limits={prefix: Limit(ceiling=100, region=A)})


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
