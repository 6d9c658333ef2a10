"""What the functions tell: one logger, one set of metrics, and the metrics' names.

Rules: no counter's name is a dimension; amounts are logged at debug only; `lane` is a field of a log line.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

DELTAS_FOLDED = "DeltasFolded"
STRAYS_SETTLED = "StraysSettled"
DELTAS_CLEANED = "DeltasCleaned"
DELTAS_CONFLICTING = "DeltasConflicting"
FOLD_LAG_MS = "FoldLagMs"
TAIL_DELTAS = "TailDeltas"
LATE_DELTAS = "LateDeltas"
LANES_VISITED = "LanesVisited"
LANES_GAVE_UP = "LanesGaveUp"
LANES_DAMAGED = "LanesDamaged"
LANES_MARKED = "LanesMarked"
LANES_PLANNED = "LanesPlanned"
LANES_FORGOTTEN = "LanesForgotten"
CLEANS_POSTPONED = "CleansPostponed"
VERIFY_DIFFERENCES = "VerifyDifferences"
RECORDS_IGNORED = "RecordsIgnored"
READ_UNITS = "ReadUnits"
WRITE_UNITS = "WriteUnits"


class Metered(Protocol):
    """The part of Powertools' Metrics that the handlers use."""

    def add_metric(self, name: str, unit: MetricUnit, value: float) -> None: ...


def count(metrics: Metered, name: str, value: int) -> None:
    """Count, also a zero: an alarm can then tell "none" from "not running"."""
    metrics.add_metric(name, MetricUnit.Count, value)


def milliseconds(metrics: Metered, name: str, value: int) -> None:
    metrics.add_metric(name, MetricUnit.Milliseconds, value)


def observers() -> tuple[Logger, Metrics]:
    """The logger and the metrics of this process, with the stage as a dimension. For a main.py."""
    metrics: Any = Metrics()
    metrics.set_default_dimensions(stage=os.environ.get("LEDGER_STAGE", "none"))
    return Logger(), metrics
