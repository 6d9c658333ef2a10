"""Logs and metrics of the functions: the names, and one object with which a function writes both.

Rule 1: A log line is one event in the words of docs/glossary.md, with the lane in a field and
amounts at debug only.
Rule 3: A function writes its metrics also when it fails, and the exception, because Lambda writes
that as plain text.
Rule 4: Every outcome of a change, whichever way it came, has one metric and at most one line above
debug. No such line holds an amount. The text of an error may, so it stands in a line at debug.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import IO, Any, NamedTuple

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from ledger import Receipt
from ledger.core import errors
from ledger.core.errors import LedgerError
from ledger.lane.add import Outcome

NAMESPACE = "Ledger"

UNITS = {"Ms": MetricUnit.Milliseconds, "Bytes": MetricUnit.Bytes}
"""The unit of a metric, by the end of its name; any other metric is a count."""

LANES_LOGGED = 10
"""Lanes that one log line names."""

FAILED = "the invocation failed"

Handler = Callable[[dict[str, Any], LambdaContext], Any]


class Nowhere:
    """Metrics of a process that publishes none.

    Powertools' own would write every hundredth to standard output.
    """

    metric_set: Mapping[str, Any] = {}

    def add_metric(self, name: str, unit: MetricUnit, value: float) -> None: ...

    def flush_metrics(self) -> None: ...


class Watch(NamedTuple):
    """Writes the logs and metrics of a function; a process makes one."""

    logger: Logger
    metrics: Metrics | Nowhere

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Watch:
        """From POWERTOOLS_SERVICE_NAME, POWERTOOLS_METRICS_NAMESPACE and LEDGER_STAGE.

        Powertools reads the level.
        """
        service, stage = (
            environ.get("POWERTOOLS_SERVICE_NAME", "ledger"),
            environ.get("LEDGER_STAGE", "dev"),
        )
        metrics = Metrics(
            namespace=environ.get("POWERTOOLS_METRICS_NAMESPACE", NAMESPACE), service=service
        )
        # Rule 2: a counter's name is never a dimension, because each value of a dimension is a
        # metric of its own.
        metrics.set_default_dimensions(stage=stage)
        return cls(Logger(service=service, stage=stage), metrics)

    @classmethod
    def here(cls, name: str, stream: IO[str] | None = None) -> Watch:
        """For a process that is no Lambda: lines go to `stream`, else to standard output, and
        metrics go nowhere.
        """
        return cls(Logger(service=name, stream=stream), Nowhere())

    def publish(self, numbers: Mapping[str, float]) -> None:
        """Add each number to its metric, also 0."""
        for name, value in numbers.items():
            unit = next(
                (unit for end, unit in UNITS.items() if name.endswith(end)), MetricUnit.Count
            )
            self.metrics.add_metric(name=name, unit=unit, value=value)

    def around(self, handler: Handler, correlation_id_path: str | None = None) -> Handler:
        """The handler, with Lambda's context in its logs. When it ends, its metrics are written;
        its exception is logged, and raised on."""

        @self.logger.inject_lambda_context(correlation_id_path=correlation_id_path)
        def watched(event: dict[str, Any], context: LambdaContext) -> Any:
            try:
                return handler(event, context)
            except LedgerError as error:
                self.logger.error(FAILED, extra={"error": type(error).__name__})
                self.logger.debug("why", extra={"why": str(error)})
                raise
            except Exception as error:  # a defect
                self.logger.exception(FAILED, extra={"error": type(error).__name__})
                raise
            finally:
                if self.metrics.metric_set:
                    self.metrics.flush_metrics()

        return watched


OF_RECEIPT = {
    "recorded": "DeltasRecorded",
    "replayed": "DeltasReplayed",
    "accepted": "DeltasAccepted",
}


def report(watch: Watch, *outcomes: Outcome) -> None:
    """Count outcomes of changes, and log those on which somebody may have to act."""
    report_each(watch, ((outcome, {}) for outcome in outcomes))


def report_each(watch: Watch, outcomes: Iterable[tuple[Outcome, dict[str, object]]]) -> None:
    """The same, each with further fields for its line. A metric is written once, with its sum."""
    counted: Counter[str] = Counter()
    for outcome, fields in outcomes:
        if isinstance(outcome, Receipt):
            counted[OF_RECEIPT[outcome.outcome]] += 1
            continue
        metric, level, text = next(line for kind, *line in OF_ERROR if isinstance(outcome, kind))
        if metric:
            counted[metric] += 1
        shown = fields | {"error": type(outcome).__name__}
        if outcome.delta is not None:
            shown |= {"lane": str(outcome.delta.lane), "token": outcome.delta.token}
        shown |= {
            name: getattr(outcome, name) for name in ("field", "state") if hasattr(outcome, name)
        }
        getattr(watch.logger, level)(text, extra=shown)
        watch.logger.debug("why", extra=shown | {"why": str(outcome)})
    watch.publish(counted)


MAY_PASS = errors.Throttled | errors.TransactionConflict | errors.Unavailable
OTHER_SETTINGS = errors.SettingsMismatch | errors.LimitMismatch

OF_ERROR: tuple[tuple[type[LedgerError] | UnionType, str, str, str], ...] = (
    (
        errors.InvalidInput,
        "DeltasRefused",
        "warning",
        "change refused: nothing was written; a retry is refused again",
    ),
    (
        errors.HoldEnded,
        "",
        "info",
        "hold ended before: nothing was written; its first end is final",
    ),
    (
        errors.TokenConflict,
        "DeltasConflicting",
        "warning",
        "token conflict: nothing was written; a change that is new needs a new key",
    ),
    (
        errors.LimitReached,
        "LimitReached",
        "info",
        "limit reached: nothing counts, and that is final for its key",
    ),
    (
        errors.PeriodOver,
        "DeltasRefused",
        "warning",
        "period over: what it refused was not written, and a retry is refused, too; an earlier "
        "attempt without an answer may count",
    ),
    (
        errors.OutOfReach,
        "OutOfReach",
        "warning",
        "out of reach: another Region did not answer; nothing was decided; retry",
    ),
    (
        errors.NoSuchHold,
        "",
        "warning",
        "no such hold: nothing was written; look at its id and its counter",
    ),
    (
        errors.TransferStuck,
        "",
        "error",
        "transfer stuck: the debit counts, and the source has no room to take it back; make room, "
        "then retry",
    ),
    (
        errors.OutcomeUnknown,
        "",
        "warning",
        "outcome unknown: it may or may not be written; a retry with the same key counts once",
    ),
    (
        errors.GaveUp,
        "",
        "warning",
        "gate changed too often, or too many holds had to end first: nothing was decided; retry",
    ),
    (MAY_PASS, "", "warning", "change not written: the table did not take it; retry"),
    (
        OTHER_SETTINGS,
        "",
        "error",
        "change not written: this function's settings are not those of the table; correct them",
    ),
    (LedgerError, "", "error", "change not written: look at the table and at this function's role"),
)
"""The error of a change -> its metric, and the level and the text of its line.

The first that fits decides.
"""
