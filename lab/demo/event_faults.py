"""What goes wrong in the demo, decided beforehand from a seed, so that every design meets the same.

Rule 1: A lost answer is lost after the engine applied the request and below the SDK, whose own retries then do what
they always do.
Rule 2: A plan is drawn from the event's number, so it does not depend on threads.
Rule 3: A held-up reader has sent nothing wrong, it only stands still between two of its requests.
"""

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ReadTimeoutError
from mypy_boto3_dynamodb.client import DynamoDBClient

LOSE_ONE, LOSE_ALL = 0.012, 0.006
ALL_ATTEMPTS = 3
REDELIVER, REDELIVER_LATE = 0.06, 0.03
CUT_OFF, LATE, LATE_LAST = 0.2, 0.04, 0.5


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to one event. home: the Region where it is asked for. lost: answers lost on the first delivery.

    elsewhere: whether the caller, left without an answer, fails over to the other Region. redelivered_after: after how
    many further events the queue delivers it again (None: it does not). cut_off: whether the caller does not reach its
    home, and goes to the other Region, if the link is cut then. late: whether it waits in a queue until the compactors
    have been there, so that its time may have been folded past when it comes. last: whether it waits for all others
    before, so that also in a short list of many counters some times have been.
    """

    home: str
    lost: int
    elsewhere: bool
    redelivered_after: int | None
    cut_off: bool
    late: bool
    last: bool


def plan(seed: int, number: int, regions: Sequence[str]) -> Fate:
    """The plan of event `number`."""
    rng = random.Random(seed * 1_000_003 + number)
    draw, again = rng.random(), rng.random()
    redelivered_after: int | None
    if again < REDELIVER_LATE:
        redelivered_after = rng.randrange(500, 2_500)  # long enough for the delta to be folded, often cleaned
    else:
        redelivered_after = rng.randrange(1, 30) if again < REDELIVER_LATE + REDELIVER else None
    return Fate(
        home=rng.choice(list(regions)),
        lost=ALL_ATTEMPTS if draw < LOSE_ALL else 1 if draw < LOSE_ALL + LOSE_ONE else 0,
        elsewhere=rng.random() < 0.5,
        redelivered_after=redelivered_after,
        cut_off=rng.random() < CUT_OFF,
        late=rng.random() < LATE,
        last=rng.random() < LATE_LAST,
    )


class LostAnswers:
    """Loses the answers to a client's next writes, as a network does: the engine has applied them."""

    def __init__(self) -> None:
        self._mine = threading.local()
        self.lost = 0

    def attach(self, client: DynamoDBClient) -> None:
        session = client._endpoint.http_session  # type: ignore[attr-defined]

        def before_send(request: Any, **_: Any) -> None:
            if getattr(self._mine, "left", 0) > 0:
                self._mine.left -= 1
                self.lost += 1
                session.send(request)
                raise ReadTimeoutError(endpoint_url=request.url, error="answer lost by the demo")

        for operation in ("PutItem", "UpdateItem"):
            client.meta.events.register(f"before-send.dynamodb.{operation}", before_send)

    def next(self, count: int) -> None:
        """Lose the answers to this thread's next `count` writes."""
        self._mine.left = count


class HeldUp:
    """A reader that stands still between two requests, as a frozen process does: what it has read grows old."""

    def __init__(self) -> None:
        self._until_s = 0.0

    def attach(self, client: DynamoDBClient) -> None:
        def before_send(**_: Any) -> None:
            time.sleep(max(0.0, self._until_s - time.monotonic()))

        client.meta.events.register("before-send.dynamodb.Query", before_send)

    def hold(self, seconds: float) -> None:
        """Send no Query of the client for so long."""
        self._until_s = time.monotonic() + seconds
