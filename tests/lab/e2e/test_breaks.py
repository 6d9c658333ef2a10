"""When an alarm is in alarm: CloudWatch's rule, on the templates' alarms and on samples made by
hand.
"""

import json
from dataclasses import replace

import pytest

from infra.deployment import deployment
from lab.e2e.alarms import Alarm, Measure, Metric, alarms_of
from lab.e2e.breaks import BREAKS, QUIET
from lab.e2e.course import FUNCTIONS, PARAMS, QUEUES, REGION
from lab.e2e.deployed import NAME, STAGE, TABLE
from lab.e2e.metrics import is_excused, is_measured, oldest_s, samples_of
from tests.infra.template import framework, source

RUNG, LOOKED = Metric("Ledger", "LanesRung"), Metric("Ledger", "LanesLooked")
SUM = Measure("m", RUNG, "Sum", 10)
ONE = Alarm("one", (SUM,), {"m": "m"}, "GreaterThanThreshold", 5, 3, 2, "notBreaching")
SILENT = replace(
    ONE, comparison="LessThanThreshold", threshold=1, periods=1, to_alarm=1, missing="breaching"
)
SHARE = Alarm(
    "share",
    (replace(SUM, id="rung"), replace(SUM, id="looked", metric=LOOKED)),
    {"share": "IF(rung > 0, 100 * looked / rung, 0)"},
    *("GreaterThanThreshold", 0, 1, 1, "breaching"),
)
PARTS = {f"{TABLE}-{name}" for name in (*QUEUES, *FUNCTIONS, "api")}


def deployed() -> list[Alarm]:
    """The templates' alarms, every other parameter 1."""
    parameters = {name: {"Default": "1"} for name in source()["Parameters"]}
    parameters |= {"Name": {"Default": NAME}, "Stage": {"Default": STAGE}}
    functions = {
        f"{key[0].upper()}{key[1:]}LambdaFunction": {
            "Type": "",
            "Properties": {
                "FunctionName": each["name"].replace("${param:name}-${sls:stage}", TABLE)
            },
        }
        for key, each in framework()["functions"].items()
    }
    return alarms_of({"Parameters": parameters, "Resources": source()["Resources"] | functions}, 25)


def test_an_alarm_counts_breaches_and_missing_data_as_it_says() -> None:
    for alarm, points, crosses in (
        (ONE, [6.0, 6, 6], True),
        (ONE, [6, 0, 6], True),  # two of three
        (ONE, [0, 0, 6], False),
        (ONE, [5, 5, 5], False),  # greater, not equal
        (ONE, [None, None, 6], False),
        (SILENT, [None], True),
        (SILENT, [0], True),
        (SILENT, [1], False),
    ):
        assert alarm.crosses(points) is crosses, (alarm, points)
    with pytest.raises(KeyError):
        replace(ONE, missing="ignore").crosses([1, 2, 3])
    samples = {RUNG: [(70.0, 9.0), (75.0, 1.0), (91.0, 3.0), (100.0, 4.0), (101.0, 50.0)]}
    # a period holds its end, and not its beginning
    assert ONE.points(samples, 100.0) == [1, None, 7]


def test_metric_math_evaluates_one_arm_of_if() -> None:
    for rung, looked, point in (
        (50.0, 1.0, 2.0),
        (50.0, None, None),
        (0.0, None, 0.0),  # the other arm needs what is missing
        (0.0, 1.0, 0.0),  # and would divide by 0
        (None, 1.0, None),
    ):
        given = {RUNG: rung, LOOKED: looked}.items()
        points = SHARE.points(
            {metric: [(95.0, it)] for metric, it in given if it is not None}, 100.0
        )
        assert points == [point], (rung, looked)
        assert SHARE.crosses(points) is (point != 0)  # missing data breaches
    both = replace(SHARE, expressions={"all": "SUM(METRICS())", "most": "MAX([all / 2, looked])"})
    assert [both.points(samples, 100.0) for samples in ({RUNG: [(95.0, 8.0)]}, {})] == [
        [4.0],
        [None],
    ]


def test_what_is_measured_is_what_sqs_and_the_lines_say() -> None:
    """As SQS has it: a change that fails at each receive leaves the age of the queue after three
    of them.
    """
    delayed = {"VisibleAt": 110, "FirstReceiveTimestamp": 0, "ReceiveCount": 0}
    due, received = (
        delayed | {"VisibleAt": 90},
        delayed | {"FirstReceiveTimestamp": 70, "ReceiveCount": 2},
    )
    poison = delayed | {"FirstReceiveTimestamp": 10, "ReceiveCount": 3}
    for messages, age_s in (
        ([delayed], 0),
        ([due, delayed], 10),
        ([poison, due, received], 30),
        ([poison], None),
    ):
        assert oldest_s(messages, 100.0) == age_s
    metrics = [{"Namespace": "Ledger", "Metrics": [{"Name": "LanesRung"}, {"Name": "LanesLooked"}]}]
    embedded = {"_aws": {"CloudWatchMetrics": metrics}, "LanesRung": [1.0, 2.0], "LanesLooked": 3.0}
    logged = '{"level":"ERROR","exception":"Traceback (most recent call last):"}'
    lines = [
        "START RequestId: 1",
        "Traceback (most recent call last):",
        "ValueError: no",
        logged,
        json.dumps(embedded),
    ]
    invoked, failed = Metric("AWS/Lambda", "Invocations", "f"), Metric("AWS/Lambda", "Errors", "f")
    samples = [sample for line in lines for sample in samples_of("f", line)]
    assert samples == [(invoked, 1), (failed, 1), (RUNG, 1.0), (RUNG, 2.0), (LOOKED, 3.0)]


def test_every_alarm_is_judged_or_known_not_to_be_measured() -> None:
    alarms = deployed()
    assert [alarm for alarm in alarms if is_measured(alarm, PARTS) == is_excused(alarm)] == []
    for broken in BREAKS:
        crossing = [alarm for alarm in alarms if alarm.watches(broken.seen_in)]
        assert crossing, broken.name
        assert all(is_measured(alarm, PARTS) for alarm in crossing)
        assert not [alarm for alarm in crossing if alarm.watches(QUIET.difference(broken.seen_in))]
    (waiting,) = [alarm for alarm in alarms if alarm.watches(BREAKS[2].seen_in)]
    assert (waiting.threshold, waiting.lasts_s) == (300 / 25, 5 * 60 / 25)
    assert deployment(NAME, STAGE, REGION, " ".join(map("=".join, PARAMS.items()))).regions == (
        REGION,
    )
