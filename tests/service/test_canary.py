"""The canary: it adds one pack, reads it, and publishes how far the one before has come."""

import json
from functools import partial
from typing import Any

import pytest

from compactor import Compactor
from ledger.core import items
from ledger.core.errors import DamagedItem, InvalidSettings, SettingsMismatch, Throttled
from ledger.core.limit import Limit, Shape
from ledger.core.requests import Get, Put, keyed
from service.canary.handler import COUNTER, Canary
from tests.service.support import Service
from tests.world import KEEP_MS, LATENESS_MS, A, B, fail

FOLD_MIN = 32


def bird(region: str = A, **changed: Any) -> tuple[Service, Canary]:
    service = Service(region, **{"fold_min": FOLD_MIN} | changed)
    return service, Canary(service.settings, service, service.watch, clock=service.clock)


def run(service: Service, canary: Canary, later_ms: int = 0) -> dict[str, Any]:
    service.now_ms += later_ms
    service.forget()
    answer = canary()
    assert json.loads(json.dumps(answer)) == answer, "Lambda and the deployment want JSON"
    return answer


def fold(service: Service) -> None:
    service.now_ms += LATENESS_MS + 1
    Compactor(service.settings, clock=service.clock, tables=service.tables).compact(COUNTER)


def test_a_canary_puts_one_ringing_pack_and_reads_it() -> None:
    for fold_min in (1, FOLD_MIN, 8_000):
        service, canary = bird(fold_min=fold_min, shards={"ledger:": 7})
        answer = run(service, canary)
        (key,) = service.items
        assert key.pk == f"delta#{A}#0#{COUNTER}"  # one lane, however many shards the counter has
        times = {"newest_ms": service.now_ms, "folded_ms": None, "lag_ms": 0}
        assert answer == {"region": A, "value": fold_min, "added": fold_min, "read": True} | times
        metrics = {"CanaryWrong": 0, "CanaryLagMs": 0}
        assert service.notes.metrics == metrics
        assert [run(service, canary)["value"] for _ in range(2)] == [2 * fold_min, 3 * fold_min]


def test_lag_is_what_was_not_folded_from_run_to_run() -> None:
    service, canary = bird()
    first = run(service, canary)
    fold(service)
    answer = run(service, canary, 300_000)
    assert (answer["folded_ms"], answer["lag_ms"], answer["read"]) == (first["newest_ms"], 0, True)
    assert [run(service, canary, 300_000)["lag_ms"] for _ in range(3)] == [
        300_000,
        600_000,
        900_000,
    ]
    assert service.counted("CanaryLagMs") == 900_000
    asked = []  # and a run reads no more however many there were
    for _ in range(4):
        run(service, canary, KEEP_MS + LATENESS_MS)
        fold(service)
        service.copy_to(service.away)
        run(service, canary)
        asked.append(len(service.asked))
        fold(service)
    assert asked[1:] == asked[:1] * 3


def test_a_wrong_read_is_told_and_is_no_error_of_the_function() -> None:
    def loses(service: Service, put: Put, _: object) -> None:
        service.drop(*service.items)

    def also(region: str) -> Any:
        def comes(service: Service, put: Put, _: object) -> None:
            other, canary = bird(region)
            canary()
            service.store(other.items.values())

        return comes

    for meddles, rose in ((loses, 0), (also(A), 2 * FOLD_MIN), (also(B), FOLD_MIN)):
        service, canary = bird()
        service.after(Put, partial(meddles, service))
        right = rose == FOLD_MIN
        assert run(service, canary)["read"] is right
        assert service.counted("CanaryWrong") == (not right)
        level, _, fields = service.lines()[-1]
        assert (level, fields["added"], fields.get("rose", FOLD_MIN)) == (
            "info" if right else "error",
            FOLD_MIN,
            rose,
        )


def test_what_the_table_refuses_is_an_error_of_the_function() -> None:
    for kind in (Get, Put):
        service, canary = bird()
        service.before(kind, fail(Throttled("the table refuses")))
        with pytest.raises(Throttled):
            run(service, canary)
        assert "CanaryWrong" not in service.notes.metrics
    damaged = keyed(items.checkpoint_key(bird()[0].settings.lanes_of(COUNTER, A)[0]))
    other = items.shape_item(Shape((A, B), {"ledger:": 4}))
    for item, error in ((other, SettingsMismatch), (damaged, DamagedItem)):
        service, canary = bird()
        service.store([item])
        with pytest.raises(error):
            run(service, canary)
        assert len(service.items) == 1
    for prefix in ("", "ledger:", COUNTER):
        with pytest.raises(InvalidSettings, match=COUNTER):
            bird(limits={prefix: Limit(ceiling=100, region=A)})
