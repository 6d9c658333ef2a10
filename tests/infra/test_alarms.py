"""Every alarm reaches somebody, is explained, and watches a metric that exists."""

import json
import re
from typing import Any

import pytest

from tests.infra.template import ROOT, of_type

OPERATIONS = ROOT / "docs" / "operations.md"
COSTS = ROOT / "docs" / "costs.md"
OBSERVE = ROOT / "service" / "observe.py"
ROW = re.compile(r"^\| [^|*]+ \| *([\d.,]*) *\| *([\d.,]*) *\| *([\d.,]*) *\|$", re.MULTILINE)
OF_LIMITS = {"LimitReached", "OutOfReach", "HoldsOverdue", "GateBytes"}
OF_AWS = {
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
    "AWS/Lambda": {"Errors", "IteratorAge", "Invocations", "Throttles"},
    "AWS/DynamoDB": {"ReadThrottleEvents", "WriteThrottleEvents", "ReplicationLatency"},
    "AWS/ApiGateway": {"5xx"},
}


@pytest.fixture
def alarms(service: dict[str, Any]) -> dict[str, Any]:
    """Alarms by what follows the service and stage in their names."""
    found = of_type(service, "AWS::CloudWatch::Alarm").values()
    return {alarm["AlarmName"]["Fn::Sub"].removeprefix("${Name}-${Stage}-"): alarm for alarm in found}


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
        if alarm["Namespace"] == "Ledger":
            given = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
            assert given == {"service": {"Ref": "Name"}, "stage": {"Ref": "Stage"}}, name
        else:
            assert alarm["MetricName"] in OF_AWS[alarm["Namespace"]], name


def test_silence_is_an_alarm_for_the_schedule_alone(alarms: dict[str, Any]) -> None:
    silent = [name for name, alarm in alarms.items() if alarm["TreatMissingData"] != "notBreaching"]
    assert silent == ["plan-silent"]


def test_every_last_stop_has_an_alarm_on_its_first_message(service: dict[str, Any], alarms: dict[str, Any]) -> None:
    watched = {
        alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
        for alarm in alarms.values()
        if alarm["MetricName"] == "ApproximateNumberOfMessagesVisible" and alarm["Threshold"] == 0
    }
    queues = of_type(service, "AWS::SQS::Queue").values()
    redrives = (queue["RedrivePolicy"] for queue in queues if "RedrivePolicy" in queue)
    assert watched == {each["deadLetterTargetArn"]["Fn::GetAtt"][0] for each in redrives} | {"FailedQueue"}


def test_every_function_has_an_alarm_on_its_errors(service: dict[str, Any], alarms: dict[str, Any]) -> None:
    errors = [alarm for alarm in alarms.values() if alarm["MetricName"] == "Errors"]
    watched = {alarm["Dimensions"][0]["Value"]["Ref"] for alarm in errors}
    assert watched == set(of_type(service, "AWS::Lambda::Function"))


def test_what_must_never_happen_wakes_a_person_the_first_time(alarms: dict[str, Any]) -> None:
    for name in ("lanes-damaged", "lanes-unread", "verify-difference", "deltas-conflicting"):
        alarm = alarms[name]
        assert (alarm["Threshold"], alarm["EvaluationPeriods"], alarm["Statistic"]) == (0, 1, "Sum")


def test_every_metric_of_ours_is_one_that_the_service_puts_out(service: dict[str, Any], alarms: dict[str, Any]) -> None:
    known = set(re.findall(r'"([A-Z][A-Za-z]+)"', OBSERVE.read_text()))
    used = {alarm["MetricName"] for alarm in alarms.values() if alarm["Namespace"] == "Ledger"}
    (dashboard,) = of_type(service, "AWS::CloudWatch::Dashboard").values()
    for widget in json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]:
        namespace = ""
        for metric in widget["properties"]["metrics"]:
            namespace = metric[0] if metric[0] != "." else namespace
            used |= {metric[1]} if namespace == "Ledger" else set()
    assert used <= known, f"not in service/observe.py: {sorted(used - known)}"


def test_the_page_on_costs_has_the_price_of_what_two_regions_have(service: dict[str, Any]) -> None:
    kinds = [each for each in service["Resources"].values() if each["Type"] == "AWS::CloudWatch::Alarm"]
    there = [each for each in kinds if each.get("Condition") != "HasOtherRegion2"]
    known = set(re.findall(r'^[A-Z_]+ = "([A-Z][A-Za-z]+)"', OBSERVE.read_text(), re.MULTILINE)) - {"Ledger"}
    metrics, limited = len(known - OF_LIMITS), len(known & OF_LIMITS)
    text = " ".join(COSTS.read_text().split())
    assert f"{len(there)} alarms, a dashboard and {metrics} metrics of our own;" in text
    assert f"{limited} metrics more" in text
    assert len(kinds) - len(there) == 1, "what a third Region brings to each"
    priced = re.search(r"metrics ([\d.]+), alarms ([\d.]+), a dashboard ([\d.]+)", text)
    assert priced is not None
    a_metric, an_alarm, a_dashboard = map(float, priced.groups())
    dollars = 2 * (len(there) * an_alarm + metrics * a_metric + a_dashboard)
    assert f"| alarms, metrics, dashboards | {dollars:.2f} | {dollars:.2f} | {dollars:.0f} |" in text


def test_the_bill_on_the_page_on_costs_adds_up() -> None:
    text = COSTS.read_text().partition("### The bill")[2].partition("**all**")
    parts = [[float(cell.replace(",", "") or 0) for cell in row] for row in ROW.findall(text[0])]
    assert len(parts) == 8
    (sums,) = re.findall(r" \| \*\*([\d,]+)\*\*" * 3, text[2])
    assert [round(sum(column)) for column in zip(*parts, strict=True)] == [int(each.replace(",", "")) for each in sums]
