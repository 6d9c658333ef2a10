"""Every alarm reaches somebody, is explained, and watches metrics that exist, as this table says."""

import json
import re
from typing import Any

import pytest

from tests.infra.template import ROOT, of_type, target
from tests.service.support import METRICS

OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
COSTS = " ".join((ROOT / "docs" / "costs.md").read_text().split())
BILL = (ROOT / "docs" / "costs.md").read_text().partition("### The bill")[2]
SOURCE = "".join(path.read_text() for path in sorted((ROOT / "service").rglob("*.py")))
PUBLISHED = {name for name in METRICS if f'"{name}"' in SOURCE}
OF_THRESHOLDS = {"CrossingsTold", "CrossingsUntold"}
OF_LIMITS = {"LimitReached", "OutOfReach", "HoldsOverdue", "GateBytes"}
OF_AWS = {
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
    "AWS/Lambda": {"Errors", "IteratorAge", "Throttles"},
    "AWS/DynamoDB": {"ReadThrottleEvents", "WriteThrottleEvents"},
    "AWS/ApiGateway": {"5xx"},
}
TABLE = """
changes-dlq         ApproximateNumberOfMessagesVisible^                  60 1/1 0
work-dlq            ApproximateNumberOfMessagesVisible^ x2               60 1/1 0
changes-waiting     ApproximateAgeOfOldestMessage^                       60 5/5 300
work-waiting        ApproximateAgeOfOldestMessage^                       60 5/5 1200
changes-failing     ChangesFailed                                       900 2/3 0
stream-behind       IteratorAge^                                        300 3/3 300000 breaching
canary-late         CanaryLagMs^                                        900 1/1 600000 breaching
sweep-behind        SweepLagMs^                                        3600 1/1 21600000 breaching
value-wrong         CanaryWrong LanesDamaged LanesUnread VerifyDifferences 300 1/1 0
lanes-failing       LanesFailed CrossingsUntold                         900 2/3 0
lanes-gave-up       LanesGaveUp                                         900 5/6 0
lanes-forgotten     LanesForgotten LanesSwept                         21600 1/1 1
work-stopped        StoppedTries^                                      3600 1/1 12
tail-long           TailDeltas^                                         300 3/3 100000
strays              LateDeltas WatermarkAheadMs^                        900 1/1 1
deltas-conflicting  DeltasConflicting                                   900 1/1 10
cleans-postponed    CleansPostponed                                     600 6/6 0
out-of-reach        OutOfReach                                          300 2/3 0
gate-grows          GateBytes^                                         3600 1/1 65536
holds-overdue       HoldsOverdue^                                      3600 1/1 1000
table-throttled     ReadThrottleEvents WriteThrottleEvents               60 3/5 0
replication-latency ReplicationLatency                                  300 2/2 60000
functions-failing   Errors Throttles x4                                 300 2/3 0
api-failing         5xx Errors Throttles                                300 2/3 0
"""
"""What each watches: a sum, or ^ the most that there was; in periods of so many seconds, of how many how many, above
which value. The others' silence is no breach. What backs off for a quarter of an hour is seen in periods of one."""

EXPRESSIONS = {
    "strays": ["late / 100", "ahead / 1000", "MAX([many, far])"],
    "lanes-forgotten": ["IF(swept > 0, 100 * forgotten / swept, 0)"],
    "replication-latency": [
        {
            "Fn::Sub": 'SELECT MAX(ReplicationLatency) FROM SCHEMA("AWS/DynamoDB", ReceivingRegion, TableName) '
            "WHERE TableName = '${TableName}'"
        }
    ],
}


def name_of(alarm: dict[str, Any]) -> str:
    """What follows the service and stage in its name."""
    return str(alarm["AlarmName"]["Fn::Sub"]).removeprefix("${Name}-${Stage}-")


@pytest.fixture
def alarms(service: dict[str, Any]) -> dict[str, Any]:
    return {name_of(alarm): alarm for alarm in of_type(service, "AWS::CloudWatch::Alarm").values()}


