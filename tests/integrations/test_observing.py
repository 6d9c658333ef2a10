"""What is told of each call to the standard logging, and to OpenTelemetry by its real SDK."""

import logging
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from integrations.logs import log
from integrations.opentelemetry import BUCKETS_S, Recorder
from ledger import Cost, Ledger, Limit, Observed, Settings
from ledger.errors import LimitReached
from ledger.memory import MemoryTable

ADDED = Observed("ledger.add", 12.5, Cost(2, 3, 1.0, 1.0), "recorded")
READ = Observed("reader.read", 30.0, Cost(1, 1, 2.5, untold=1), "read")
REFUSED = Observed("ledger.add", 7.0, Cost(1, 1, 0.0, 1.0), "LimitReached")


def metrics(reader: InMemoryMetricReader) -> dict[str, Any]:
    data = reader.get_metrics_data()
    assert data is not None
    (scope,) = (scope for resource in data.resource_metrics for scope in resource.scope_metrics)
    return {each.name: each for each in scope.metrics}


def test_metrics_have_the_time_in_seconds_and_the_units_by_call_and_outcome() -> None:
    reader = InMemoryMetricReader()
    record = Recorder(MeterProvider([reader]), TracerProvider())
    for observed in (ADDED, ADDED, READ, REFUSED):
        record(observed)
    found = metrics(reader)
    duration = found["exact_counter.call.duration"]
    by_outcome = {point.attributes["exact_counter.outcome"]: point for point in duration.data.data_points}
    assert duration.unit == "s"
    assert by_outcome.keys() == {"recorded", "read", "LimitReached"}
    assert (by_outcome["recorded"].count, by_outcome["recorded"].sum) == (2, pytest.approx(0.025))
    assert tuple(by_outcome["recorded"].explicit_bounds) == BUCKETS_S
    assert by_outcome["LimitReached"].attributes == {
        "exact_counter.call": "ledger.add",
        "exact_counter.outcome": "LimitReached",
        "error.type": "LimitReached",
    }
    assert "error.type" not in by_outcome["read"].attributes
    units = {
        name: {point.attributes["exact_counter.outcome"]: point.value for point in found[name].data.data_points}
        for name in ("exact_counter.read_units", "exact_counter.write_units")
    }
    assert units["exact_counter.read_units"] == {"recorded": 2.0, "read": 2.5, "LimitReached": 0}
    assert units["exact_counter.write_units"] == {"recorded": 2.0, "read": 0, "LimitReached": 1.0}


def test_a_span_of_each_call_lasts_as_long_and_stands_in_the_span_that_is_open() -> None:
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    record = Recorder(MeterProvider(), tracers)
    with tracers.get_tracer("mine").start_as_current_span("order") as order:
        record(ADDED)
        record(REFUSED)
    added, refused, _ = exporter.get_finished_spans()
    assert added.parent == order.get_span_context()
    assert (added.name, added.end_time - added.start_time) == ("ledger.add", 12_500_000)  # type: ignore[operator]
    assert added.attributes is not None
    assert added.attributes["exact_counter.write_units"] == 1.0
    assert (added.status.status_code, refused.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)


def test_a_line_is_debug_for_what_went_well_and_a_warning_for_what_did_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "ledger.calls")
    for observed in (ADDED, READ, REFUSED):
        log(observed)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("DEBUG", "ledger.add recorded: 12.5 ms, requests 2, attempts 3, read units 1, write units 1"),
        ("DEBUG", "reader.read read: 30.0 ms, requests 1, attempts 1, read units at least 2.5, write units at least 0"),
        ("WARNING", "ledger.add LimitReached: 7.0 ms, requests 1, attempts 1, read units 0, write units 1"),
    ]


def test_both_are_passed_as_observe(caplog: pytest.LogCaptureFixture) -> None:
    reader = InMemoryMetricReader()
    settings = Settings(table="counters", region="eu-west-1", limits={"stock:": Limit(floor=0)})
    for observe in (Recorder(MeterProvider([reader])), log):
        ledger = Ledger(settings, table=MemoryTable(), observe=observe)
        with pytest.raises(LimitReached):
            ledger.add("stock:1", -1)
    assert [each.name for each in caplog.records] == ["ledger.calls"]
    (point,) = metrics(reader)["exact_counter.call.duration"].data.data_points
    assert point.attributes["error.type"] == "LimitReached"
