"""The cast of a history of the service: who puts changes, and in each Region who rings, compacts
and purges a queue.
"""

import base64
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from compactor.known import KnownCovers
from lab.histories.judges.service import SEATS
from lab.histories.parts.cast import NUMBERS_MAX, Cast
from lab.histories.parts.writers import PACKED_MAX, Sender, enter_writer
from lab.histories.stage.served_world import ServedWorld
from lab.histories.stage.stage import LATE, LONG, PACES, one_of, rest
from ledger.core import tokens
from ledger.core.errors import DamagedItem, LaneDamaged, LedgerError
from ledger.core.requests import Now
from ledger.core.running import through
from ledger.core.values import Delta
from ledger.gate import decide
from ledger.gate.gates import Gates
from ledger.gate.set_limit import set_limit
from service.compact.outcome import Outcome
from service.compact.result import Done
from service.compact.serve import by_lane, serve_lane
from service.job_queue import Enqueue
from service.messages import job_of
from service.ring.records import arrived
from service.ring.ring import Memory, Rung, ring
from simulator.process import Process, Script, Sleep

CHANGES = (1, 2, 3, 3, -1, -2)
TRIES_MAX = 8
EVERY_S = (1, 1, 6, 60)
AHEAD_MS = 200_000
"""How far some producers' clocks are ahead: less than the library allows, more than a ring
waits.
"""
POLL_STEPS = 40