def metrics_of(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """Namespace, name, dimensions, statistic and period of each metric that an alarm watches."""
    if "Metrics" not in alarm:
        return [alarm]
    stats = [each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each]
    return [{**stat["Metric"], "Period": stat["Period"], "Statistic": stat["Stat"]} for stat in stats]


def row_of(name: str, alarm: dict[str, Any]) -> list[str]:
    watched = metrics_of(alarm) or [{"MetricName": "ReplicationLatency", "Period": alarm["Metrics"][0]["Period"]}]
    (period,) = {each["Period"] for each in watched}
    names = [each["MetricName"] + "^" * (each.get("Statistic") == "Maximum") for each in watched]
    times = len(names) // len(set(names))
    points = f"{alarm.get('DatapointsToAlarm', alarm['EvaluationPeriods'])}/{alarm['EvaluationPeriods']}"
    breaching = ["breaching"] if alarm["TreatMissingData"] != "notBreaching" else []
    several = [f"x{times}"] if times > 1 else []
    return [name, *dict.fromkeys(names), *several, str(period), points, str(alarm["Threshold"]), *breaching]


def test_every_alarm_is_as_the_table_says_explained_on_a_page_and_mails_that_it_began_and_ended(
    alarms: dict[str, Any],
) -> None:
    rows = [line.split() for line in TABLE.strip().splitlines()]
    assert sorted(row_of(*each) for each in alarms.items()) == sorted(rows)
    assert sorted(re.findall(r"^\| `([a-z0-9-]+)` \| .+ \| .+ \|$", OPERATIONS, re.M)) == sorted(alarms)
    for name, alarm in alarms.items():
        assert alarm["ComparisonOperator"] == "GreaterThanThreshold", name
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmsTopic"}], name
        assert {each["Statistic"] for each in metrics_of(alarm)} <= {"Maximum", "Sum"}, name


def test_every_metric_is_one_that_aws_or_the_service_publishes(service: dict[str, Any], alarms: dict[str, Any]) -> None:
    used = {"Ledger": set[str]()}
    for name, alarm in alarms.items():
        for each in metrics_of(alarm):
            used.setdefault(each["Namespace"], set()).add(each["MetricName"])
            if each["Namespace"] == "Ledger":
                given = {dimension["Name"]: dimension["Value"] for dimension in each["Dimensions"]}
                assert given == {"service": {"Ref": "Name"}, "stage": {"Ref": "Stage"}}, name
    (dashboard,) = of_type(service, "AWS::CloudWatch::Dashboard").values()
    for widget in json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]:
        namespace = ""
        for metric in widget["properties"]["metrics"]:
            namespace = metric[0] if metric[0] != "." else namespace  # a dict is a search
            if namespace == "Ledger":
                used["Ledger"].add(metric[1])
    assert used.pop("Ledger") <= PUBLISHED
    assert used == OF_AWS


def test_an_alarm_by_math_sums_what_it_names_and_is_left_out_where_there_is_none(service: dict[str, Any]) -> None:
    for logical, alarm in of_type(service, "AWS::CloudWatch::Alarm").items():
        if "Metrics" not in alarm:
            continue
        name, condition = name_of(alarm), service["Resources"][logical]["Condition"]
        *watched, answer = alarm["Metrics"]
        assert not any(each["ReturnData"] for each in watched), name
        expressions = [each["Expression"] for each in (*watched, answer) if "Expression" in each]
        assert condition == ("WatchesReplication" if name == "replication-latency" else "MathAlarms"), name
        assert expressions == EXPRESSIONS.get(name, ["SUM(METRICS())"]), name


def test_every_queue_every_function_and_every_last_stop_is_watched(
    service: dict[str, Any], alarms: dict[str, Any]
) -> None:
    def of(metric: str, *names: str) -> set[str]:
        watched = [each for name in names for each in metrics_of(alarms[name]) if each["MetricName"] == metric]
        return {target(each["Dimensions"][0]["Value"]) for each in watched}

    sources = [each["EventSourceArn"] for each in of_type(service, "AWS::Lambda::EventSourceMapping").values()]
    queues = {target(each) for each in sources if "Fn::GetAtt" in each}
    assert of("ApproximateAgeOfOldestMessage", "changes-waiting", "work-waiting") == queues
    redrives = [each.get("RedrivePolicy") for each in of_type(service, "AWS::SQS::Queue").values()]
    last_stops = {target(each["deadLetterTargetArn"]) for each in redrives if each} | {"FailedQueue"}
    assert of("ApproximateNumberOfMessagesVisible", "changes-dlq", "work-dlq") == last_stops
    assert of("IteratorAge", "stream-behind") == {"RingLambdaFunction"}
    for metric in ("Errors", "Throttles"):  # a sweep that fails or is refused is in the failed queue
        watched = of(metric, "functions-failing", "api-failing") | {"SweepLambdaFunction"}
        assert watched == set(of_type(service, "AWS::Lambda::Function"))


def test_the_page_on_costs_has_the_price_of_what_two_regions_have(alarms: dict[str, Any]) -> None:
    watched = sum(max(1, len(metrics_of(each))) for each in alarms.values())
    limited, told = PUBLISHED & OF_LIMITS, PUBLISHED & OF_THRESHOLDS
    metrics = len(PUBLISHED - limited - told)
    assert f"{len(alarms)} alarms on {watched} metrics, a dashboard and {metrics} metrics of our own;" in COSTS
    assert f"{len(limited)} metrics more" in COSTS
    (priced,) = re.findall(r"metrics ([\d.]+), alarms ([\d.]+), a dashboard ([\d.]+)", COSTS)
    a_metric, an_alarm, a_dashboard = map(float, priced)
    dollars = 2 * (watched * an_alarm + metrics * a_metric + a_dashboard)
    assert f"| alarms, metrics, dashboards | {dollars:.2f} | {dollars:.2f} | {dollars:.2f} |" in COSTS
    rows = re.findall(r"\| [^|*]+ \| *([\d.,]*) *\| *([\d.,]*) *\| *([\d.,]*) *\|", BILL.partition("**all**")[0])
    columns = zip(*([float(cell.replace(",", "") or 0) for cell in row] for row in rows), strict=True)
    (sums,) = re.findall(r"\*\*all\*\*" + r" \| \*\*([\d,]+)\*\*" * 3, BILL)
    assert (len(rows), [f"{round(sum(each)):,}" for each in columns]) == (9, list(sums))
