"""Every alarm reaches somebody, is explained, and watches a metric that exists."""

import json
import re
from typing import Any

import pytest

from tests.infra.template import ROOT, framework, of_type

OPERATIONS = ROOT / "docs" / "operations.md"
COSTS = ROOT / "docs" / "costs.md"
OBSERVE = ROOT / "service" / "observe.py"
ROW = re.compile(r"^\| [^|*]+ \| *([\d.,]*) *\| *([\d.,]*) *\| *([\d.,]*) *\|$", re.MULTILINE)
OF_THRESHOLDS = {"CrossingsTold", "CrossingsUntold"}
OF_LIMITS = {"LimitReached", "OutOfReach", "HoldsOverdue", "GateBytes"}
STATES = {
    *("ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage", "IteratorAge"),
    *("CanaryLagMs", "SweepLagMs", "StoppedTries", "WatermarkAheadMs", "TailDeltas", "GateBytes", "HoldsOverdue"),
}
"""Metrics that say how much there is, not how much came."""

OF_AWS = {
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
    "AWS/Lambda": {"Errors", "IteratorAge", "Invocations", "Throttles"},
    "AWS/DynamoDB": {"ReadThrottleEvents", "WriteThrottleEvents"},
    "AWS/ApiGateway": {"5xx"},
}


@pytest.fixture
def alarms(service: dict[str, Any]) -> dict[str, Any]:
    """Alarms by what follows the service and stage in their names."""
    found = of_type(service, "AWS::CloudWatch::Alarm").values()
    return {alarm["AlarmName"]["Fn::Sub"].removeprefix("${Name}-${Stage}-"): alarm for alarm in found}


