"""What each alarm of a deployed template watches, and whether it is in alarm: CloudWatch's rule.
Pure.

Rule 1: Nothing of an alarm stands here a second time: metric, statistic, period, threshold,
comparison, missing data and metric math are the template's, its parameters' defaults in their
place.
Rule 2: Nobody waits for quarters of an hour. All times of an alarm can be shorter by one factor:
its periods, and its threshold where that is a time. How many, and of how many periods, stays.
Rule 3: A period without a sample is missing data, not 0. By the alarm's own word it is a breach or
none; `missing` and `ignore` are refused, because what they mean depends on the state before.
Rule 4: An alarm is in alarm when so many of its last periods breach as it says.
Rule 5: Metric math is evaluated as it stands; of it IF, SUM, MAX and METRICS are known. An
expression
that needs what is missing is missing; SUM and MAX go over it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

TIMES = {
    "ApproximateAgeOfOldestMessage",
    "IteratorAge",
    "CanaryLagMs",
    "SweepLagMs",
    "WatermarkAheadMs",
}
OURS = {"service", "stage"}
IF = re.compile(r"\bIF\(([^,]*),([^,]*),([^,]*)\)")
REFERENCE = re.compile(r"\$\{([A-Za-z:0-9]+)\}")
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
}
STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {"Sum": sum, "Maximum": max}
MISSING = {"breaching": True, "notBreaching": False}

Template = Mapping[str, Any]
Sample = tuple[float, float]
"""When, in seconds, and how much."""


class Metric(NamedTuple):
    """`of`: the queue or function that it is of; empty for one of the whole service."""

    namespace: str
    name: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric by its statistic in periods; `id` is its name in an expression."""

    id: str
    metric: Metric
    statistic: str
    period_s: float

    def points(self, samples: Iterable[Sample], at_s: float, periods: int) -> list[float | None]:
        """Of the last periods that end at `at_s`, the oldest first.

        A period holds its end, not its beginning.
        """
        found: list[float | None] = []
        for number in reversed(range(periods)):
            until = at_s - number * self.period_s
            values = [value for when, value in samples if until - self.period_s < when <= until]
            found.append(STATISTICS[self.statistic](values) if values else None)
        return found


@dataclass(frozen=True, slots=True)
class Alarm:
    """`expressions`: by id, in their order; the last one is compared.

    Without measures it is a query of its own.
    """

    name: str
    measures: tuple[Measure, ...]
    expressions: Mapping[str, str]
    comparison: str
    threshold: float
    periods: int
    to_alarm: int
    missing: str

    @property
    def lasts_s(self) -> float:
        """All its periods."""
        return self.periods * max((measure.period_s for measure in self.measures), default=0)

    def __str__(self) -> str:
        metrics = ", ".join(
            f"{measure.statistic} of {measure.metric.name}" for measure in self.measures
        )
        return (
            f"{self.name} ({metrics}; {self.comparison} {self.threshold:g}; missing data: "
            f"{self.missing})"
        )

    def watches(self, metrics: Container[Metric]) -> bool:
        return any(measure.metric in metrics for measure in self.measures)

    def points(self, samples: Mapping[Metric, Iterable[Sample]], at_s: float) -> list[float | None]:
        """What it compares, in each of its last periods that end at `at_s`; None is missing."""
        found = {
            each.id: each.points(list(samples.get(each.metric, ())), at_s, self.periods)
            for each in self.measures
        }
        return [
            self._point({name: points[i] for name, points in found.items()})
            for i in range(self.periods)
        ]

    def _point(self, metrics: Mapping[str, float | None]) -> float | None:
        values = dict(metrics)
        for name, expression in self.expressions.items():
            values[name] = _math(expression, values, list(metrics.values()))
        return values[name]

    def crosses(self, points: Sequence[float | None]) -> bool:
        """Raises KeyError where the alarm says of missing data that it is neither a breach nor
        none.
        """
        missing, compare = MISSING[self.missing], COMPARISONS[self.comparison]
        return (
            sum(missing if point is None else compare(point, self.threshold) for point in points)
            >= self.to_alarm
        )


def alarms_of(template: Template, faster: float = 1) -> list[Alarm]:
    """Those under a condition, too, in a world whose time passes so many times as fast."""
    resources = template["Resources"].values()
    found = [each["Properties"] for each in resources if each["Type"] == "AWS::CloudWatch::Alarm"]
    return [_alarm(_resolved(template, properties), faster) for properties in found]


def _alarm(given: Mapping[str, Any], faster: float) -> Alarm:
    parts = given.get("Metrics")
    if parts is None:
        parts = [
            {
                "Id": "m",
                "MetricStat": {
                    "Metric": given,
                    "Stat": given["Statistic"],
                    "Period": given["Period"],
                },
            }
        ]
    stats = {part["Id"]: part["MetricStat"] for part in parts if "MetricStat" in part}
    expressions = {part["Id"]: part["Expression"] for part in parts if "Expression" in part} or {
        "m": "m"
    }
    is_time = given.get("MetricName") in TIMES
    return Alarm(
        name=given["AlarmName"],
        measures=tuple(
            Measure(name, _metric(stat["Metric"]), stat["Stat"], float(stat["Period"]) / faster)
            for name, stat in stats.items()
        ),
        expressions=expressions,
        comparison=given["ComparisonOperator"],
        threshold=float(given["Threshold"]) / (faster if is_time else 1),
        periods=int(given["EvaluationPeriods"]),
        to_alarm=int(given.get("DatapointsToAlarm", given["EvaluationPeriods"])),
        missing=given.get("TreatMissingData", "missing"),
    )


def _metric(given: Mapping[str, Any]) -> Metric:
    names = [
        dimension["Value"] for dimension in given["Dimensions"] if dimension["Name"] not in OURS
    ]
    return Metric(given["Namespace"], given["MetricName"], "/".join(names))


def _resolved(template: Template, value: Any) -> Any:
    """A value with the defaults of parameters and the names of resources in the place of
    references.
    """
    match value:
        case {"Ref": name} | {"Fn::GetAtt": [name, _]}:
            if name in template["Parameters"]:
                return template["Parameters"][name]["Default"]
            named = template["Resources"].get(name, {}).get("Properties", {})
            return _resolved(template, named.get("QueueName") or named.get("FunctionName") or name)
        case {"Fn::Sub": text}:
            return REFERENCE.sub(lambda found: str(_resolved(template, {"Ref": found[1]})), text)
        case dict():
            return {key: _resolved(template, part) for key, part in value.items()}
        case list():
            return [_resolved(template, part) for part in value]
    return value


def _math(
    expression: str, values: Mapping[str, float | None], metrics: Sequence[float | None]
) -> float | None:
    def over(
        function: Callable[[list[float]], float],
    ) -> Callable[[Iterable[float | None]], float | None]:
        return lambda given: (
            function(there) if (there := [value for value in given if value is not None]) else None
        )

    spelled = IF.sub(r"(\2 if \1 else \3)", expression)  # looks at one of the two alone
    known: dict[str, Any] = {
        "SUM": over(sum),
        "MAX": over(max),
        "METRICS": lambda: metrics,
        "__builtins__": {},
    }
    try:
        return float(eval(spelled, known, dict(values)))  # of our own template
    except (TypeError, ZeroDivisionError):  # None has no order and no sum
        return None