@dataclass
class Service(Cast):
    """producers: who puts deltas."""

    every_s: int = 0
    producers: list[Process] = field(default_factory=list)
    memories: dict[str, list[Memory]] = field(default_factory=dict)

    @property
    def world(self) -> ServedWorld:
        assert isinstance(self.stage.world, ServedWorld)
        return self.stage.world

    def is_over(self, region: str) -> bool:
        """Whether nothing is left to do in a Region, and nothing can come."""
        world = self.world
        posts = world.posts.values()
        written = (
            all(each.done for each in self.producers) and not world.late and not world.landings
        )
        if self.settings.thresholds and any(post.queue for post in posts):
            return False  # what another Region commits may be a crossing here
        arrived = not any(replica.inbox for replica in world.replicas.values())
        read = all(post.position == len(post.records) for post in posts)
        return written and arrived and read and not world.posts[region].queue

    def joined_again(self) -> None:
        """No Region stays cut off when nobody adds any more, so that what was added is found."""
        if all(each.done for each in self.producers) and not self.world.purged:
            self.world.cut.clear()

    def enter_all(self) -> None:
        choices, enter = self.choices, self.stage.enter
        self.every_s = one_of(choices, EVERY_S)
        packs = choices.pick(2) == 1
        pace = one_of(choices, (LONG, LATE, LATE))
        for _ in range(5 + choices.pick(20)):
            if self.record.numbers > NUMBERS_MAX - PACKED_MAX - 1:
                break
            home = self.any_region()
            ahead_ms = (
                AHEAD_MS if len(self.stage.processes) % 4 == 3 and self.settings.fold_min < 3 else 0
            )
            enter_writer(Sender(self, home, ahead_ms=ahead_ms), packs, lambda: pace)
        for number in range(4 + choices.pick(8)) if self.settings.limits else ():
            home = self.any_region()
            gates = Gates.of(self.own(home), SEATS)
            assert gates is not None
            enter(f"seller {number}", home, partial(self._sells, number, gates, pace, []))
        if self.settings.limits:
            home = self.settings.regions[0]
            enter(
                "setter",
                home,
                partial(self._sets, Gates.limited(self.own(home), SEATS, "the setter"), pace),
            )
        self.producers = list(self.stage.processes)
        for region in self.settings.regions:
            self._enter_in(region)

    def _enter_in(self, region: str) -> None:
        choices, enter = self.choices, self.stage.enter
        rare = 4 if self.settings.limits else 16
        enter(f"reader {region}", region, partial(self.reads, region, 3 + choices.pick(6), LONG))
        self.memories[region] = [Memory() for _ in range(1 + choices.pick(2))]
        enter(f"ring {region}", region, partial(self._rings, region, []))
        for number in range(1 + choices.pick(2)):
            enter(f"compact {region} {number}", region, partial(self._compacts, region))
        if choices.pick(8) == 7:  # a compactor of one's own, beside the service
            visits = partial(self.visits, region, iter(range(4)), one_of(choices, PACES))
            enter(f"compactor {region}", region, visits)
        if choices.pick(rare) == rare - 1:
            enter(f"purge {region}", region, partial(self._purges, region))

    def _sells(self, number: int, gates: Gates, pace: Sequence[int], mine: list[Delta]) -> Script:
        """mine: outlives a crash."""
        yield rest(self.choices, pace)
        if not mine:
            token = tokens.keyed(SEATS, str(number), (yield Now()).wall_ms)
            lane = self.settings.lane_for(SEATS, token, gates.here)
            mine.append(Delta(lane, token, one_of(self.choices, CHANGES)))
        for _ in range(TRIES_MAX):
            try:
                yield from decide.decide_change(gates, mine[0])
                return
            except LedgerError:
                yield rest(self.choices, LONG)

    def _sets(self, gates: Gates, pace: Sequence[int]) -> Script:
        """Another ceiling, now and then, where what counts allows it."""
        for _ in range(1 + self.choices.pick(4)):
            yield rest(self.choices, pace)
            with suppress(LedgerError):
                yield from set_limit(gates, None, 2 + self.choices.pick(12))

    def _rings(self, region: str, began: list[bool]) -> Script:
        """Reads the stream, a batch after the other, by one of its containers; after a crash by
        a new one.
        """
        choices, memories, post = self.choices, self.memories[region], self.world.posts[region]
        if began:
            memories[choices.pick(len(memories))] = Memory()
        began.append(True)
        while not self.is_over(region):
            batch = self.world.read_stream(region, 1 + choices.pick(6))
            if not batch:
                yield Sleep(POLL_STEPS)
                continue
            records = [_event(number, each) for number, each in enumerate(batch)]
            came = arrived(records, self.own(region))
            done = Rung()
            yield from _sent(
                ring(came, done, one_of(choices, memories), self.own(region), self.every_s)
            )
            self.stage.counts.update(
                rings=done.numbers["LanesRung"], late=done.numbers["LateDeltas"]
            )
            post.position += came.first_of(done.failed)[0] if done.failed else len(batch)

    def _compacts(self, region: str) -> Script:
        """Serves the work queue: the messages of a lane together, and each is deleted when it
        was served.
        """
        world, choices, own = self.world, self.choices, self.own(region)
        known = KnownCovers()  # until it crashes
        while not self.is_over(region):
            batch = world.receive(region, 1 + choices.pick(3))
            if not batch:
                yield Sleep(_until(world, region))
                continue
            jobs = [(str(n), job_of(message.body, own)) for n, message in enumerate(batch)]
            lost = set[str]()
            for lane in by_lane(jobs):
                deadline = world.step + (choices.pick(60) if choices.pick(8) == 7 else 10**9)
                stop = lambda: world.step > deadline  # noqa: E731, B023
                commits_max = 1 + choices.pick(3)
                yield from _sent(serve_lane(lane, own, stop, commits_max=commits_max, known=known))
                for done in lane:
                    self._report(done)
                    lost |= done.ids if done.lost is not None else set()
            world.delete(region, [message for n, message in enumerate(batch) if str(n) not in lost])

    def _report(self, done: Done) -> None:
        gave_up = done.outcome in (Outcome.GAVE_UP, Outcome.UNVERIFIED)
        self.stage.counts.update(visits=done.visited, dropped=int(gave_up and not done.sent))
        if done.lost is not None and not isinstance(done.lost, LedgerError):
            raise done.lost
        if isinstance(done.error, DamagedItem | LaneDamaged):
            self.record.broken.append(f"a visit to {done.job.lane}: {done.error}")

    def _purges(self, region: str) -> Script:
        yield rest(self.choices, LATE)
        while self.settings.thresholds and not all(each.done for each in self.producers):
            yield Sleep(POLL_STEPS)  # so that what asked for the last evaluation is lost
        self.world.purge(region)


def _sent(program: Generator[Any, Any, None]) -> Script:
    """The program, with an answer of its queue also where none came: nothing was put."""

    def step(request: Any) -> Generator[Any, Any, Any]:
        try:
            return (yield request)
        except LedgerError as failure:
            if not isinstance(request, Enqueue):
                raise
            return (failure,) * len(request.messages)

    return through(program, step)


def _event(number: int, record: Any) -> dict[str, Any]:
    image = {
        name: {"B": base64.b64encode(value["B"]).decode()} if "B" in value else value
        for name, value in record.item.items()
    }
    change: dict[str, Any] = {
        "Keys": {"pk": {"S": record.key.pk}, "sk": {"S": record.key.sk}},
        "NewImage": image,
    }
    change |= {"SequenceNumber": str(number), "ApproximateCreationDateTime": record.made_ms / 1_000}
    return {"eventName": "INSERT" if record.new else "MODIFY", "dynamodb": change}


def _until(world: ServedWorld, region: str) -> int:
    """The steps until a message can be received, if that is known to be long."""
    next_ms = world.next_ms(region)
    return (
        POLL_STEPS
        if next_ms is None
        else max(POLL_STEPS, (next_ms - world.now_ms) // world.step_ms)
    )
