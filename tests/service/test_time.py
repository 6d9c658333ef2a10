"""AWS kills a function when its time is up: each ends before that, also where no call of the
table is answered.
"""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from botocore.retries.standard import ExponentialBackoff, RetryContext

from ledger.core.errors import Unavailable
from ledger.core.limit import Limit
from ledger.core.requests import Get, Query, Together
from ledger.core.values import Lane
from ledger.gate import items as gates
from ledger.tables.boto import CALL_S_MAX, CONFIG, client_of
from service.jobs import Look
from service.runtime import nearly_up
from tests.service.support import NOTHING, Service
from tests.service.test_sweep import directory_of, in_bucket, place, swept
from tests.world import A

LIMITS = {"c": Limit(ceiling=100, region=A)}
_Loader = type("_Loader", (yaml.SafeLoader,), {})
_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)  # type: ignore[attr-defined]
FUNCTIONS = yaml.load(Path("serverless.yml").read_text(), _Loader)["functions"]


def test_a_call_lasts_as_long_as_its_clients_settings_say() -> None:
    for service in ("dynamodb", "sqs", "events"):
        config: Any = client_of(service, A, "http://127.0.0.1:1").meta.config
        settings = config.connect_timeout, config.read_timeout, config.retries
        ours: Any = CONFIG
        assert settings == (ours.connect_timeout, ours.read_timeout, ours.retries)
        assert config.retries["mode"] == "standard"
        attempts = config.retries["total_max_attempts"]
        throttled = Mock(is_throttling_error_from_context=lambda context: True)
        drawn = ExponentialBackoff(
            random=lambda: 1, service_name=service, throttling_detector=throttled
        )
        pauses = [drawn.delay_amount(RetryContext(attempt_number=n)) for n in range(1, attempts)]
        assert attempts * (config.connect_timeout + config.read_timeout) + sum(pauses) == CALL_S_MAX


class Invocation:
    """An invocation of a function: what its time is, and how long each call of the table takes."""

    def __init__(
        self, function: str, service: Service, call_s: float, kinds: Callable[[Any], bool]
    ) -> None:
        self.left_ms = FUNCTIONS[function]["timeout"] * 1_000
        self.killed = False
        answer = service.answer

        def slow(request: Any) -> Any:
            if kinds(request):
                self.left_ms -= int(call_s * 1_000)
            self.killed |= self.left_ms < 0
            return answer(request)

        service.runtime.answer = slow  # type: ignore[method-assign]
        self.stop = nearly_up(SimpleNamespace(get_remaining_time_in_millis=lambda: self.left_ms))


@pytest.mark.parametrize("call_s", [5, 20, CALL_S_MAX])
def test_compact_ends_in_time_where_no_call_is_answered(call_s: float) -> None:
    jobs = [Look(Lane(A, 0, f"c{n}")) for n in range(50)]
    service = Service()
    service.visit(jobs[0])  # a process that has checked the table's shape
    service.fails(Unavailable("no answer"), Get, Query)
    service.taken()
    invocation = Invocation(
        "compact", service, call_s, lambda request: isinstance(request, Get | Query)
    )
    assert service.visit(*jobs, stop=invocation.stop) == NOTHING
    assert not invocation.killed
    # each is sent again, once
    assert {job.lane for job, _ in service.taken()} == {job.lane for job in jobs}


def test_the_sweep_looks_at_the_clock_between_gates() -> None:
    lanes = in_bucket(255, 1_000)
    service = directory_of(*lanes, bucket=255, limits=LIMITS)
    service.store(gates.new_gate(lane, LIMITS["c"]) for lane in lanes)
    got: set[Lane] = set()
    for _ in range(100):
        before = place(service)
        invocation = Invocation(
            "sweep", service, CALL_S_MAX, lambda request: isinstance(request, Query | Together)
        )
        ended = service.sweep(invocation.stop).ended
        assert not invocation.killed
        got |= {*swept(service)}
        if ended:
            break
        assert place(service) != before
    assert (got, before.after is None) == ({*lanes}, False)  # the last of several runs
