"""What an alarm watches is the template's, and faster where it is a time."""

from lab.drill.breaks import BREAKS
from lab.drill.measured import measurable
from lab.drill.watched import Measure, Metric, alarms_of
from tests.infra.template import source

TEMPLATE = {
    "Parameters": {"Name": {"Default": "ledger"}, "Stage": {"Default": "e2e"}, "Bound": {"Default": "1200"}},
    "Resources": {
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::Sub": "${Name}-${Stage}-work"}}},
        "Ring": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "ledger-e2e-ring"}},
        "Waiting": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {
                "AlarmName": {"Fn::Sub": "${Name}-${Stage}-work-waiting"},
                "ComparisonOperator": "GreaterThanThreshold",
                "TreatMissingData": "notBreaching",
                "Namespace": "AWS/SQS",
                "MetricName": "ApproximateAgeOfOldestMessage",
                "Dimensions": [{"Name": "QueueName", "Value": {"Fn::GetAtt": ["Queue", "QueueName"]}}],
                "Statistic": "Maximum",
                "Period": 60,
                "EvaluationPeriods": 5,
                "DatapointsToAlarm": 3,
                "Threshold": {"Ref": "Bound"},
            },
        },
        "Silent": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {
                "AlarmName": {"Fn::Sub": "${Name}-${Stage}-ring-silent"},
                "ComparisonOperator": "LessThanThreshold",
                "TreatMissingData": "breaching",
                "Namespace": "AWS/Lambda",
                "MetricName": "Invocations",
                "Dimensions": [{"Name": "FunctionName", "Value": {"Ref": "Ring"}}],
                "Statistic": "Sum",
                "Period": 900,
                "EvaluationPeriods": 1,
                "Threshold": 1,
            },
        },
    },
}
OLDEST = Metric("AWS/SQS", "ApproximateAgeOfOldestMessage", "ledger-e2e-work")


def test_references_stand_for_what_was_deployed() -> None:
    waiting = alarms_of(TEMPLATE)["work-waiting"]
    assert waiting.measures == (Measure(OLDEST, "Maximum", 60),)
    assert (waiting.threshold, waiting.periods, waiting.to_alarm) == (1200, 5, 3)
    silent = alarms_of(TEMPLATE)["ring-silent"]
    assert silent.measures == (Measure(Metric("AWS/Lambda", "Invocations", "ledger-e2e-ring"), "Sum", 900),)
    assert (silent.comparison, silent.missing, silent.to_alarm) == ("LessThanThreshold", "breaching", 1)


def test_faster_divides_periods_and_thresholds_that_are_times_and_no_count() -> None:
    waiting, silent = (alarms_of(TEMPLATE)[name].faster(30) for name in ("work-waiting", "ring-silent"))
    assert (waiting.measures[0].period_s, waiting.threshold, waiting.periods, waiting.to_alarm) == (2, 40, 5, 3)
    assert (silent.measures[0].period_s, silent.threshold) == (30, 1)


def test_every_break_names_alarms_of_the_template_that_can_be_measured() -> None:
    template = source()
    named = {"Name": {"Default": "ledger"}, "Stage": {"Default": "dev"}}
    numbers = {key: {"Default": "1"} for key in template["Parameters"]}
    alarms = alarms_of({**template, "Parameters": numbers | named})
    for each in BREAKS:
        for name in (*each.alarms, *each.quiet):
            assert measurable(alarms[name])
        assert not set(each.alarms) & set(each.quiet)


def test_metric_math_and_its_metrics_are_the_templates() -> None:
    template = source()
    named = {"Name": {"Default": "ledger"}, "Stage": {"Default": "dev"}}
    numbers = {key: {"Default": "1"} for key in template["Parameters"]}
    alarms = alarms_of({**template, "Parameters": numbers | named})
    failing = alarms["lanes-failing"]
    assert {each.id: each.metric.name for each in failing.measures} == {
        "lanes": "LanesFailed",
        "crossings": "CrossingsUntold",
    }
    assert failing.expression == "SUM(METRICS())"
    assert not measurable(alarms["strays"])  # expressions of expressions
    assert not measurable(alarms["replication-latency"])  # a query of its own
