"""Every alarm reaches somebody, is explained on a page of docs/operations/, and watches metrics
that exist.
"""

import json
import re
from typing import Any

import pytest

from tests.infra.template import ROOT, of_type, target
from tests.service.support import METRICS

DOCS = ROOT / "docs"
OPERATIONS = {
    page.relative_to(ROOT).as_posix(): page.read_text() for page in DOCS.glob("operations/*.md")
}
COSTS = "".join((DOCS / name).read_text() for name in ("costs.md", "bills.txt"))
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


@pytest.fixture
def alarms(service: dict[str, Any]) -> dict[str, Any]:
    """By what follows the service and stage in its name."""
    found = of_type(service, "AWS::CloudWatch::Alarm").values()
    return {
        str(alarm["AlarmName"]["Fn::Sub"]).removeprefix("${Name}-${Stage}-"): alarm
        for alarm in found
    }


def metrics_of(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """Namespace, name, dimensions and statistic of each metric that an alarm watches."""
    stats = [each["MetricStat"] for each in alarm.get("Metrics", ()) if "MetricStat" in each]
    return (
        [{**stat["Metric"], "Statistic": stat["Stat"]} for stat in stats]
        if "Metrics" in alarm
        else [alarm]
    )


def test_an_alarm_names_its_page_and_mails_its_begin_and_end(
    alarms: dict[str, Any],
) -> None:
    explained = {
        name: page
        for page, text in OPERATIONS.items()
        for name in re.findall(r"^## `([a-z0-9-]+)`\n\n.", text, re.M)
    }
    named = {
        name: alarm["AlarmDescription"].partition(" (docs/")[2] for name, alarm in alarms.items()
    }
    assert {name: f"docs/{page.removesuffix(')')}" for name, page in named.items()} == explained
    listed = re.findall(
        r"\[([a-z0-9-]+)\]\((operations/.+?)#\1\)", (DOCS / "operations.md").read_text()
    )
    assert sorted((name, f"docs/{page}") for name, page in listed) == sorted(explained.items())
    for name, alarm in alarms.items():
        assert alarm["ComparisonOperator"] == "GreaterThanThreshold", name
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmsTopic"}], name
        assert {each["Statistic"] for each in metrics_of(alarm)} <= {"Maximum", "Sum"}, name
        compared = [each.get("ReturnData", True) for each in alarm.get("Metrics", (alarm,))]
        assert compared == [*[False] * (len(compared) - 1), True], name
    silence = {name for name, alarm in alarms.items() if alarm["TreatMissingData"] == "breaching"}
    assert silence == {"stream-behind", "canary-late", "sweep-behind"}


def test_every_metric_is_one_that_aws_or_the_service_publishes(
    service: dict[str, Any], alarms: dict[str, Any]
) -> None:
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


def test_every_queue_function_and_last_stop_is_watched(
    service: dict[str, Any], alarms: dict[str, Any]
) -> None:
    def of(metric: str, *names: str) -> set[str]:
        watched = [
            each
            for name in names
            for each in metrics_of(alarms[name])
            if each["MetricName"] == metric
        ]
        return {target(each["Dimensions"][0]["Value"]) for each in watched}

    sources = [
        each["EventSourceArn"]
        for each in of_type(service, "AWS::Lambda::EventSourceMapping").values()
    ]
    queues = {target(each) for each in sources if "Fn::GetAtt" in each}
    assert of("ApproximateAgeOfOldestMessage", "changes-waiting", "work-waiting") == queues
    redrives = [each.get("RedrivePolicy") for each in of_type(service, "AWS::SQS::Queue").values()]
    last_stops = {target(each["deadLetterTargetArn"]) for each in redrives if each} | {
        "FailedQueue"
    }
    assert of("ApproximateNumberOfMessagesVisible", "changes-dlq", "work-dlq") == last_stops
    assert of("ApproximateAgeOfOldestMessage", "outcomes-waiting") == {"OutcomesQueue"}
    assert of("IteratorAge", "stream-behind") == {"RingLambdaFunction"}
    # a sweep that fails or is refused is in the failed queue
    for metric in ("Errors", "Throttles"):
        watched = of(metric, "functions-failing", "api-failing") | {"SweepLambdaFunction"}
        assert watched == set(of_type(service, "AWS::Lambda::Function"))


def test_the_page_on_costs_has_the_price_of_two_regions(
    service: dict[str, Any], alarms: dict[str, Any]
) -> None:
    assert service["Resources"]["OutcomesWaitingAlarm"]["Condition"] == "HasOutcomes"
    alarms.pop("outcomes-waiting")  # by default there is no such queue
    watched = sum(max(1, len(metrics_of(each))) for each in alarms.values())
    limited = PUBLISHED & OF_LIMITS
    metrics = len(PUBLISHED - limited - OF_THRESHOLDS)
    page = " ".join(COSTS.split())
    assert (
        f"{len(alarms)} alarms on {watched} metrics, a dashboard and {metrics} metrics of our own;"
        in page
    )
    assert f"{len(limited)} metrics more" in page
    assert "with the queue of outcomes, an alarm more" in page
    (priced,) = re.findall(r"metrics ([\d.]+), alarms ([\d.]+), a dashboard ([\d.]+)", page)
    a_metric, an_alarm, a_dashboard = map(float, priced)
    dollars = 2 * (watched * an_alarm + metrics * a_metric + a_dashboard)
    assert "| alarms, metrics, dashboards" + f" | {dollars:.2f}" * 3 + " |" in page
