"""Thresholds, as a subscriber sees them: a rule of EventBridge and a queue behind it, in each
Region.

Rule 1: A counter passes its threshold and comes back, by changes in both Regions; each Region
publishes one of its own.
Rule 2: Each crossing was delivered, under one id, in order; and nothing else was.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from lab.e2e.deployed import CEILING, FULL, REGIONS, TABLE, TANK
from lab.e2e.seats import COUNTER as SOLD
from lab.e2e.site import Site
from ledger.core.values import Change

COUNTER = f"{TANK}e2e"
HERE, THERE = REGIONS
RULE = "threshold-crossed"
PUBLISHED = f"{TABLE}-{RULE}"  # its rule and its queue
PATTERN = {
    "source": ["exact-counter"],
    "detail-type": ["Threshold crossed"],
    "detail": {"table": [TABLE]},
}
PUBLISH_MAX_S = 180


class Crossings:
    """One run."""

    def __init__(self, site: Site) -> None:
        self._site = site
        # details, by id
        self._delivered: dict[str, dict[str, dict[str, Any]]] = {region: {} for region in REGIONS}
        for region, events in site.aws("events").items():
            _queue(events, site.sqs[region])

    def cross(self) -> None:
        """Above the threshold and below it, each waited for in both Regions; and that the seats
        are sold out.
        """
        self._add("above", HERE, FULL - 5)
        self._add("above", THERE, 10)
        self._wait(1)
        self._add("below", THERE, -8)
        self._wait(2)
        self._wait(1, SOLD, (HERE,))

    def judge(self) -> None:
        """What was delivered of the tank, in both Regions, and of the seats that are sold out,
        in the first.
        """
        self._take()
        for region, details in self._delivered.items():
            expected = [
                (COUNTER, number, side, region, f"{TABLE}/{region}/{COUNTER}/{region}/{number}")
                for number, side in enumerate(("in", "out"), 1)
            ]
            if region == HERE:
                expected.append((SOLD, 1, "in", region, f"{TABLE}/{region}/{SOLD}/sold-out/1"))
            names = ("counter", "number", "side", "region", "id")
            found = [tuple(detail[name] for name in names) for detail in details.values()]
            self._site.must(f"{region} delivered", sorted(found), sorted(expected))
            self._site.say(f"  crossings delivered in {region}: {len(details)}")

    def _add(self, why: str, region: str, change: int) -> None:
        added = Change(COUNTER, change, f"{why}/{region}", datetime.now(UTC), region)
        answer = self._site.http[region].add(added)
        self._site.must(
            f"{COUNTER}: {change} in {region} ended with", answer.status in (200, 201), True
        )

    def _wait(self, number: int, counter: str = COUNTER, regions: Sequence[str] = REGIONS) -> None:
        """Until this crossing was delivered in these Regions."""

        def left() -> list[str]:
            self._take()
            there = {
                region: {(detail["counter"], detail["number"]) for detail in details.values()}
                for region, details in self._delivered.items()
            }
            return [region for region in regions if (counter, number) not in there[region]]

        self._site.wait(f"crossing {number} of {counter} is not delivered", left, PUBLISH_MAX_S)

    def _take(self) -> None:
        """Every event that was delivered until now; an id says one thing, however often it
        comes.
        """
        for region in REGIONS:
            for body in self._site.drain(region, RULE):
                detail = json.loads(body)["detail"]
                known = self._delivered[region].setdefault(detail["id"], detail)
                self._site.must(f"{region}: {detail['id']} says", detail, known)
                if detail["counter"] == SOLD:
                    self._site.must(f"{region}: sold out at", detail["value"], CEILING)


def _queue(events: Any, sqs: Any) -> None:
    """A queue with what the default bus has of thresholds."""
    url = sqs.create_queue(QueueName=PUBLISHED)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    who = {"Service": "events.amazonaws.com"}
    may = {"Effect": "Allow", "Principal": who, "Action": "sqs:SendMessage", "Resource": arn}
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps({"Statement": [may]})})
    events.put_rule(Name=PUBLISHED, EventPattern=json.dumps(PATTERN))
    events.put_targets(Rule=PUBLISHED, Targets=[{"Id": "queue", "Arn": arn}])
