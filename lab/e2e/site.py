"""Where the service was deployed: its queues as a user of SQS reaches them, its API, and boto3's
clients, by Region.

Rule 1: What SQS does not take ends the run: nobody could say then what was sent.
Rule 2: An engine and AWS have the same methods. AWS counts a queue's messages only about, and right
a minute after they came, so there a queue is empty when it was for CALM_S; and a receive asks all
of a queue's servers (long polling).
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set, Sized
from typing import Any, TypeVar

import boto3
from botocore.config import Config

from lab.e2e.deployed import REGIONS, TABLE
from lab.e2e.http import Client
from ledger.client.queue import ChangeQueue
from ledger.core.errors import LedgerError
from ledger.core.values import Change

MESSAGES_OF_BATCH = 10
CHANGES_AT_ONCE = 40  # of which a producer of many makes one message
POLL_S, CALM_S, OUTCOMES_MAX_S = 2.0, 60, 120
WAITING = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")

Say = Callable[[str], None]
Left = TypeVar("Left", bound=Sized)


class Site:
    """`say`: shows a line of progress. wrong: what is, so far."""

    def __init__(self, say: Say, regions: Sequence[str] = REGIONS) -> None:
        self.endpoint_url = os.environ.get("AWS_ENDPOINT_URL", "")
        self.say, self.regions = say, regions
        self._empty_since: dict[str, float] = {}
        self._outcomes: dict[tuple[str, str], set[str]] = {}  # by counter and idempotency key
        self.http, self.sqs = {}, self.aws("sqs")
        self.wrong: list[str] = []
        for region, stacks in self.aws("cloudformation").items():
            found = stacks.describe_stacks(StackName=TABLE)["Stacks"][0]["Outputs"]
            (url,) = (
                output["OutputValue"] for output in found if output["OutputKey"] == "HttpApiUrl"
            )
            if self.endpoint_url:  # the engine serves an API under its own address
                api = url.split("//")[1].split(".")[0]
                url = f"{self.endpoint_url}/_aws/execute-api/{api}/$default"
            self.http[region] = Client(url.rstrip("/"), region)

    def aws(self, name: Any) -> Mapping[str, Any]:
        """A boto3 client of each Region, as a user's own would be."""
        config = Config(retries={"mode": "standard", "total_max_attempts": 5}, read_timeout=60)
        return {
            region: boto3.client(name, region_name=region, config=config) for region in self.regions
        }

    def variables(self) -> dict[str, dict[str, str]]:
        """Each Region's settings, as the API has them: for the library and ledgerctl."""
        return {
            region: client.get_function_configuration(FunctionName=f"{TABLE}-api")["Environment"][
                "Variables"
            ]
            | {"AWS_REGION": region}
            for region, client in self.aws("lambda").items()
        }

    def must(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self.wrong.append(f"{what}: {found}, not {expected}")

    def wait(
        self, what: str, left: Callable[[], Sized], most_s: float, pause_s: float = POLL_S
    ) -> None:
        """Until nothing is left; what is left then is wrong."""
        if found := until_empty(left, most_s, pause_s):
            self.wrong.append(f"after {most_s} s {what}: {found}")

    def url(self, region: str, name: str) -> str:
        """Of a queue: changes, changes-dlq, work, work-dlq, failed or outcomes."""
        found: str = self.sqs[region].get_queue_url(QueueName=f"{TABLE}-{name}")["QueueUrl"]
        return found

    def send(self, region: str, messages: Sequence[str], name: str = "changes") -> int:
        """Queue messages as they are. Returns how many. Raises RuntimeError."""
        for start in range(0, len(messages), MESSAGES_OF_BATCH):
            batch = enumerate(messages[start : start + MESSAGES_OF_BATCH])
            entries = [{"Id": str(i), "MessageBody": body} for i, body in batch]
            answer = self.sqs[region].send_message_batch(
                QueueUrl=self.url(region, name), Entries=entries
            )
            if answer.get("Failed"):
                raise RuntimeError(f"SQS refused {answer['Failed']}")
        return len(messages)

    def send_many(self, region: str, changes: Sequence[Change]) -> int:
        """Queue changes in messages of many, by the library's helper.

        Returns how many messages. Raises LedgerError.
        """
        queue, sent = ChangeQueue(self.url(region, "changes"), client=self.sqs[region]), set()
        for start in range(0, len(changes), CHANGES_AT_ONCE):
            for message_id in queue.send_many(changes[start : start + CHANGES_AT_ONCE]):
                if isinstance(message_id, LedgerError):
                    raise message_id
                sent.add(message_id)
        return len(sent)

    def waiting(self, queue: str) -> dict[str, int]:
        """The Regions whose queue of this name is not empty."""
        waiting = {}
        for region, sqs in self.sqs.items():
            answer = sqs.get_queue_attributes(
                QueueUrl=self.url(region, queue), AttributeNames=list(WAITING)
            )
            waiting[region] = sum(int(answer["Attributes"].get(name, 0)) for name in WAITING)
        now = time.monotonic()
        since = self._empty_since.pop(queue, now)
        if any(waiting.values()) or self.endpoint_url:
            return {region: count for region, count in waiting.items() if count}
        self._empty_since[queue] = since
        return {} if now - since >= CALM_S else waiting

    def drain(self, region: str, name: str) -> Counter[str]:
        """Take every message that can be had. Returns the bodies."""
        held: Counter[str] = Counter()
        sqs, url = self.sqs[region], self.url(region, name)
        request = {
            "QueueUrl": url,
            "MaxNumberOfMessages": 10,
            "WaitTimeSeconds": 0 if self.endpoint_url else 1,
        }
        while messages := sqs.receive_message(**request).get("Messages", []):
            for message in messages:
                held[message["Body"]] += 1
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return held

    def outcomes(self, *counters: str) -> dict[str, set[str]]:
        """Of the counters whose names begin so: by idempotency key, every outcome that was
        queued until now.
        """
        for region in self.regions:
            for text in self.drain(region, "outcomes"):
                message = json.loads(text)
                named = message["counter"], message["idempotency_key"]
                self._outcomes.setdefault(named, set()).add(message["outcome"])
        return {
            key: found
            for (counter, key), found in self._outcomes.items()
            if counter.startswith(counters)
        }

    def wait_for_outcomes(self, keys: Set[str], *counters: str) -> dict[str, set[str]]:
        """The same, once each of these keys has one."""
        left = lambda: keys - self.outcomes(*counters).keys()  # noqa: E731
        self.wait("changes have no outcome", left, OUTCOMES_MAX_S)
        return self.outcomes(*counters)

    def stands(
        self, when: str, counter: str, value: int, ceiling: int, *, held: int = 0, carried: int = 0
    ) -> None:
        """What a limited counter's standing must be in each Region.

        carried: what the period passed on.
        """
        for region, client in self.http.items():
            found = client.get("standing", counter)
            self.must(
                f"{region}: value, ceiling, available, held and carried of {counter} {when}",
                (
                    found["value"],
                    found["ceiling"],
                    found["available"]["up"],
                    found["held"]["up"],
                    found.get("carried"),
                ),
                (value, ceiling, ceiling - value - held - carried, held, carried or None),
            )


def until_empty(left: Callable[[], Left], most_s: float, pause_s: float = POLL_S) -> Left:
    """Ask what is left until nothing is, or the time is over. Returns what was left then."""
    deadline = time.monotonic() + most_s
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(pause_s)
    return found
