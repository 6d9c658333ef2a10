"""An observer that logs each call and gives it to OpenTelemetry."""

import logging
from time import time_ns

from opentelemetry.metrics import get_meter
from opentelemetry.trace import StatusCode, get_tracer

from exact_counter import Observed

LOG = logging.getLogger("ledger.calls")
meter, tracer = get_meter("exact_counter"), get_tracer("exact_counter")
duration = meter.create_histogram(
    "exact_counter.call.duration",
    "s",  # and these buckets, as OpenTelemetry's conventions for databases advise
    explicit_bucket_boundaries_advisory=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10),
)
reads = meter.create_counter("exact_counter.read_units", "{unit}")
writes = meter.create_counter("exact_counter.write_units", "{unit}")


def log(observed: Observed) -> None:
    """DEBUG where the call went well, WARNING where it did not, a refusal too."""
    cost, least = observed.cost, "at least " if observed.cost.untold else ""
    level = logging.DEBUG if observed.went_well else logging.WARNING
    line = "%s %s: %.1f ms, requests %g, read units %s%g, write units %s%g"
    names = observed.name, observed.outcome, observed.milliseconds, cost.requests
    LOG.log(level, line, *names, least, cost.read_units, least, cost.write_units)


def record(observed: Observed) -> None:
    """Metrics, and a span that ends now: those of its requests stand beside it."""
    name, outcome, cost = observed.name, observed.outcome, observed.cost
    attributes = {"exact_counter.call": name, "exact_counter.outcome": outcome}
    if not observed.went_well:
        attributes["error.type"] = outcome
    duration.record(observed.milliseconds / 1_000, attributes)
    reads.add(cost.read_units, attributes)
    writes.add(cost.write_units, attributes)
    ended_ns = time_ns()
    began_ns = ended_ns - int(observed.milliseconds * 1_000_000)
    span = tracer.start_span(name, attributes=attributes, start_time=began_ns)
    if not observed.went_well:
        span.set_status(StatusCode.ERROR)
    span.end(ended_ns)


def observe(observed: Observed) -> None:
    log(observed)
    record(observed)
