"""Logs and metrics of the functions: the names, and one object that a function writes both with.

Rule 1: A log line is one event in the words of docs/glossary.md, with the lane in a field and amounts at debug only.
Rule 2: A counter's name is never a dimension, because each value of a dimension is a metric of its own.
Rule 3: Metrics are written also when the function fails.
Rule 4: Every outcome of a change, whichever way it came, has one metric and at most one line above debug. No such line
holds an amount, so the text of an error, which may, is told at debug.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import IO, Any, Protocol

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from ledger import Receipt, errors
from ledger.errors import LedgerError

NAMESPACE = "Ledger"

DELTAS_RECORDED = "DeltasRecorded"
DELTAS_REPLAYED = "DeltasReplayed"
DELTAS_ACCEPTED = "DeltasAccepted"
DELTAS_REFUSED = "DeltasRefused"
DELTAS_CONFLICTING = "DeltasConflicting"
CHANGES_FAILED = "ChangesFailed"
LIMIT_REACHED = "LimitReached"
OUT_OF_REACH = "OutOfReach"
DELTAS_FOLDED = "DeltasFolded"
STRAYS_SETTLED = "StraysSettled"
DELTAS_CLEANED = "DeltasCleaned"
TAIL_DELTAS = "TailDeltas"
LATE_DELTAS = "LateDeltas"
LANES_VISITED = "LanesVisited"
LANES_LOOKED = "LanesLooked"
LANES_GAVE_UP = "LanesGaveUp"
LANES_FAILED = "LanesFailed"
LANES_DAMAGED = "LanesDamaged"
LANES_UNREAD = "LanesUnread"
VERIFIES_DROPPED = "VerifiesDropped"
STOPPED_TRIES = "StoppedTries"
CLEANS_POSTPONED = "CleansPostponed"
WATERMARK_AHEAD_MS = "WatermarkAheadMs"
VERIFY_DIFFERENCES = "VerifyDifferences"
LANES_RUNG = "LanesRung"
RINGS_SPARED = "RingsSpared"
LANES_LISTED = "LanesListed"
LANES_SWEPT = "LanesSwept"
LANES_FORGOTTEN = "LanesForgotten"
SWEEP_LAG_MS = "SweepLagMs"
WORK_INVALID = "WorkInvalid"
CANARY_RUNS = "CanaryRuns"
CANARY_LAG_MS = "CanaryLagMs"
CANARY_WRONG = "CanaryWrong"
RECORDS_IGNORED = "RecordsIgnored"
HOLDS_OVERDUE = "HoldsOverdue"
GATE_BYTES = "GateBytes"
CROSSINGS_TOLD = "CrossingsTold"
CROSSINGS_UNTOLD = "CrossingsUntold"
READ_UNITS = "ReadUnits"
WRITE_UNITS = "WriteUnits"

LANES_LOGGED = 10
"""Lanes that one log line names."""

Handler = Callable[[dict[str, Any], LambdaContext], Any]


@dataclass(frozen=True, slots=True)
class Watch:
    """What a function writes logs and metrics with. Made once a process."""

    logger: Logger
    metrics: Metrics | EphemeralMetrics

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Watch:
        """From POWERTOOLS_SERVICE_NAME, POWERTOOLS_METRICS_NAMESPACE, POWERTOOLS_LOG_LEVEL and LEDGER_STAGE."""
        service, stage = environ.get("POWERTOOLS_SERVICE_NAME", "ledger"), environ.get("LEDGER_STAGE", "dev")
        metrics = Metrics(namespace=environ.get("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE), service=service)
        metrics.set_default_dimensions(stage=stage)
        level = environ.get("POWERTOOLS_LOG_LEVEL", "INFO")
        return cls(Logger(service=service, level=level, stage=stage), metrics)

    @classmethod
    def here(cls, name: str, stream: IO[str] | None = None, level: str = "INFO") -> Watch:
        """Of a process that is no Lambda: lines to `stream`, else standard output, and metrics that nobody is sent."""
        logger = Logger(service=name, stream=stream, level=level)
        return cls(logger, EphemeralMetrics(namespace=NAMESPACE, service=name))

    def count(self, name: str, value: float = 1, unit: MetricUnit = MetricUnit.Count) -> None:
        """Add a value to a metric. A count of nothing is not written."""
        if value or unit is not MetricUnit.Count:
            self.metrics.add_metric(name=name, unit=unit, value=value)

    def around(self, handler: Handler, correlation_id_path: str | None = None) -> Handler:
        """The handler with Lambda's context in its logs, and its metrics written when it ends."""

        @self.logger.inject_lambda_context(correlation_id_path=correlation_id_path)
        def watched(event: dict[str, Any], context: LambdaContext) -> Any:
            try:
                return handler(event, context)
            finally:
                if self.metrics.metric_set:
                    self.metrics.flush_metrics()

        return watched


