"""CloudWatch's rule, on datapoints made by hand."""

from dataclasses import replace

import pytest

from lab.drill.crossing import crosses, datapoints
from lab.drill.watched import Alarm, Measure, Metric

RUNG, VISITED, LOOKED = (Metric("Ledger", name) for name in ("LanesRung", "LanesVisited", "LanesLooked"))
ONE = Alarm("one", (Measure(RUNG, "Sum", 10),), "", "GreaterThanThreshold", 5, 3, 2, "notBreaching")
UNANSWERED = replace(
    ONE,
    measures=(
        Measure(RUNG, "Sum", 10, "rung"),
        Measure(VISITED, "Sum", 10, "visited"),
        Measure(LOOKED, "Sum", 10, "looked"),
    ),
    expression="IF(rung > 0 AND FILL(visited, 0) + FILL(looked, 0) == 0, 1, 0)",
    threshold=0,
    periods=1,
    to_alarm=1,
    missing="breaching",
)


@pytest.mark.parametrize(
    ("points", "crossed"),
    [
        ([6, 6, 6], True),
        ([6, 0, 6], True),  # two of three
        ([0, 0, 6], False),
        ([5, 5, 5], False),  # greater, not equal
        ([None, None, 6], False),
        ([None, None, None], False),
    ],
)
def test_so_many_of_the_last_periods_must_breach(points: list[float | None], crossed: bool) -> None:
    assert crosses(ONE, points) is crossed


def test_missing_data_breaches_where_the_alarm_says_so() -> None:
    silent = replace(ONE, comparison="LessThanThreshold", threshold=1, periods=1, to_alarm=1, missing="breaching")
    assert crosses(silent, [None])
    assert crosses(silent, [0])
    assert not crosses(silent, [1])


@pytest.mark.parametrize(
    ("comparison", "at"), [("GreaterThanOrEqualToThreshold", 5), ("LessThanOrEqualToThreshold", 5)]
)
def test_a_comparison_may_hold_at_the_threshold(comparison: str, at: float) -> None:
    assert crosses(replace(ONE, comparison=comparison, periods=1, to_alarm=1), [at])


def test_what_nobody_here_means_is_refused() -> None:
    with pytest.raises(ValueError, match="3 periods, not 2"):
        crosses(ONE, [1, 2])
    with pytest.raises(ValueError, match="missing data is ignore"):
        crosses(replace(ONE, missing="ignore"), [1, 2, 3])


@pytest.mark.parametrize(("statistic", "newest"), [("Sum", 7), ("Maximum", 4), ("Minimum", 3), ("Average", 3.5)])
def test_a_datapoint_is_a_statistic_of_its_period_and_none_without_a_sample(statistic: str, newest: float) -> None:
    alarm = replace(ONE, measures=(Measure(RUNG, statistic, 10),))
    samples = {RUNG: [(70.0, 9.0), (75.0, 1.0), (91.0, 3.0), (100.0, 4.0), (101.0, 50.0)]}
    assert datapoints(alarm, samples, 100.0) == [1, None, newest]  # a period holds its end, not its beginning


@pytest.mark.parametrize(
    ("samples", "point"),
    [
        ({RUNG: 2.0}, 1.0),
        ({RUNG: 2.0, VISITED: 1.0}, 0.0),
        ({RUNG: 2.0, LOOKED: 1.0, VISITED: 0.0}, 0.0),
        ({RUNG: 0.0}, 0.0),
        ({VISITED: 1.0}, None),
        ({}, None),
    ],
)
def test_metric_math_is_evaluated_and_needs_what_is_not_filled(
    samples: dict[Metric, float], point: float | None
) -> None:
    found = datapoints(UNANSWERED, {metric: [(95.0, value)] for metric, value in samples.items()}, 100.0)
    assert found == [point]
    assert crosses(UNANSWERED, found) is (point != 0)


def test_a_sum_goes_over_what_has_no_data() -> None:
    alarm = replace(UNANSWERED, expression="SUM(METRICS())")
    assert datapoints(alarm, {RUNG: [(95.0, 2.0)], LOOKED: [(95.0, 1.0)]}, 100.0) == [3.0]
    assert datapoints(alarm, {}, 100.0) == [None]


@pytest.mark.parametrize(("swept", "point"), [(0.0, 0.0), (99.0, 0.0), (200.0, 25.0)])
def test_an_arm_of_if_that_is_not_taken_is_not_evaluated(swept: float, point: float) -> None:
    measures = (Measure(RUNG, "Sum", 10, "forgotten"), Measure(VISITED, "Sum", 10, "swept"))
    alarm = replace(UNANSWERED, measures=measures, expression="IF(swept >= 100, 100 * forgotten / swept, 0)")
    assert datapoints(alarm, {RUNG: [(95.0, 50.0)], VISITED: [(95.0, swept)]}, 100.0) == [point]
