"""What the functions' lines say of metrics."""

import json

from lab.drill.measured import age_s, oldest_s, samples_of
from lab.drill.watched import Metric

EMBEDDED = {
    "_aws": {
        "Timestamp": 1,
        "CloudWatchMetrics": [
            {"Namespace": "Ledger", "Dimensions": [["service", "stage"]], "Metrics": [{"Name": "A"}, {"Name": "B"}]}
        ],
    },
    "service": "ledger",
    "A": [1.0, 2.0],
    "B": 3.0,
}


def test_a_line_in_the_embedded_format_is_its_metrics_each_value_a_sample() -> None:
    a, b = Metric("Ledger", "A"), Metric("Ledger", "B")
    assert list(samples_of("f", json.dumps(EMBEDDED))) == [(a, 1.0), (a, 2.0), (b, 3.0)]


def test_an_invocation_begins_with_start_and_fails_once() -> None:
    lines = [
        "START RequestId: 1",
        "Traceback (most recent call last):",
        '  File "x"',
        "ValueError: no",
        "END",
        "REPORT",
    ]
    found = [sample for line in lines for sample in samples_of("f", line)]
    assert found == [(Metric("AWS/Lambda", "Invocations", "f"), 1), (Metric("AWS/Lambda", "Errors", "f"), 1)]


def test_a_line_of_the_log_is_no_failure_whatever_it_tells() -> None:
    assert list(samples_of("f", '{"level":"ERROR","exception":"Traceback (most recent call last):"}')) == []
    assert list(samples_of("f", "no JSON")) == []


def test_a_message_is_as_old_as_its_first_receive_or_the_end_of_its_delay() -> None:
    waiting = {"SentTimestamp": 50, "VisibleAt": 90, "FirstReceiveTimestamp": None, "ReceiveCount": 0}
    assert age_s(waiting, 100.0) == 10
    assert age_s(waiting, 80.0) == 0  # still delayed
    assert age_s(waiting | {"VisibleAt": 400, "FirstReceiveTimestamp": 60, "ReceiveCount": 3}, 100.0) == 40


def test_a_message_that_was_received_three_times_is_in_no_age_of_the_oldest() -> None:
    """As SQS has it: a change that fails at each receive leaves the age of the queue after 90 s."""
    poison = {"SentTimestamp": 10, "VisibleAt": 10, "FirstReceiveTimestamp": 10, "ReceiveCount": 3}
    young = {"SentTimestamp": 60, "VisibleAt": 60, "FirstReceiveTimestamp": 70, "ReceiveCount": 2}
    assert oldest_s([poison, young], 100.0) == 30
    assert oldest_s([poison], 100.0) is None
