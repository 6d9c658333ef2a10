"""`Sweeper` and its program `sweep`: every lane of the directory gets a job, so a lost message
loses no work.

Rule 1: A pass goes through the buckets in order, in `hours`, as evenly as its runs allow: a run
that comes too late does more, and the work queue is never full of lanes that nobody waits for.
Rule 2: The sweep keeps its place after each piece of a page, so a crash repeats a piece at most.
Where nobody can read the place, a new pass begins. It looks at the clock before each request,
because AWS kills a function whose time is up.
Rule 3: The sweep reports an item that names no lane, and a lane that nobody reads. The lane of a
counter with a limit is there for its gate; the worker that serves its job reports whether it holds
changes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from ledger.core.cost import item_bytes
from ledger.core.errors import LedgerError
from ledger.core.requests import (
    Get,
    GetMany,
    Instant,
    Item,
    Key,
    Now,
    Page,
    Put,
    Query,
    Together,
    key_of,
)
from ledger.core.running import answered, through
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.gate.items import gate_key, hold_pk, holds_until
from ledger.lane import directory
from ledger.lane.shape import ShapeCheck
from ledger.lane.tail import Pages
from ledger.tables.boto import POOL
from service.job_queue import Enqueue, Message
from service.jobs import VERIFY_S, Evaluate, Job, Sweep, Verify
from service.observe import LANES_LOGGED, Watch
from service.runtime import OutOfTime, Runtime, Steps, in_time
from service.sqs import ENTRIES_MAX
from service.sweep.place import FIRST, Place, place_item, place_key, place_of

PAGE = 1_000
"""Lanes of a page."""

HOURS = 24

OVERDUE_MS = 3_600_000
GATES_READ = POOL
"""Lanes of a piece: their gates are one request, and the notes of their holds are read at once."""


@dataclass(slots=True)
class Swept:
    """place: the last that was kept. damaged: keys of items that name no lane. unread: lanes whose
    changes, or whose gates, no process of these settings reads. holds_overdue: notes of holds that
    should have ended an hour ago.
    gate_bytes: of the largest gate; 0: there is none. behind_ms: how far the pass is behind its
    time."""

    place: Place = FIRST
    lanes: int = 0
    verified: int = 0
    damaged: list[Key] = field(default_factory=list)
    unread: set[Lane] = field(default_factory=set)
    holds_overdue: int = 0
    gate_bytes: int = 0
    ended: bool = False
    behind_ms: int = 0


def sweep(
    swept: Swept,
    settings: Settings,
    pick: Callable[[], bool],
    stop: Callable[[], bool],
    *,
    hours: float = HOURS,
) -> Steps:
    """One run. pick() says whether to verify a lane, too. Raises the TableErrors and NotPut."""
    pass_ms = hours * 3_600_000
    item: Item | None = yield Get(place_key(settings.region))
    now: Instant = yield Now()
    place = place_of(item, now.wall_ms)
    if place.bucket == directory.BUCKETS and now.wall_ms - place.began_ms >= pass_ms:
        # when it should have begun
        place = Place(max(int(place.began_ms + pass_ms), int(now.wall_ms - pass_ms)))
    share = (now.wall_ms - place.began_ms) / pass_ms
    upto = min(directory.BUCKETS, int(share * directory.BUCKETS) + 1)
    swept.place = place
    with suppress(OutOfTime):
        yield from through(_pass(swept, upto, settings, pick, now.wall_ms), partial(in_time, stop))
    swept.ended = swept.place.bucket == directory.BUCKETS
    if not swept.ended:
        swept.behind_ms = max(
            0, int((share - (swept.place.bucket + 1) / directory.BUCKETS) * pass_ms)
        )


def _pass(
    swept: Swept, upto: int, settings: Settings, pick: Callable[[], bool], now_ms: int
) -> Steps:
    """Go on until the bucket `upto`."""
    while swept.place.bucket < upto:
        began_ms, bucket, after = swept.place
        page: Page = yield directory.page_of(settings.region, bucket, after, PAGE)
        pieces = [
            page.items[start : start + GATES_READ]
            for start in range(0, len(page.items), GATES_READ)
        ]
        for piece in pieces[:-1]:
            yield from _send(swept, piece, settings, pick, now_ms)
            yield from _keep(swept, Place(began_ms, bucket, key_of(piece[-1]).sk), settings)
        if pieces:
            yield from _send(swept, pieces[-1], settings, pick, now_ms)
        done = page.last is None
        # Rule 4: the evaluations are of the bucket's lanes in every Region, because all changes of
        # a counter may be elsewhere.
        if done and settings.tells:
            yield from _evaluate(bucket, settings, now_ms)
        yield from _keep(
            swept, Place(began_ms, bucket + done, None if done else page.last), settings
        )


def _keep(swept: Swept, place: Place, settings: Settings) -> Steps:
    yield Put(place_item(settings.region, place))
    swept.place = place


def _send(
    swept: Swept, items: Sequence[Item], settings: Settings, pick: Callable[[], bool], now_ms: int
) -> Steps:
    lanes, damaged, _ = directory.listed(items, settings, now_ms)
    swept.damaged += damaged
    verified = [lane for lane in lanes if pick()]
    yield from _put(map(Sweep, lanes))
    yield from _put(map(Verify, verified), VERIFY_S)
    swept.lanes += len(lanes)
    swept.verified += len(verified)
    swept.unread |= {
        lane
        for lane in lanes
        if settings.limit_of(lane.counter) is None and not settings.reads(lane)
    }
    yield from _look_at_gates(swept, lanes, settings)


def _look_at_gates(swept: Swept, lanes: Sequence[Lane], settings: Settings) -> Steps:
    """Count the notes of holds whose time has been over for an hour, a page of notes a lane at
    most.
    """
    if not lanes:
        return
    now: Instant = yield Now()
    found: tuple[Item | None, ...] = yield GetMany(tuple(map(gate_key, lanes)), consistent=False)
    gates = {lane: gate for lane, gate in zip(lanes, found, strict=True) if gate is not None}
    for lane, gate in gates.items():
        swept.gate_bytes = max(swept.gate_bytes, item_bytes(gate))
        is_known = lane.region in settings.regions and lane.shard < settings.shards_of(lane.counter)
        if not is_known or settings.limit_of(lane.counter) is None:
            # Rule 5: a gate in a lane that no process of these settings looks at is in no value,
            # and nobody can take what it has left.
            swept.unread.add(lane)
    if gates:
        upto = holds_until(now.wall_ms - OVERDUE_MS)
        notes = yield Together(
            tuple(Query(hold_pk(lane), None, upto, None, False) for lane in gates)
        )
        swept.holds_overdue += sum(len(page.items) for page in answered(notes))


def _evaluate(bucket: int, settings: Settings, now_ms: int) -> Steps:
    """Request an evaluation of each counter of a bucket that has thresholds here."""
    counters: set[str] = set()
    for region in settings.regions:
        pages = Pages(directory.page_of(region, bucket, None, PAGE))
        while pages.more:
            page: Page = yield from pages.read()
            lanes = directory.listed(page.items, settings, now_ms).lanes
            counters |= {lane.counter for lane in lanes if settings.told_here(lane.counter)}
    yield from _put(Evaluate(Lane(settings.region, 0, counter)) for counter in sorted(counters))


def _put(jobs: Iterable[Job], delay_s: int = 0) -> Steps:
    """Put jobs on the queue. Raises the error of the first that the queue did not confirm."""
    messages = tuple(Message(job, delay_s) for job in jobs)
    for start in range(0, len(messages), ENTRIES_MAX):  # each is one call of the queue
        answers: tuple[LedgerError | None, ...] = yield Enqueue(
            messages[start : start + ENTRIES_MAX]
        )
        for lost in filter(None, answers):
            raise lost


class Sweeper:
    """verify_one_in: each pass verifies one lane in so many; 0 for none. draw() returns a number in
    [0, 1).

    hours: of a pass.
    """

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        watch: Watch,
        *,
        verify_one_in: int,
        draw: Callable[[], float],
        hours: float = HOURS,
    ) -> None:
        self._settings, self._runtime, self._watch, self._hours = settings, runtime, watch, hours
        self._shape = ShapeCheck(settings)
        self._pick = lambda: verify_one_in > 0 and draw() * verify_one_in < 1

    def __call__(self, stop: Callable[[], bool]) -> Swept:
        swept = Swept()
        try:
            self._shape.ask(self._runtime, self._runtime.now)
            self._runtime.run(sweep(swept, self._settings, self._pick, stop, hours=self._hours))
        finally:
            self._report(swept)
        return swept

    def _report(self, swept: Swept) -> None:
        log = self._watch.logger
        numbers = {"LanesSwept": swept.lanes, "SweepLagMs": swept.behind_ms}
        numbers |= {"LanesUnread": len(swept.unread), "LanesDamaged": len(swept.damaged)}
        if swept.gate_bytes:  # a metric costs money, also where nothing has a limit
            numbers |= {"HoldsOverdue": swept.holds_overdue, "GateBytes": swept.gate_bytes}
        self._watch.publish(numbers)
        if swept.unread:
            lanes = [str(lane) for lane in sorted(swept.unread)[:LANES_LOGGED]]
            log.error(
                "lanes that nobody reads", extra={"unread": len(swept.unread), "lanes": lanes}
            )
        if swept.damaged:
            keys = [f"pk={key.pk!r}, sk={key.sk!r}" for key in swept.damaged[:LANES_LOGGED]]
            log.error(
                "directory items that name no lane",
                extra={"items": len(swept.damaged), "keys": keys},
            )
        fields = {
            "lanes": swept.lanes,
            "to_verify": swept.verified,
            "ended": swept.ended,
            "behind_ms": swept.behind_ms,
        }
        limits = {"holds_overdue": swept.holds_overdue, "gate_bytes": swept.gate_bytes}
        log.info("swept", extra=fields | limits)
