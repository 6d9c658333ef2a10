"""OpenTelemetry's metrics and spans of calls: `Ledger(settings, observe=Recorder())`, and of every other class alike.

Rule 1: durations are seconds and an error's class is `error.type`, by OpenTelemetry's semantic conventions; for a call
of a library they have no names, so what is ours is named `exact_counter.*`, as they ask.
Rule 2: attributes have few values: no counter, no key, no amount.
Rule 3: a span is made when its call is over, so those of its requests, if botocore is instrumented, stand beside it.
Sources: https://opentelemetry.io/docs/specs/semconv/general/metrics/ and
https://opentelemetry.io/docs/specs/semconv/db/database-metrics/
"""

from time import time_ns

from opentelemetry.metrics import MeterProvider, get_meter_provider
from opentelemetry.trace import Status, StatusCode, TracerProvider, get_tracer_provider

from ledger import Observed, __version__

SCOPE = "exact_counter"
BUCKETS_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)
"""Those that the conventions advise for operations of databases."""


class Recorder:
    """Thread-safe. meter_provider, tracer_provider: the process's own unless given.

    `exact_counter.call.duration`, a histogram in seconds, and the counters `exact_counter.read_units` and
    `exact_counter.write_units`, of DynamoDB's units, have the attributes `exact_counter.call`, such as "ledger.add",
    `exact_counter.outcome` and, of a call that failed, `error.type`. So has its span.
    """

    def __init__(
        self, meter_provider: MeterProvider | None = None, tracer_provider: TracerProvider | None = None
    ) -> None:
        meter = (meter_provider or get_meter_provider()).get_meter(SCOPE, __version__)
        self._tracer = (tracer_provider or get_tracer_provider()).get_tracer(SCOPE, __version__)
        self._duration = meter.create_histogram(
            f"{SCOPE}.call.duration", "s", "How long calls took.", explicit_bucket_boundaries_advisory=BUCKETS_S
        )
        self._reads = meter.create_counter(f"{SCOPE}.read_units", "{unit}", "Read units that calls consumed.")
        self._writes = meter.create_counter(f"{SCOPE}.write_units", "{unit}", "Write units that calls consumed.")

    def __call__(self, observed: Observed) -> None:
        name, cost = observed.name, observed.cost
        attributes = {f"{SCOPE}.call": name, f"{SCOPE}.outcome": observed.outcome}
        if not observed.went_well:
            attributes["error.type"] = observed.outcome
        self._duration.record(observed.milliseconds / 1_000, attributes)
        self._reads.add(cost.read_units, attributes)
        self._writes.add(cost.write_units, attributes)
        ended_ns = time_ns()
        span = self._tracer.start_span(
            name, attributes=attributes, start_time=ended_ns - int(observed.milliseconds * 1_000_000)
        )
        span.set_attributes({f"{SCOPE}.read_units": cost.read_units, f"{SCOPE}.write_units": cost.write_units})
        if not observed.went_well:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended_ns)
