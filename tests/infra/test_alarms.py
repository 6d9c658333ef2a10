"""Every alarm reaches somebody, is explained, and watches a metric that exists."""

import json
import re
from typing import Any

import pytest

from tests.infra.template import ROOT, of_type

OPERATIONS = ROOT / "docs" / "operations.md"
OBSERVE = ROOT / "service" / "observe.py"
OF_AWS = {
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
    "AWS/Lambda": {"Errors", "IteratorAge", "Invocations", "Throttles"},
    "AWS/DynamoDB": {"ReadThrottleEvents", "WriteThrottleEvents", "ReplicationLatency"},
    "AWS/ApiGateway": {"5xx"},
}


def _alarms(service: dict[str, Any]) -> dict[str, Any]:
    """Alarms by what follows the service and stage in their names."""
    alarms = of_type(service, "AWS::CloudWatch::Alarm").values()
    return {alarm["AlarmName"]["Fn::Sub"].removeprefix("${Name}-${Stage}-"): alarm for alarm in alarms}


def _sections() -> dict[str, str]:
    """The headings of docs/operations.md and the text under each, up to the next heading of any level."""
    parts = re.split(r"^(#+ .*)$", OPERATIONS.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_alarm_has_a_heading_with_its_meaning_first_look_and_remedy(service: dict[str, Any]) -> None:
    for name in _alarms(service):
        texts = [text for heading, text in _sections().items() if f"`{name}`" in heading]
        assert len(texts) == 1, f"docs/operations.md needs one heading with `{name}`"
        for label in ("**Meaning.**", "**First look.**", "**Remedy.**"):
            assert label in texts[0], f"`{name}` in docs/operations.md lacks {label}"


def test_every_heading_of_an_alarm_has_an_alarm(service: dict[str, Any]) -> None:
    documented = {
        name for heading in _sections() if heading.startswith("### ") for name in re.findall(r"`([a-z0-9-]+)`", heading)
    }
    assert documented == set(_alarms(service))


def test_every_alarm_tells_the_topic_when_it_starts_and_when_it_ends(service: dict[str, Any]) -> None:
    for name, alarm in _alarms(service).items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmsTopic"}], name
        assert alarm.get("ActionsEnabled", True) is True, name


def test_silence_is_an_alarm_for_the_schedule_alone(service: dict[str, Any]) -> None:
    silent = [name for name, alarm in _alarms(service).items() if alarm["TreatMissingData"] != "notBreaching"]
    assert silent == ["plan-silent"]


def test_every_last_stop_has_an_alarm_on_its_first_message(service: dict[str, Any]) -> None:
    watched = {
        alarm["Dimensions"][0]["Value"]["Fn::GetAtt"][0]
        for alarm in _alarms(service).values()
        if alarm["MetricName"] == "ApproximateNumberOfMessagesVisible" and alarm["Threshold"] == 0
    }
    letters = {
        queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
        for queue in of_type(service, "AWS::SQS::Queue").values()
        if "RedrivePolicy" in queue
    }
    assert watched == letters | {"FailedQueue"}


def test_every_function_has_an_alarm_on_its_errors(service: dict[str, Any]) -> None:
    watched = {
        alarm["Dimensions"][0]["Value"]["Ref"] for alarm in _alarms(service).values() if alarm["MetricName"] == "Errors"
    }
    assert watched == set(of_type(service, "AWS::Lambda::Function"))


def test_what_must_never_happen_wakes_a_person_the_first_time(service: dict[str, Any]) -> None:
    for name in ("lanes-damaged", "lanes-unread", "verify-difference", "deltas-conflicting"):
        alarm = _alarms(service)[name]
        assert (alarm["Threshold"], alarm["EvaluationPeriods"], alarm["Statistic"]) == (0, 1, "Sum")


def test_every_metric_of_aws_is_spelled_as_aws_spells_it(service: dict[str, Any]) -> None:
    for name, alarm in _alarms(service).items():
        if alarm["Namespace"] != "Ledger":
            assert alarm["MetricName"] in OF_AWS[alarm["Namespace"]], name


def test_every_metric_of_ours_is_one_that_the_service_puts_out(service: dict[str, Any]) -> None:
    if not OBSERVE.exists():
        pytest.skip("service/observe.py, which names the metrics, is not there")
    known = set(re.findall(r'"([A-Z][A-Za-z]+)"', OBSERVE.read_text()))
    used = {alarm["MetricName"] for alarm in _alarms(service).values() if alarm["Namespace"] == "Ledger"}
    (dashboard,) = of_type(service, "AWS::CloudWatch::Dashboard").values()
    for widget in json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]:
        namespace = ""
        for metric in widget["properties"]["metrics"]:
            namespace = metric[0] if metric[0] != "." else namespace
            used |= {metric[1]} if namespace == "Ledger" else set()
    assert used <= known, f"not in service/observe.py: {sorted(used - known)}"


def test_alarms_of_ours_have_the_dimensions_service_and_stage_alone(service: dict[str, Any]) -> None:
    for name, alarm in _alarms(service).items():
        if alarm["Namespace"] == "Ledger":
            given = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
            assert given == {"service": {"Ref": "Name"}, "stage": {"Ref": "Stage"}}, name
