"""The metrics of the alarms, as they can be measured on an engine whose CloudWatch has few of them.

Rule 1: Those of the namespace Ledger are the functions' own lines in CloudWatch Logs, in the embedded metric format,
with their own time.
Rule 2: Invocations and errors of a function are its lines too: the engine's CloudWatch leaves out what an event source
or a schedule calls. An invocation begins with START; it failed when its runtime wrote a traceback.
Rule 3: A queue's messages are seen by the engine's own page of them, which receives none: visible ones, and the age of
the oldest, hidden ones included, but those that SQS leaves out because they were received three times. An age is
counted from when the message was due: delays (a ring, a second ask, what failed) stay as long as they are, and only
alarms are faster. So a change that fails is in the age here for three of those waits, and for far less than an alarm
needs on AWS: no break is judged by the age of what is received.
Rule 4: What cannot be measured here is named, and no alarm on it is judged.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import httpx

from lab.drill.crossing import Sample
from lab.drill.watched import Alarm, Metric

LEDGER, SQS, LAMBDA = "Ledger", "AWS/SQS", "AWS/Lambda"
VISIBLE, AGE = "ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"
OF_LAMBDA = {"Invocations", "Errors"}
MESSAGES = "/_ministack/sqs/messages"
GROUP = "/aws/lambda/"
FAILURE = "Traceback (most recent call last):"
RECEIVES_OF_AGE = 3
"""A message that was received so often, or more, is in the age of the oldest no more."""

OVERLAP_S = 30
"""Lines are asked for again, because an invocation's come when it ends."""


def measurable(alarm: Alarm) -> bool:
    return bool(alarm.measures) and all(_known(each.metric) for each in alarm.measures)


def _known(metric: Metric) -> bool:
    return metric.namespace in (LEDGER, SQS) or (metric.namespace == LAMBDA and metric.name in OF_LAMBDA)


class Meter:
    """Measures what is asked for until now. `logs`: a boto3 client of the Region."""

    def __init__(self, endpoint_url: str, region: str, logs: Any) -> None:
        self._http = httpx.Client(base_url=endpoint_url, timeout=30, trust_env=False)
        self._region, self._logs = region, logs
        self._since_s = time.time()
        self._seen: set[str] = set()
        self.samples: dict[Metric, list[Sample]] = defaultdict(list)

    def measure(self) -> None:
        self._measure_queues()
        began = time.time()
        for group in self._groups():
            for when_s, line in self._lines(group):
                for metric, value in samples_of(group.removeprefix(GROUP), line):
                    self.samples[metric].append((when_s, value))
        self._since_s = began - OVERLAP_S

    def messages(self, queue: str) -> list[dict[str, Any]]:
        """All that a queue holds, also what is hidden or delayed."""
        return self._messages().get(queue, [])

    def _measure_queues(self) -> None:
        now_s = time.time()
        for queue, messages in self._messages().items():
            visible = sum(each["IsVisible"] for each in messages)
            self.samples[Metric(SQS, VISIBLE, queue)].append((now_s, visible))
            if (oldest := oldest_s(messages, now_s)) is not None:
                self.samples[Metric(SQS, AGE, queue)].append((now_s, oldest))

    def _messages(self) -> dict[str, list[dict[str, Any]]]:
        answer = self._http.get(MESSAGES, params={"region": self._region}).raise_for_status().json()
        regions = (of_account.get(self._region, {}) for of_account in answer["messages"].values())
        return {url.rpartition("/")[2]: messages for queues in regions for url, messages in queues.items()}

    def _groups(self) -> list[str]:
        return [each["logGroupName"] for each in self._logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"]]

    def _lines(self, group: str) -> Iterator[tuple[float, str]]:
        pages = self._logs.get_paginator("filter_log_events")
        for page in pages.paginate(logGroupName=group, startTime=int(self._since_s * 1_000)):
            for event in page["events"]:
                known = f"{event['logStreamName']} {event['timestamp']} {event['message']}"  # the engine gives no id
                if known not in self._seen:
                    self._seen.add(known)
                    yield event["timestamp"] / 1_000, event["message"].strip()


def age_s(message: Mapping[str, Any], now_s: float) -> float:
    """Since it was first received or, of one that never was, since its delay was over."""
    due_s: float = message["FirstReceiveTimestamp"] if message["ReceiveCount"] else message["VisibleAt"]
    return max(0.0, now_s - due_s)


def oldest_s(messages: Iterable[Mapping[str, Any]], now_s: float) -> float | None:
    """The age of the oldest, as SQS publishes it: without those that were received RECEIVES_OF_AGE times."""
    counted = (each for each in messages if each["ReceiveCount"] < RECEIVES_OF_AGE)
    return max((age_s(each, now_s) for each in counted), default=None)


def samples_of(function: str, line: str) -> Iterator[tuple[Metric, float]]:
    """What a line of a function says of metrics."""
    if line.startswith("START "):
        yield Metric(LAMBDA, "Invocations", function), 1
    elif line.startswith(FAILURE):
        yield Metric(LAMBDA, "Errors", function), 1
    elif line.startswith("{") and '"CloudWatchMetrics"' in line:
        yield from _embedded(json.loads(line))


def _embedded(said: Mapping[str, Any]) -> Iterator[tuple[Metric, float]]:
    for directive in said["_aws"]["CloudWatchMetrics"]:
        for each in directive["Metrics"]:
            values = said[each["Name"]]
            for value in values if isinstance(values, list) else [values]:
                yield Metric(directive["Namespace"], each["Name"]), value