class Metered(Protocol):
    """The part of Powertools' Metrics that the handlers use."""

    def add_metric(self, name: str, unit: MetricUnit, value: float) -> None: ...


def count(metrics: Metered, name: str, value: int) -> None:
    """Count, also a zero: an alarm can then tell "none" from "not running"."""
    metrics.add_metric(name, MetricUnit.Count, value)


def size(metrics: Metered, name: str, value: int) -> None:
    metrics.add_metric(name, MetricUnit.Bytes, value)


def milliseconds(metrics: Metered, name: str, value: int) -> None:
    metrics.add_metric(name, MetricUnit.Milliseconds, value)


Outcome = Receipt | LedgerError

OF_RECEIPT = {"recorded": DELTAS_RECORDED, "replayed": DELTAS_REPLAYED, "accepted": DELTAS_ACCEPTED}


def tell(watch: Watch, outcome: Outcome, **fields: object) -> None:
    """Count one outcome, and log it if somebody may have to do something about it."""
    tell_each(watch, [(outcome, fields)])


def tell_each(watch: Watch, outcomes: Iterable[tuple[Outcome, dict[str, object]]]) -> None:
    """The same of many: each metric is written once, with its sum."""
    counted: Counter[str] = Counter()
    for outcome, fields in outcomes:
        if name := _metric_of(outcome):
            counted[name] += 1
        if isinstance(outcome, LedgerError):
            _log(watch.logger, outcome, fields)
    for name, value in counted.items():
        watch.count(name, value)


def _metric_of(outcome: Outcome) -> str:
    match outcome:
        case Receipt():
            return OF_RECEIPT[outcome.outcome]
        case errors.InvalidInput():
            return DELTAS_REFUSED
        case errors.TokenConflict():
            return DELTAS_CONFLICTING
        case errors.LimitReached():
            return LIMIT_REACHED
        case errors.OutOfReach():
            return OUT_OF_REACH
    return ""


def _log(logger: Logger, outcome: LedgerError, fields: dict[str, object]) -> None:
    told = fields | {"error": type(outcome).__name__}
    if outcome.delta is not None:
        told |= {"lane": str(outcome.delta.lane), "token": outcome.delta.token}
    if isinstance(outcome, errors.InvalidMessage):
        told["field"] = outcome.field
    if isinstance(outcome, errors.HoldEnded):
        told["state"] = outcome.state
    level, text = next((level, text) for kind, level, text in _LINES if isinstance(outcome, kind))
    getattr(logger, level)(text, extra=told)
    logger.debug("why", extra=told | {"why": str(outcome)})


_LINES: tuple[tuple[type[LedgerError] | UnionType, str, str], ...] = (
    (errors.InvalidInput, "warning", "change refused: nothing was written, and a retry is refused again"),
    (errors.TokenConflict, "warning", "token conflict: its key already stands for another change, which counts"),
    (errors.LimitReached, "info", "limit reached: nothing counts, and that is final for its key"),
    (errors.OutOfReach, "warning", "out of reach: nothing was decided, because a Region did not answer; retry"),
    (errors.HoldEnded, "info", "hold ended before: nothing was written, and its first end is final"),
    (errors.NoSuchHold, "warning", "no such hold: nothing was written"),
    (errors.OutcomeUnknown, "warning", "outcome unknown: a retry with the same key finds out, and counts once"),
    (errors.GaveUp, "warning", "gate changed too often: nothing was decided, and it may be retried"),
    (
        errors.Throttled | errors.TransactionConflict | errors.Unavailable,
        "warning",
        "change not written: it may be retried",
    ),
    (
        errors.SettingsMismatch | errors.LimitMismatch,
        "error",
        "change not written: this function's settings are not the table's",
    ),
    (LedgerError, "error", "change not written: look at the table and at this function's role"),
)
"""What befell a change -> the level and the text of its line. The first that fits decides."""
