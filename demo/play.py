"""One run of the demo: writers, compactors, readers and the replicators of three designs at once, on one engine.

Rules: every design gets the same deliveries; nothing here knows how a design counts; a thread that fails ends the run
and is raised; at the end everything is delivered, replicated and compacted, then every counter is read in each Region.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from demo import partiql
from demo.designs import AtomicAdd, Design, NaiveMerge, Ours, Unanswered
from demo.engine import Engine
from demo.events import Event, is_witness, truth_of
from demo.faults import LostAnswers, plan
from demo.judge import Judge
from demo.replicator import Replicator
from ledger import Settings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

REGIONS = ("eu-west-1", "us-east-1")
WRITERS = 12
MIN_LAG_MS, MAX_LAG_MS, POLL_MS = 20, 1_500, 250
PARTITION_EVERY_S, PARTITION_S = 9.0, 3.0
PAUSE_S = 10.0
"""Between two runs of a compactor, or of the naive merge."""
DRAIN_TIMEOUT_MS = 120_000
SETTINGS = Settings(
    table="counters",
    region=REGIONS[0],
    regions=REGIONS,
    allowed_lateness_ms=2_000,
    keep_ms=5_000,
    read_time_max_ms=4_000,
    fold_min=6,
)
"""The protocol's times, shortened so that deltas are folded, settled and cleaned within the demo's minutes."""
QUIET_ROUNDS_MAX = 20


@dataclass(slots=True)
class Reads:
    """What the readers of one design saw."""

    made: int = 0
    untrue: int = 0
    read_units: float = 0
    example: str = ""


@dataclass(slots=True)
class Outcome:
    """What a run leaves: the truth, what each design says in each Region, and what happened on the way."""

    truth: dict[str, int]
    changes: int
    designs: Sequence[Design]
    sizes: Mapping[str, int] = field(default_factory=dict)
    """How many changes each counter has."""
    values: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    reads: dict[str, Reads] = field(default_factory=dict)
    deliveries: int = 0
    answers_lost: int = 0
    fail_overs: int = 0
    partitions: int = 0
    redeliveries: int = 0

    def wrong(self, design: Design, region: str, counters: Iterable[str]) -> int:
        """How many of `counters` are not their true value."""
        values = self.values[design.name][region]
        return sum(values.get(counter, 0) != self.truth[counter] for counter in counters)

    @property
    def ours_is_exact(self) -> bool:
        """Whether every number of ours is right."""
        ours = next(d for d in self.designs if isinstance(d, Ours))
        return not self.reads[ours.name].untrue and not any(self.wrong(ours, region, self.truth) for region in REGIONS)


class Play:
    """`advance(n)` is called as n more events are delivered, `say(text)` with what is going on."""

    def __init__(
        self, events: Sequence[Event], seed: int, advance: Callable[[int], None], say: Callable[[str], None]
    ) -> None:
        self._events = events
        self._seed = seed
        self._advance = advance
        self._say = say
        self._judge = Judge(events)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._rng = random.Random(seed)

    def run(self) -> Outcome:
        """Play the events. Raises what a thread raised, EngineMissing, EngineDied, ReplicationError."""
        with ExitStack() as stack:
            engine = stack.enter_context(Engine())
            self._lost = LostAnswers()
            designs = self._designs(engine)
            truth = truth_of(self._events)
            distinct = {(event.counter, event.key, event.at) for event in self._events}
            outcome = Outcome(truth, len(distinct), designs, Counter(counter for counter, _, _ in distinct))
            outcome.reads = {design.name: Reads() for design in designs}
            replicators = [stack.enter_context(self._replicator(engine, design.table)) for design in designs]
            jobs: list[Callable[[], None]] = [partial(self._partitions, outcome, replicators)]
            jobs += [partial(self._housekeeping, design, region) for design in designs for region in REGIONS]
            jobs += [partial(self._reading, outcome, region) for region in REGIONS]
            with ThreadPoolExecutor(len(jobs)) as threads:
                started = [threads.submit(self._guarded, job) for job in jobs]
                try:
                    self._deliver_all(outcome)
                finally:
                    self._over.set()
                _raise_failures(started)
            for design in designs:
                outcome.reads[design.name].read_units = design.reads.total().read_units
            self._settle_down(designs, replicators)
            outcome.answers_lost = self._lost.lost
            for design in designs:
                outcome.values[design.name] = {r: design.values(list(truth), r) for r in REGIONS}
            return outcome

    def _designs(self, engine: Engine) -> list[Design]:
        for table in ("counters", "naive-add", "naive-merge"):
            for region in REGIONS:
                engine.create_table(table, region)

        def clients(lossy: bool = False) -> dict[str, DynamoDBClient]:
            made = {region: engine.client(region) for region in REGIONS}
            for region, client in made.items():
                partiql.send_item_by_item(client, through=engine.client(region))
                if lossy:
                    self._lost.attach(client)
            return made

        settings = {region: replace(SETTINGS, region=region) for region in REGIONS}
        return [
            Ours(settings, clients(lossy=True), clients(), clients()),
            AtomicAdd("naive-add", clients(lossy=True), clients()),
            NaiveMerge("naive-merge", clients(lossy=True), clients()),
        ]

    def _replicator(self, engine: Engine, table: str) -> Replicator:
        clients = {region: engine.client(region) for region in REGIONS}
        streams = {region: engine.stream_client(region) for region in REGIONS}
        rng = random.Random(f"{self._seed}{table}")
        return Replicator(clients, streams, table, REGIONS, rng, MIN_LAG_MS, MAX_LAG_MS, poll_ms=POLL_MS)

    # -- the writers ---------------------------------------------------------------------------------------------------

    def _deliver_all(self, outcome: Outcome) -> None:
        """Every event in its order, and again where its plan says so, through a pool of writers."""
        again: list[tuple[int, int]] = []  # (after which number of events, event)
        slots = threading.BoundedSemaphore(4 * WRITERS)
        failures: list[BaseException] = []

        def submit(threads: ThreadPoolExecutor, number: int, first: bool) -> None:
            slots.acquire()
            if failures or self._over.is_set():
                return
            threads.submit(deliver, number, first)

        def deliver(number: int, first: bool) -> None:
            try:
                self._deliver(outcome, number, first)
            except BaseException as error:
                failures.append(error)
            finally:
                slots.release()

        with ThreadPoolExecutor(WRITERS) as threads:
            for number in range(len(self._events)):
                submit(threads, number, True)
                after = plan(self._seed, number, REGIONS).redelivered_after
                if after is not None:
                    heapq.heappush(again, (number + after, number))
                while again and again[0][0] <= number:
                    submit(threads, heapq.heappop(again)[1], False)
                if failures:
                    break
            for _, number in again:
                submit(threads, number, False)
        if failures:
            raise failures[0]

    def _deliver(self, outcome: Outcome, number: int, first: bool) -> None:
        event, fate = self._events[number], plan(self._seed, number, REGIONS)
        region, failed_over = fate.home, False
        for design in outcome.designs:
            self._lost.next(fate.lost if first else 0)
            region = fate.home
            try:
                design.add(event, fate.home, region)
            except Unanswered:
                self._lost.next(0)
                region = next(r for r in REGIONS if r != fate.home) if fate.elsewhere else fate.home
                failed_over = region != fate.home
                design.add(event, fate.home, region)
        with self._lock:
            outcome.deliveries += 1
            outcome.fail_overs += failed_over
            outcome.redeliveries += not first
        self._advance(int(first))

    # -- all the time --------------------------------------------------------------------------------------------------

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException:
            self._over.set()
            raise

    def _housekeeping(self, design: Design, region: str) -> None:
        while not self._over.wait(PAUSE_S):
            design.housekeep(region)

    def _reading(self, outcome: Outcome, region: str) -> None:
        """Read counters of the file and witnesses in turn, of every design that can be judged."""
        rng = random.Random(f"{self._seed}{region}")
        counters = sorted(outcome.truth)
        witnesses = [counter for counter in counters if is_witness(counter)]
        while not self._over.wait(0.01):
            for design in outcome.designs:
                judged_by_count = isinstance(design, Ours)
                counter = rng.choice(counters if judged_by_count and rng.random() < 0.5 else witnesses)
                sight = design.read(counter, region)
                true = self._judge.is_true_sum(counter, sight)
                with self._lock:
                    reads = outcome.reads[design.name]
                    reads.made += 1
                    reads.untrue += not true
                    if not true:
                        reads.example = f"{counter} in {region} read as {sight.value}"

    def _partitions(self, outcome: Outcome, replicators: Sequence[Replicator]) -> None:
        while not self._over.wait(PARTITION_EVERY_S):
            for replicator in replicators:
                replicator.partition()
            outcome.partitions += 1
            self._say("the link is cut")
            self._over.wait(PARTITION_S)
            for replicator in replicators:
                replicator.heal()
            self._say("the link is healed")

    # -- the end -------------------------------------------------------------------------------------------------------

    def _settle_down(self, designs: Sequence[Design], replicators: Sequence[Replicator]) -> None:
        """Deliver what is on its way and let every compactor come to rest: no stray is left unsettled."""
        for replicator in replicators:
            replicator.heal()
        for replicator in replicators:
            replicator.drain(DRAIN_TIMEOUT_MS)
        self._say("last compaction")
        for design in designs:
            for region in REGIONS:
                design.housekeep(region)
        for replicator in replicators:  # what the compactors wrote has to arrive too
            replicator.drain(DRAIN_TIMEOUT_MS)


def _raise_failures(started: Sequence[Future[None]]) -> None:
    for future in started:
        future.result()
