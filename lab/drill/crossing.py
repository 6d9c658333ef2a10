"""Whether an alarm is in alarm: CloudWatch's rule, on datapoints that somebody measured. Pure.

Rule 1: A period without a sample is missing data, not 0. By the alarm's own word it counts as a breach or as none.
Rule 2: An alarm is in alarm when so many of its last periods breach as it says.
Rule 3: Metric math is evaluated as it stands in the template; of it IF, FILL, AND and OR are known. An expression that
needs what is missing is missing.
Rule 4: `missing` and `ignore` are refused: what they mean hangs on the state before, and no alarm here has them.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from lab.drill.watched import Alarm, Measure, Metric

Sample = tuple[float, float]
"""When, in seconds, and what."""

STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "Average": lambda values: sum(values) / len(values),
}
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
MISSING = {"breaching": True, "notBreaching": False}


def crosses(alarm: Alarm, datapoints: Sequence[float | None]) -> bool:
    """Of its last periods; None is missing. Raises ValueError for other than as many as it has periods."""
    if len(datapoints) != alarm.periods:
        raise ValueError(f"{alarm.name} has {alarm.periods} periods, not {len(datapoints)}")
    if alarm.missing not in MISSING:
        raise ValueError(f"{alarm.name}: missing data is {alarm.missing}")
    compare = COMPARISONS[alarm.comparison]
    breaches = [MISSING[alarm.missing] if each is None else compare(each, alarm.threshold) for each in datapoints]
    return sum(breaches) >= alarm.to_alarm


def datapoints(alarm: Alarm, samples: Mapping[Metric, Iterable[Sample]], at_s: float) -> list[float | None]:
    """What the alarm compares, in each of its last periods that end at `at_s`, the oldest first."""
    of = {each.id: _by_period(each, list(samples.get(each.metric, ())), at_s, alarm.periods) for each in alarm.measures}
    if not alarm.expression:
        (only,) = of.values()
        return only
    return [_math(alarm.expression, {name: each[i] for name, each in of.items()}) for i in range(alarm.periods)]


def _by_period(measure: Measure, samples: Sequence[Sample], at_s: float, periods: int) -> list[float | None]:
    found: list[float | None] = []
    for number in reversed(range(periods)):
        until = at_s - number * measure.period_s
        values = [value for when, value in samples if until - measure.period_s < when <= until]
        found.append(STATISTICS[measure.statistic](values) if values else None)
    return found


def _math(expression: str, values: Mapping[str, float | None]) -> float | None:
    spelled = re.sub(r"\b(AND|OR)\b", lambda found: found[1].lower(), expression)
    parsed = ast.fix_missing_locations(_If().visit(ast.parse(spelled, mode="eval")))
    try:
        # Of our own template.
        known = {"__builtins__": {}, "FILL": _fill, "SUM": _sum, "METRICS": values.values}
        return float(eval(compile(parsed, expression, "eval"), known, dict(values)))
    except (TypeError, ZeroDivisionError):  # None has no order and no sum
        return None


class _If(ast.NodeTransformer):
    """IF(asked, one, other) looks at one of the two alone."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return ast.IfExp(*node.args) if isinstance(node.func, ast.Name) and node.func.id == "IF" else node


def _sum(values: Iterable[float | None]) -> float | None:
    """As CloudWatch has it: what has no data is gone over, and nothing is the sum of nothing."""
    found = [each for each in values if each is not None]
    return sum(found) if found else None


def _fill(value: float | None, other: float) -> float:
    return other if value is None else value
