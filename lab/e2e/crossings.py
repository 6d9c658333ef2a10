"""Thresholds, as who wants to be told of them sees them: a rule of EventBridge and a queue behind it, in each Region.

Rule 1: A counter passes its threshold and comes back, by changes in both Regions; each Region tells of one of its own.
Rule 2: Each crossing was delivered, under one id, in order; and nothing else was.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lab.e2e.deployed import CEILING, FULL, REGIONS, TABLE, TANK, Service
from lab.e2e.http import Client
from lab.e2e.queues import POLL_S, until_empty
from lab.e2e.seats import COUNTER as SOLD
from ledger.message import time_text

COUNTER = f"{TANK}e2e"
HERE, THERE = REGIONS
RULE = "threshold-crossed"
PATTERN = {"source": ["exact-counter"], "detail-type": ["Threshold crossed"], "detail": {"table": [TABLE]}}
TELL_MAX_S = 180

Told = dict[str, dict[str, Any]]
"""What was delivered, by id."""


class Crossings:
    """One run. wrong: what is, so far."""

    def __init__(
        self,
        services: Mapping[str, Service],
        events: Mapping[str, Any],
        sqs: Mapping[str, Any],
        say: Callable[[str], None],
    ) -> None:
        self._http = {region: Client(service) for region, service in services.items()}
        self._sqs, self._say = sqs, say
        self._told: dict[str, Told] = {region: {} for region in REGIONS}
        self._urls = {region: _queue(events[region], sqs[region]) for region in REGIONS}
        self.wrong: list[str] = []

    def cross(self) -> None:
        """Above the threshold and below it, each waited for in both Regions; and that the seats are sold out."""
        self._add("above", {HERE: FULL - 5, THERE: 10})
        self._wait(1)
        self._add("below", {THERE: -8})
        self._wait(2)
        self._wait(1, SOLD, (HERE,))

    def judge(self) -> None:
        """What was told of the tank, in both Regions, and of the seats that are sold out, in the first."""
        self._take()
        for region in REGIONS:
            expected = list(self._expected(region))
            found = [
                (each["id"], each["counter"], each["side"], each["number"], each["region"])
                for each in sorted(self._told[region].values(), key=lambda each: (each["counter"], each["number"]))
            ]
            if found != sorted(expected, key=lambda each: (each[1], each[3])):
                self.wrong.append(f"{region} told of {found}, not of {expected}")
        self._say(f"  crossings told: { {region: len(told) for region, told in self._told.items()} }")

    def _expected(self, region: str) -> Iterator[tuple[str, str, str, int, str]]:
        for number, side in enumerate(("in", "out"), 1):
            yield f"{TABLE}/{region}/{COUNTER}/{region}/{number}", COUNTER, side, number, region
        if region == HERE:
            yield f"{TABLE}/{region}/{SOLD}/sold-out/1", SOLD, "in", 1, region

    def _add(self, why: str, changes: Mapping[str, int]) -> None:
        for region, change in changes.items():
            at = time_text(datetime.now(UTC))
            answer = self._http[region].add(COUNTER, change, f"{why}/{region}", at, region)
            if not answer.is_success:
                self.wrong.append(f"{COUNTER}: {change} in {region} ended with {answer.status_code}")

    def _wait(self, number: int, counter: str = COUNTER, regions: Sequence[str] = REGIONS) -> None:
        """Until this crossing was delivered in these Regions."""

        def left() -> list[str]:
            self._take()
            return [
                region
                for region in regions
                if (counter, number) not in [(each["counter"], each["number"]) for each in self._told[region].values()]
            ]

        if found := until_empty(left, TELL_MAX_S, pause_s=POLL_S):
            self.wrong.append(f"{counter}: after {TELL_MAX_S} s crossing {number} is not told in {found}")

    def _take(self) -> None:
        """Every event that was delivered until now; an id says one thing, however often it comes."""
        for region, url in self._urls.items():
            sqs = self._sqs[region]
            while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
                for message in messages:
                    detail = json.loads(message["Body"])["detail"]
                    if self._told[region].setdefault(detail["id"], detail) != detail:
                        self.wrong.append(f"{region}: {detail['id']} says two things")
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                    if detail["counter"] == SOLD and detail["value"] != CEILING:
                        self.wrong.append(f"{region}: sold out at {detail['value']}")


def _queue(events: Any, sqs: Any) -> str:
    """A queue with what the default bus has of thresholds."""
    url: str = sqs.create_queue(QueueName=RULE)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name=RULE, EventPattern=json.dumps(PATTERN))
    events.put_targets(Rule=RULE, Targets=[{"Id": "queue", "Arn": arn}])
    return url
