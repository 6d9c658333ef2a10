"""What each alarm watches, read from the template that was deployed.

Rule 1: Nothing of an alarm stands here a second time: metric, statistic, period, threshold, comparison, missing data
and metric math are the template's, its parameters' defaults in their place.
Rule 2: A drill has no quarters of an hour. `faster` makes all times of an alarm shorter by one factor: its periods, and
its threshold where that is a time. How many, and of how many periods, stays.
Rule 3: An alarm by a query of its own (SELECT), or by expressions of expressions, has no metrics here, and nobody
judges it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

ALARM = "AWS::CloudWatch::Alarm"
TIMES = {"ApproximateAgeOfOldestMessage", "IteratorAge", "CanaryLagMs", "SweepLagMs", "WatermarkAheadMs"}
NAMED_BY = {"AWS::SQS::Queue": "QueueName", "AWS::Lambda::Function": "FunctionName"}
OURS = {"service", "stage"}
_REFERENCE = re.compile(r"\$\{([A-Za-z:0-9]+)\}")

Template = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """`of`: the queue or function that it is of; empty for one of the whole service."""

    namespace: str
    name: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric by its statistic in periods; `id` is its name in an expression."""

    metric: Metric
    statistic: str
    period_s: float
    id: str = "m"


@dataclass(frozen=True, slots=True)
class Alarm:
    """`expression` is empty where the only measure is what is compared."""

    name: str
    measures: tuple[Measure, ...]
    expression: str
    comparison: str
    threshold: float
    periods: int
    to_alarm: int
    missing: str

    @property
    def period_s(self) -> float:
        return max((each.period_s for each in self.measures), default=0.0)

    def faster(self, factor: float) -> Alarm:
        """The same in a world whose time passes so many times as fast."""
        measures = tuple(replace(each, period_s=each.period_s / factor) for each in self.measures)
        is_time = not self.expression and any(each.metric.name in TIMES for each in measures)
        return replace(self, measures=measures, threshold=self.threshold / factor if is_time else self.threshold)


def alarms_of(template: Template) -> dict[str, Alarm]:
    """By what follows service and stage in their names. Those under a condition, too."""
    opening = f"{_text(template, {'Ref': 'Name'})}-{_text(template, {'Ref': 'Stage'})}-"
    found = [
        _alarm(template, each["Properties"], opening)
        for each in template["Resources"].values()
        if each["Type"] == ALARM
    ]
    return {each.name: each for each in found}


def _alarm(template: Template, said: Mapping[str, Any], opening: str) -> Alarm:
    if "Metrics" in said:
        stats = [each | each["MetricStat"] for each in said["Metrics"] if "MetricStat" in each]
        measures = tuple(_measure(template, each["Metric"], each["Stat"], each["Period"], each["Id"]) for each in stats)
        *others, expression = (each["Expression"] for each in said["Metrics"] if "Expression" in each)
        measures = () if others else measures
    else:
        measures = (_measure(template, said, said["Statistic"], said["Period"], "m"),)
        expression = ""
    return Alarm(
        name=_text(template, said["AlarmName"]).removeprefix(opening),
        measures=measures,
        expression=_text(template, expression) if measures else "",
        comparison=said["ComparisonOperator"],
        threshold=float(_text(template, said["Threshold"])),
        periods=int(said["EvaluationPeriods"]),
        to_alarm=int(said.get("DatapointsToAlarm", said["EvaluationPeriods"])),
        missing=said.get("TreatMissingData", "missing"),
    )


def _measure(template: Template, said: Mapping[str, Any], statistic: str, period_s: Any, name: str) -> Measure:
    of = [_text(template, each["Value"]) for each in said["Dimensions"] if each["Name"] not in OURS]
    return Measure(Metric(said["Namespace"], said["MetricName"], "/".join(of)), statistic, float(period_s), name)


def _text(template: Template, value: Any) -> str:
    """A value with the defaults of parameters and the names of resources in the place of references."""
    match value:
        case {"Ref": name}:
            return _named(template, name)
        case {"Fn::GetAtt": [name, _]}:
            return _named(template, name)
        case {"Fn::Sub": text}:
            return _REFERENCE.sub(lambda found: _named(template, found[1]), text)
    return str(value)


def _named(template: Template, name: str) -> str:
    if name in template["Parameters"]:
        return str(template["Parameters"][name]["Default"])
    resource = template["Resources"].get(name, {"Type": ""})
    named_by = NAMED_BY.get(resource["Type"])
    return _text(template, resource["Properties"].get(named_by, name)) if named_by else name
