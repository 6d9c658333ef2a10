"""One run of the demo: writers, compactors, readers and the replicators of four designs at once, on one engine.

Rule 1: Every design gets the same deliveries.
Rule 2: Nothing here knows how a design counts.
Rule 3: A thread that fails ends the run and is raised.
Rule 4: At the end everything is delivered, replicated, compacted and cleaned, then every counter is read in each
Region.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from mypy_boto3_dynamodb.client import DynamoDBClient

from lab.demo.delivery import Deliveries
from lab.demo.event_faults import HeldUp, LostAnswers
from lab.demo.judge import Acknowledged, Judge, Verdict, base4
from lab.demo.outcome import REGIONS, Outcome, Reads
from lab.demo.packed import Packed
from lab.demo.runners import Clients, Other, Ours, Runner
from lab.demo.screen import Screen
from lab.designs.atomic import Atomic
from lab.designs.design import Sight
from lab.designs.item_collection import NaiveMerge
from lab.engines import partiql
from lab.engines.ministack import Engine
from lab.engines.replicator import Replicator
from lab.events import Event, is_witness, truth_of
from ledger import Settings

MIN_LAG_MS, MAX_LAG_MS, POLL_MS = 20, 1_500, 250
PARTITION_EVERY_S, PARTITION_S = 6.0, 3.0
PAUSE_S = 8.0  # between two runs of a compactor, or of the naive merge
HELD_UP_S = 2.0  # how long a slow reader stands still between two requests; below `read_time_max_ms`
HELD_UP_READS = 6
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


class Run:
    """One run over `events`; the seed decides all faults."""

    def __init__(self, events: Sequence[Event], seed: int, screen: Screen) -> None:
        self._events = events
        self._seed = seed
        self._screen = screen
        self._judge = Judge(events)
        self._lost = LostAnswers()
        self._held_up = {region: HeldUp() for region in REGIONS}
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._rounds: Counter[str] = Counter()  # how often ours was compacted in each Region

    def run(self) -> Outcome:
        """Run the events. Raises what a thread raised, EngineMissing, EngineDied, ReplicationError."""
        distinct = {(event.counter, event.key, event.at) for event in self._events}
        with ExitStack() as stack:
            engine = stack.enter_context(Engine())
            designs = self._designs(engine)
            outcome = Outcome(truth_of(self._events), len(distinct), designs, Counter(name for name, _, _ in distinct))
            outcome.reads = {design.name: Reads() for design in designs}
            self._acknowledged = {d.name: Acknowledged(SETTINGS.allowed_lateness_ms) for d in designs}
            deliveries = Deliveries(
                *(self._events, self._seed, outcome, self._acknowledged, self._lost),
                *(self._rounds.__getitem__, self._screen.advance),
            )
            replicators = [stack.enter_context(self._replicator(engine, design.table)) for design in designs]
            jobs: list[Callable[[], None]] = [partial(self._partitions, outcome, replicators, deliveries)]
            jobs += [partial(self._housekeeping, design, region) for design in designs for region in REGIONS]
            jobs += [partial(self._reading, outcome, region) for region in REGIONS]
            jobs += [partial(self._reading_slowly, outcome, region) for region in REGIONS]
            jobs += [partial(outcome.packed.carry_until, region, self._over) for region in REGIONS]
            began = time.monotonic()
            with ThreadPoolExecutor(len(jobs)) as threads:
                started = [threads.submit(self._guarded, job) for job in jobs]
                try:
                    deliveries.run(self._over, self._screen.say)
                finally:
                    self._over.set()
                for future in started:
                    future.result()
            resting = time.monotonic()
            outcome.seconds["the late ones"] = resting - began - outcome.seconds["counting"]
            for design in designs:
                outcome.reads[design.name].read_units = design.reads.total().read_units
            self._come_to_rest(designs, replicators)
            for design in designs:
                outcome.values[design.name] = {r: design.values(list(outcome.truth), r) for r in REGIONS}
            outcome.seconds["coming to rest"] = time.monotonic() - resting
            outcome.answers_lost = self._lost.lost
            return outcome

    def _designs(self, engine: Engine) -> list[Runner]:
        for table in ("counters", "packs", "naive-add", "naive-merge"):
            for region in REGIONS:
                engine.create_table(table, region)

        def clients(attach: Callable[[str, DynamoDBClient], None] = lambda region, client: None) -> Clients:
            made = {region: engine.client(region) for region in REGIONS}
            for region, client in made.items():
                partiql.send_item_by_item(client, through=engine.client(region))
                attach(region, client)
            return made

        def writers() -> Clients:
            return clients(lambda region, client: self._lost.attach(client))

        settings = {region: replace(SETTINGS, region=region) for region in REGIONS}
        packs = {region: replace(each, table="packs") for region, each in settings.items()}
        queues = {region: engine.queue_client(region) for region in REGIONS}
        bulk = clients(lambda region, client: self._held_up[region].attach(client))
        return [
            Ours(settings, writers(), clients(), bulk, clients()),
            Packed(packs, clients(), clients(), clients(), queues, self._seed),
            Other(Atomic(), "naive-add", writers(), clients()),
            Other(NaiveMerge(name="naive merge", settings=SETTINGS), "naive-merge", writers(), clients()),
        ]

    def _replicator(self, engine: Engine, table: str) -> Replicator:
        rng = random.Random(f"{self._seed}{table}")
        return Replicator(engine, table, REGIONS, rng, MIN_LAG_MS, MAX_LAG_MS, POLL_MS)

    # -- all the time --------------------------------------------------------------------------------------------------

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException:
            self._over.set()
            raise

    def _housekeeping(self, design: Runner, region: str) -> None:
        while not self._over.wait(PAUSE_S):
            began = time.monotonic()
            if design.housekeep(region):
                self._acknowledged[design.name].settled(region, began)
            if type(design) is Ours:
                self._rounds[region] += 1

    def _reading(self, outcome: Outcome, region: str) -> None:
        """Read counters of the file and witnesses in turn, of every design that can be judged."""
        rng = random.Random(f"{self._seed}{region}")
        counters = sorted(outcome.truth)
        witnesses = [counter for counter in counters if is_witness(counter)]
        while not self._over.wait(0.01):
            for design in outcome.designs:
                judged_by_count = isinstance(design, Ours)
                counter = rng.choice(counters if judged_by_count and rng.random() < 0.5 else witnesses)
                with self._judged(outcome, design, region, [counter]) as sights:
                    sights[counter] = design.read(counter, region)

    def _reading_slowly(self, outcome: Outcome, region: str) -> None:
        """Read some witnesses of ours at once, again and again, held up between two requests."""
        rng = random.Random(f"slowly{self._seed}{region}")
        witnesses = sorted(counter for counter in outcome.truth if is_witness(counter))
        while not self._over.wait(0.01):
            some = rng.sample(witnesses, min(HELD_UP_READS, len(witnesses)))
            self._held_up[region].hold(HELD_UP_S)
            with self._judged(outcome, outcome.ours, region, some) as sights:
                sights |= {counter: Sight(value) for counter, value in outcome.ours.values(some, region).items()}

    @contextmanager
    def _judged(
        self, outcome: Outcome, design: Runner, region: str, counters: Sequence[str]
    ) -> Iterator[dict[str, Sight]]:
        """Holds what is read of `counters` inside against what it could and what it had to be."""
        acknowledged = self._acknowledged[design.name]
        demanded = {counter: acknowledged.demanded(counter, region) for counter in counters}
        sights: dict[str, Sight] = {}
        yield sights
        ended = time.monotonic()
        for counter, sight in sights.items():
            verdict = self._judge.verdict(counter, sight, {a.name for a in demanded[counter] if a.holds(ended)})
            with self._lock:
                reads = outcome.reads[design.name]
                reads.made += 1
                reads.untrue += verdict is Verdict.UNTRUE
                reads.short += verdict is Verdict.SHORT
                if verdict is Verdict.UNTRUE or (verdict is Verdict.SHORT and not reads.example):
                    shown = base4(sight.value) if is_witness(counter) else f"{sight.value:,}"
                    reads.example = f"{counter} in {region} as {shown}"

    def _partitions(self, outcome: Outcome, replicators: Sequence[Replicator], deliveries: Deliveries) -> None:
        while not self._over.wait(PARTITION_EVERY_S):
            for replicator in replicators:
                replicator.partition()
            for acknowledged in self._acknowledged.values():
                acknowledged.cut()
            deliveries.cut = True
            outcome.partitions += 1
            self._screen.link(whole=False)
            self._over.wait(PARTITION_S)
            deliveries.cut = False
            for acknowledged in self._acknowledged.values():
                acknowledged.healing()
            for replicator in replicators:
                replicator.heal()
            self._screen.link(whole=True)

    # -- the end -------------------------------------------------------------------------------------------------------

    def _come_to_rest(self, designs: Sequence[Runner], replicators: Sequence[Replicator]) -> None:
        """Deliver what is on its way, settle every stray, and clean what was folded and settled before."""

        def drain() -> None:
            for replicator in replicators:
                replicator.drain(DRAIN_TIMEOUT_MS)

        self._screen.say("coming to rest")
        for replicator in replicators:
            replicator.heal()
        drain()
        for keep_ms in (SETTINGS.keep_ms, 0):
            for design in designs:
                for region in REGIONS:
                    design.housekeep(region)
            drain()  # what the compactors wrote has to arrive too
            time.sleep(keep_ms / 1_000)
