"""The metrics of alarms, as they can be measured on an engine whose CloudWatch has few of them.

Rule 1: Those of the namespace Ledger are the functions' own lines in CloudWatch Logs, in the
embedded metric format, with their own time.
Rule 2: Invocations and errors of a function are its lines, too: the engine's CloudWatch leaves out
what an event source or a schedule calls. An invocation begins with START; it failed when its
runtime wrote a traceback.
Rule 3: A queue's messages are seen by the engine's own page of them, which receives none: visible
ones, and the age of the oldest, hidden ones included, but those that SQS leaves out because they
were received three times. An age is counted from when the message was due: delays (a ring, a second
look, what failed) stay as long as they are, and only alarms are faster. So a change that fails is
in the age here for three of those waits, and for far less than an alarm
needs on AWS: no break is judged by the age of what is received.
Rule 4: What cannot be measured here stands in NOT_HERE. An alarm on anything else that is not
measured is wrong: it would be green for ever.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import httpx

from lab.e2e.alarms import Alarm, Metric, Sample
from lab.e2e.deployed import TABLE

LEDGER, SQS, LAMBDA = "Ledger", "AWS/SQS", "AWS/Lambda"
VISIBLE, AGE = "ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"
HERE = {VISIBLE, AGE, "Invocations", "Errors"}
NOT_HERE = {"IteratorAge", "Throttles", "ReadThrottleEvents", "WriteThrottleEvents", "5xx"}
OUTCOMES = f"{TABLE}-outcomes"
"""A queue that is there where a deployment asks for it; that of the breaks does not."""

MESSAGES = "/_ministack/sqs/messages"
GROUP = "/aws/lambda/"
FAILURE = "Traceback (most recent call last):"
RECEIVES_OF_AGE = 3
"""A message that was received so often, or more, is in the age of the oldest no more."""

OVERLAP_S = 30
"""Lines are read again, because an invocation writes its own when it ends."""


def is_measured(alarm: Alarm, parts: Container[str]) -> bool:
    """Whether there can be samples of what it watches, NOT_HERE aside.

    `parts`: the queues and functions there are.
    """
    metrics = [measure.metric for measure in alarm.measures if measure.metric.name not in NOT_HERE]
    return bool(metrics) and all(
        metric.of == ""
        if metric.namespace == LEDGER
        else metric.of in parts and metric.name in HERE
        for metric in metrics
    )


def is_excused(alarm: Alarm) -> bool:
    """Whether nobody need judge it: what it watches is not measured or not deployed here, or is
    a query of its own.
    """
    return all(
        measure.metric.name in NOT_HERE or measure.metric.of == OUTCOMES
        for measure in alarm.measures
    )


class Meter:
    """Measures metrics up to now. logs: a boto3 client of the Region."""

    def __init__(self, endpoint_url: str, region: str, logs: Any) -> None:
        self._http = httpx.Client(base_url=endpoint_url, timeout=30, trust_env=False)
        self._region, self._logs = region, logs
        self._since_s = time.time()
        self._seen: set[str] = set()
        self.samples: dict[Metric, list[Sample]] = defaultdict(list)

    def measure(self) -> None:
        began = time.time()
        for queue, messages in self._messages().items():
            visible = sum(message["IsVisible"] for message in messages)
            self.samples[Metric(SQS, VISIBLE, queue)].append((began, visible))
            if (oldest := oldest_s(messages, began)) is not None:
                self.samples[Metric(SQS, AGE, queue)].append((began, oldest))
        for function, event in events_of(self._logs, self._since_s):
            # the engine gives no id
            known = f"{event['logStreamName']} {event['timestamp']} {event['message']}"
            if known not in self._seen:
                self._seen.add(known)
                for metric, value in samples_of(function, event["message"].strip()):
                    self.samples[metric].append((event["timestamp"] / 1_000, value))
        self._since_s = began - OVERLAP_S

    def _messages(self) -> dict[str, list[dict[str, Any]]]:
        """All that each queue holds, also what is hidden or delayed."""
        answer = self._http.get(MESSAGES, params={"region": self._region}).raise_for_status().json()
        regions = (of_account.get(self._region, {}) for of_account in answer["messages"].values())
        return {
            url.rpartition("/")[2]: messages
            for queues in regions
            for url, messages in queues.items()
        }


def events_of(logs: Any, since_s: float = 0) -> Iterator[tuple[str, Any]]:
    """What functions wrote since then: which one, and the event of CloudWatch Logs."""
    ours = logs.describe_log_groups(logGroupNamePrefix=f"{GROUP}{TABLE}-")["logGroups"]
    for name in (group["logGroupName"] for group in ours):
        pages = logs.get_paginator("filter_log_events").paginate(
            logGroupName=name, startTime=int(since_s * 1_000)
        )
        yield from ((name.removeprefix(GROUP), event) for page in pages for event in page["events"])


def accepted_in_packs(logs: Any) -> float:
    """How many changes a Region's functions say that they accepted in packs."""
    samples = (
        sample
        for function, event in events_of(logs)
        for sample in samples_of(function, event["message"])
    )
    return sum(value for metric, value in samples if metric == Metric(LEDGER, "DeltasAccepted"))


def oldest_s(messages: Iterable[Mapping[str, Any]], now_s: float) -> float | None:
    """The age of the oldest, as SQS publishes it: without those that were received RECEIVES_OF_AGE
    times.

    An age counts from the first receive or, of one that was never received, from the end of its
    delay.
    """
    counted = [message for message in messages if message["ReceiveCount"] < RECEIVES_OF_AGE]
    due_s = [
        each["FirstReceiveTimestamp"] if each["ReceiveCount"] else each["VisibleAt"]
        for each in counted
    ]
    return max(0.0, now_s - min(due_s)) if due_s else None


def samples_of(function: str, line: str) -> Iterator[tuple[Metric, float]]:
    """What a line of a function says of metrics."""
    if line.startswith("START "):
        yield Metric(LAMBDA, "Invocations", function), 1
    elif line.startswith(FAILURE):
        yield Metric(LAMBDA, "Errors", function), 1
    elif line.startswith("{") and '"CloudWatchMetrics"' in line:
        document = json.loads(line)
        for directive in document["_aws"]["CloudWatchMetrics"]:
            for metric in directive["Metrics"]:
                values = document[metric["Name"]]
                for value in values if isinstance(values, list) else [values]:
                    yield Metric(directive["Namespace"], metric["Name"]), value