def metrics_of(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """Namespace, name, dimensions and period of each metric that an alarm watches; a query of its own has none."""
    if "Metrics" not in alarm:
        return [alarm]
    stats = [each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each]
    return [{**stat["Metric"], "Period": stat["Period"]} for stat in stats]


def test_every_alarm_has_a_heading_with_its_meaning_first_look_and_remedy(alarms: dict[str, Any]) -> None:
    """In docs/operations.md, which has no others."""
    parts = re.split(r"^(#+ .*)$", OPERATIONS.read_text(), flags=re.MULTILINE)
    sections = list(zip(parts[1::2], parts[2::2], strict=True))
    headings = " ".join(heading for heading, _ in sections if heading.startswith("### "))
    assert set(re.findall(r"`([a-z0-9-]+)`", headings)) == set(alarms)
    for name in alarms:
        (text,) = (text for heading, text in sections if f"`{name}`" in heading)
        for label in ("**Meaning.**", "**First look.**", "**Remedy.**"):
            assert label in text, f"`{name}` in docs/operations.md lacks {label}"


def test_every_alarm_tells_the_topic_and_watches_a_metric_as_it_is_spelled(alarms: dict[str, Any]) -> None:
    for name, alarm in alarms.items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmsTopic"}], name
        assert alarm.get("ActionsEnabled", True) is True, name
        for metric in metrics_of(alarm):
            if metric["Namespace"] == "Ledger":
                given = {each["Name"]: each["Value"] for each in metric["Dimensions"]}
                assert given == {"service": {"Ref": "Name"}, "stage": {"Ref": "Stage"}}, name
            else:
                assert metric["MetricName"] in OF_AWS[metric["Namespace"]], name


def test_an_alarm_by_math_watches_what_it_names_and_is_left_out_where_there_is_none(service: dict[str, Any]) -> None:
    by_math = {
        name: resource
        for name, resource in service["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in resource["Properties"]
    }
    assert {name: each["Condition"] for name, each in by_math.items()} == {
        "RingsUnansweredAlarm": "MathAlarms",
        "LanesForgottenAlarm": "MathAlarms",
        "ReplicationLatencyAlarm": "WatchesReplication",
    }
    for name, resource in by_math.items():
        *watched, answer = resource["Properties"]["Metrics"]
        assert not any(each["ReturnData"] for each in watched), name
        text = answer["Expression"] if isinstance(answer["Expression"], str) else answer["Expression"]["Fn::Sub"]
        if watched:
            assert set(re.findall(r"\b[a-z]+\b", text)) == {each["Id"] for each in watched}, name
            assert len({each["MetricStat"]["Period"] for each in watched}) == 1, name
        else:
            assert re.fullmatch(r"SELECT .* WHERE TableName = '\$\{TableName\}'", text), name


def test_what_a_canary_keeps_from_silence_alarms_when_it_is_silent(
    service: dict[str, Any], alarms: dict[str, Any]
) -> None:
    """Else a disabled event source, or schedule, is no breach for ever."""
    silent = {name for name, alarm in alarms.items() if alarm["TreatMissingData"] != "notBreaching"}
    assert silent == {"ring-silent", "canary-silent", "sweep-silent", "rings-unanswered"}
    called = {alarms[name]["Dimensions"][0]["Value"]["Ref"] for name in silent - {"rings-unanswered"}}
    assert called == {"RingLambdaFunction", "CanaryLambdaFunction", "SweepLambdaFunction"}
    for name in silent - {"rings-unanswered"}:
        alarm = alarms[name]
        assert (alarm["MetricName"], alarm["ComparisonOperator"]) == ("Invocations", "LessThanThreshold")
        assert (alarm["Threshold"], alarm["TreatMissingData"]) == (1, "breaching")


def test_an_event_source_that_is_disabled_shows(service: dict[str, Any], alarms: dict[str, Any]) -> None:
    """By the age of what waits in a queue; a stream has no such metric, so by a function that nobody calls."""
    ages = {
        alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
        for alarm in alarms.values()
        if alarm.get("MetricName") == "ApproximateAgeOfOldestMessage"
    }
    for mapping in of_type(service, "AWS::Lambda::EventSourceMapping").values():
        if "Ref" in mapping["EventSourceArn"]:
            assert alarms["ring-silent"]["Dimensions"][0]["Value"] == mapping["FunctionName"]
        else:
            assert mapping["EventSourceArn"]["Fn::GetAtt"][0] in ages
    canary = alarms["canary-late"]
    assert (canary["MetricName"], canary["Threshold"]) == ("CanaryLagMs", {"Ref": "CanaryLagThresholdMs"})


def test_every_last_stop_has_an_alarm_on_its_first_message(service: dict[str, Any], alarms: dict[str, Any]) -> None:
    watched = {
        alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
        for alarm in alarms.values()
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible" and alarm["Threshold"] == 0
    }
    queues = of_type(service, "AWS::SQS::Queue").values()
    redrives = (queue["RedrivePolicy"] for queue in queues if "RedrivePolicy" in queue)
    assert watched == {each["deadLetterTargetArn"]["Fn::GetAtt"][0] for each in redrives} | {"FailedQueue"}


@pytest.mark.parametrize("metric", ["Errors", "Throttles"])
def test_every_function_has_an_alarm_on_its_errors_and_throttles(
    service: dict[str, Any], alarms: dict[str, Any], metric: str
) -> None:
    watching = [alarm for alarm in alarms.values() if alarm.get("MetricName") == metric]
    watched = [alarm["Dimensions"][0]["Value"]["Ref"] for alarm in watching]
    assert sorted(watched) == sorted(of_type(service, "AWS::Lambda::Function"))
    for alarm in watching:
        assert (alarm["Threshold"], alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"]) == (0, 3, 2)
        seldom = alarm["Dimensions"][0]["Value"]["Ref"] == "SweepLambdaFunction"  # a run in a quarter of an hour
        assert alarm["Period"] == (900 if seldom else 300)


def test_a_state_is_watched_by_its_maximum_and_what_happens_by_its_sum(alarms: dict[str, Any]) -> None:
    for name, alarm in alarms.items():
        if "Metrics" not in alarm:
            assert alarm["Statistic"] == ("Maximum" if alarm["MetricName"] in STATES else "Sum"), name
        for each in alarm.get("Metrics", []):
            assert each.get("MetricStat", {"Stat": "Sum"})["Stat"] == "Sum", name


def test_what_must_never_happen_wakes_a_person_the_first_time(alarms: dict[str, Any]) -> None:
    never = ("lanes-damaged", "lanes-unread", "verify-difference", "work-invalid", "canary-wrong")
    for name in never:
        alarm = alarms[name]
        assert (alarm["Threshold"], alarm["EvaluationPeriods"], alarm["Statistic"]) == (0, 1, "Sum")


def test_one_caller_with_one_key_for_two_changes_wakes_nobody(service: dict[str, Any], alarms: dict[str, Any]) -> None:
    alarm = alarms["deltas-conflicting"]
    assert (alarm["Statistic"], alarm["Period"], alarm["Threshold"]) == ("Sum", 900, {"Ref": "ConflictsThreshold"})
    assert framework()["params"]["default"]["conflictsThreshold"] > 1


def test_what_backs_off_for_a_quarter_of_an_hour_is_still_seen_to_fail(alarms: dict[str, Any]) -> None:
    """It is told once in 900 s and a little, so one period in many has nothing of it."""
    for name in ("lanes-failing", "changes-failing", "lanes-gave-up", "crossings-untold"):
        alarm = alarms[name]
        assert alarm["Period"] >= 900
        assert alarm["DatapointsToAlarm"] == alarm["EvaluationPeriods"] - 1


def test_every_metric_of_ours_is_one_that_the_service_puts_out(service: dict[str, Any], alarms: dict[str, Any]) -> None:
    known = set(re.findall(r'"([A-Z][A-Za-z]+)"', OBSERVE.read_text()))
    watched = [metric for alarm in alarms.values() for metric in metrics_of(alarm)]
    used = {metric["MetricName"] for metric in watched if metric.get("Namespace") == "Ledger"}
    (dashboard,) = of_type(service, "AWS::CloudWatch::Dashboard").values()
    for widget in json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]:
        namespace = ""
        for metric in widget["properties"]["metrics"]:
            if isinstance(metric[0], dict):
                continue  # a search
            namespace = metric[0] if metric[0] != "." else namespace
            used |= {metric[1]} if namespace == "Ledger" else set()
    assert used <= known, f"not in service/observe.py: {sorted(used - known)}"


def test_the_page_on_costs_has_the_price_of_what_two_regions_have(service: dict[str, Any]) -> None:
    every = [each for each in service["Resources"].values() if each["Type"] == "AWS::CloudWatch::Alarm"]
    kinds = [each["Properties"] for each in every if each.get("Condition") != "TellsThresholds"]
    watched = sum(max(1, len(metrics_of(each))) for each in kinds)
    known = set(re.findall(r'^[A-Z_]+ = "([A-Z][A-Za-z]+)"', OBSERVE.read_text(), re.MULTILINE)) - {"Ledger"}
    metrics, limited = len(known - OF_LIMITS - OF_THRESHOLDS), len(known & OF_LIMITS)
    text = " ".join(COSTS.read_text().split())
    assert f"{len(kinds)} alarms on {watched} metrics, a dashboard and {metrics} metrics of our own;" in text
    assert f"{limited} metrics more" in text
    more = len(known & OF_THRESHOLDS), len(every) - len(kinds)
    assert f"where thresholds are told, {more[0]} metrics and {more[1]} alarm more" in text
    priced = re.search(r"metrics ([\d.]+), alarms ([\d.]+), a dashboard ([\d.]+)", text)
    assert priced is not None
    a_metric, an_alarm, a_dashboard = map(float, priced.groups())
    dollars = 2 * (watched * an_alarm + metrics * a_metric + a_dashboard)
    assert f"| alarms, metrics, dashboards | {dollars:.2f} | {dollars:.2f} | {dollars:.0f} |" in text


def test_the_bill_on_the_page_on_costs_adds_up() -> None:
    text = COSTS.read_text().partition("### The bill")[2].partition("**all**")
    parts = [[float(cell.replace(",", "") or 0) for cell in row] for row in ROW.findall(text[0])]
    assert len(parts) == 8
    (sums,) = re.findall(r" \| \*\*([\d,]+)\*\*" * 3, text[2])
    assert [round(sum(column)) for column in zip(*parts, strict=True)] == [int(each.replace(",", "")) for each in sums]
