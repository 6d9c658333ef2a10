"""The writers of the demo: each event in its order through a pool of threads, and again or late where its plan says so.

Rule 1: An event's `at` is the instant at which its turn came, and the same on every retry, so that what is late is late
by the protocol's own clock.
Rule 2: No two events have the same.
Rule 3: Every design gets the same deliveries in the same Regions.
"""

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from lab.demo.event_faults import Fate, LostAnswers, plan
from lab.demo.judge import Acknowledged
from lab.demo.outcome import REGIONS, Outcome
from lab.demo.runners import Unanswered
from lab.events import Event

WRITERS = 12
PLAY_MIN_S = 15.0  # a short list of events is spread over this, so that folds, cuts and reads meet it
ROUNDS_LATE = 2
"""A late event comes when the compactor of its home has been there so often: the second began after its lateness."""
GLANCE_S = 0.05


class Deliveries:
    """Delivers all events. `rounds(region)`: how often ours was compacted there; `advance`: as Screen's."""

    def __init__(
        self,
        events: Sequence[Event],
        seed: int,
        outcome: Outcome,
        acknowledged: Mapping[str, Acknowledged],
        lost: LostAnswers,
        rounds: Callable[[str], int],
        advance: Callable[[int], None],
    ) -> None:
        self._events, self._outcome, self._acknowledged = events, outcome, acknowledged
        self._lost, self._rounds, self._advance = lost, rounds, advance
        self._plans = [plan(seed, number, REGIONS) for number in range(len(events))]
        self._asked: dict[tuple[str, str, datetime], datetime] = {}
        self._newest = datetime.fromtimestamp(0, UTC)
        self._lock = threading.Lock()
        self._failures: list[BaseException] = []
        self.cut = False  # whether the link is cut; a caller that is cut off from its home Region goes to the other one

    def run(self, over: threading.Event, say: Callable[[str], None]) -> None:
        """Returns when everything is delivered, or when `over`. Raises what a writer raised."""
        began = time.monotonic()
        again: list[tuple[int, int]] = []  # (after which number of events, event)
        late: deque[tuple[int, int]] = deque()  # (at which round of its home, event)
        last: list[int] = []
        slots = threading.BoundedSemaphore(4 * WRITERS)

        def submit(number: int, first: bool) -> None:
            slots.acquire()
            threads.submit(self._deliver_one, number, first).add_done_callback(lambda _: slots.release())

        def wait(number: int) -> tuple[int, int]:
            return self._rounds(self._plans[number].home) + ROUNDS_LATE, number

        def submit_late() -> None:
            while late and late[0][0] <= self._rounds(self._plans[late[0][1]].home):
                submit(late.popleft()[1], True)

        def stopped() -> bool:
            return bool(self._failures) or over.is_set()

        with ThreadPoolExecutor(WRITERS) as threads:
            for number, fate in enumerate(self._plans):
                over.wait(max(0.0, began + number * PLAY_MIN_S / len(self._events) - time.monotonic()))
                if stopped():
                    break
                self._ask(number)
                if fate.late and fate.last:
                    last.append(number)
                elif fate.late:
                    late.append(wait(number))
                else:
                    submit(number, True)
                    if fate.redelivered_after is not None:
                        heapq.heappush(again, (number + fate.redelivered_after, number))
                submit_late()
                while again and again[0][0] <= number:
                    submit(heapq.heappop(again)[1], False)
            late += [wait(number) for number in last]
            say("the late ones")
            self._outcome.seconds["counting"] = time.monotonic() - began
            while late and not stopped():
                over.wait(GLANCE_S)
                submit_late()
            for _, number in () if stopped() else again:
                submit(number, False)
        if self._failures:
            raise self._failures[0]

    def _ask(self, number: int) -> None:
        """The event's turn has come: this is its `at`."""
        event = self._events[number]
        now = datetime.now(UTC)
        now = max(now.replace(microsecond=now.microsecond // 1_000 * 1_000), self._newest + timedelta(milliseconds=1))
        if self._asked.setdefault((event.counter, event.key, event.at), now) is now:
            self._newest = now

    def _deliver_one(self, number: int, first: bool) -> None:
        try:
            self._deliver(self._events[number], self._plans[number], first)
        except BaseException as error:
            self._failures.append(error)

    def _deliver(self, event: Event, fate: Fate, first: bool) -> None:
        at = self._asked[event.counter, event.key, event.at]
        other = next(r for r in REGIONS if r != fate.home)
        through = other if first and fate.cut_off and self.cut else fate.home
        failed_over = through != fate.home
        for design in self._outcome.designs:
            acknowledge = partial(self._acknowledged[design.name].add, event, at.timestamp(), fate.home)
            self._lost.next(fate.lost if first else 0)
            try:
                design.add(replace(event, at=at), fate.home, through, partial(acknowledge, through))
            except Unanswered:
                self._lost.next(0)
                region = other if fate.elsewhere else through
                failed_over |= region != fate.home
                design.add(replace(event, at=at), fate.home, region, partial(acknowledge, region))
        with self._lock:
            self._outcome.deliveries += 1
            self._outcome.fail_overs += failed_over
            self._outcome.redeliveries += not first
            self._outcome.late += first and fate.late
        self._advance(int(first))
