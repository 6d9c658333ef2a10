"""Histories of the deployed service: writers, readers, and in each Region `ring`, `compact` and `sweep` as shipped.

Rule 1: Everything follows from the choices, so a seed is the whole history.
Rule 2: When everybody has come to an end, what messages told of is served: served_judge.py. Then comes the judgement of
every other history.
Rule 3: A history of thresholds has them, and a limited counter beside: served_thresholds.py.
"""

import base64
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from compactor.named import Named
from lab.histories import cast, checker
from lab.histories.history import PACES, PACKED_MAX, REGIONS, entrance, finish, judge_end, step, timed
from lab.histories.packs import packer
from lab.histories.served_judge import served
from lab.histories.served_thresholds import seller, told, with_limits, with_thresholds
from lab.histories.served_world import Mishaps, Post, ServedWorld
from ledger.errors import DamagedItem, LaneDamaged, LedgerError
from ledger.lane.tail import through
from ledger.settings import Settings
from service.compact.result import Done
from service.compact.serve import serve, serve_lane, tasks_of
from service.job_queue import Enqueue
from service.jobs import Job, Settle
from service.messages import jobs_of, message_of
from service.ring.records import arrived
from service.ring.ring import Memory, Rung, ring
from service.sweep.sweep import Swept, sweep
from simulator.choices import Choices
from simulator.faults import Faults, mix
from simulator.process import Log, Process, Script, Sleep

STEPS_MAX = 40_000
STEPS_MS = (10, 10, 10, 40, 160)
EVERY_S = (1, 1, 6, 60)
HOURS = 0.01
"""Of a sweep's pass."""

AHEAD_MS = 200_000
"""How far some producers' clocks are ahead: less than the library allows, more than a ring waits."""

POLL_STEPS = 40
CALM_MS = 40
"""A step no longer than this, and no pause is as long as a second ask waits beyond a commit."""


@dataclass(slots=True)
class Played:
    """A history that was played: what is wrong with it, and how much happened. purged: a queue lost what was in it."""

    violations: list[str]
    steps: int
    visits: int
    rings: int
    late: int
    purged: bool
    faults: Faults
    crossings: int = 0
    """That were told, of histories that came to their end."""


@dataclass(slots=True)
class Service:
    """What the processes of the service share. producers: who puts deltas."""

    world: ServedWorld
    settings: Settings
    every_s: int
    producers: list[Process]
    memories: dict[str, list[Memory]]
    visits: int = 0
    rings: int = 0
    late: int = 0
    dropped: int = 0
    damaged: list[str] | None = None

    def is_over(self, region: str) -> bool:
        """Whether nothing is left to do in a Region, and nothing can come."""
        world = self.world
        written = all(each.done for each in self.producers) and not world.late and not world.landings
        if self.settings.thresholds and any(post.queue for post in world.posts.values()):
            return False  # what another Region commits may be a crossing here
        arrived = not any(replica.inbox for replica in world.replicas.values())
        posts = world.posts.values()
        read = all(post.position == len(post.records) for post in posts)
        return written and arrived and read and not world.posts[region].queue

    def own(self, region: str) -> Settings:
        return replace(self.settings, region=region)


def play(choices: Choices, faults: Faults | None = None, log: Log | None = None, *, thresholds: bool = False) -> Played:
    """Play one history of the service, or of thresholds, and judge it. Without `faults` the mix is drawn too."""
    faults = replace(mix(choices) if faults is None else faults, remade=False)
    regions = REGIONS[: 1 + choices.pick(3)]
    step_ms = STEPS_MS[choices.pick(len(STEPS_MS))]
    faults = replace(faults, skew_ms=faults.skew_ms * step_ms // 4, cut=faults.cut // 4)
    late = (0, 0, 30, 3_600_000 // step_ms)[choices.pick(4)]
    mishaps = Mishaps(lost=40 * choices.pick(3), doubled=60 * choices.pick(3), stream_late=late)
    world = ServedWorld(regions, choices, mishaps, page_size=1 + choices.pick(3), lag_steps=faults.lag_steps)
    world.step_ms = step_ms
    world.now_ms = 10_000_000
    settings = replace(timed(step_ms), regions=regions, fold_min=1 + choices.pick(4), fold_max=4 + choices.pick(4))
    settings = replace(settings, clean=choices.pick(4) != 3)
    if choices.pick(3) == 2:
        settings = replace(settings, shards={cast.COUNTER: 2})
    if thresholds:
        world.shows_changes, settings = True, with_limits(settings, choices)
    record = cast.Record()
    service = Service(world, settings, EVERY_S[choices.pick(len(EVERY_S))], [], {})
    processes = _cast(choices, faults, service, record, log)
    if thresholds:
        settings = service.settings = with_thresholds(settings, choices, record.numbers)
    for _ in range(STEPS_MAX):
        if all(each.done for each in service.producers) and not world.purged:
            world.cut.clear()
        if not step(world, processes, faults, log):
            break
    violations = list(checker.check_reads(record))
    calm = step_ms < CALM_MS or not (faults.pause or faults.slow_visits or faults.late)
    over = all(service.is_over(region) for region in regions)
    if not violations and over:
        swept = world.purged or not calm
        violations = _swept(service, choices) if swept else []
        violations = violations or served(world, settings, swept, dropped=service.dropped > 0)
        violations = violations or told(world, settings)
    crossings = len({each["id"] for post in world.posts.values() for each in post.events}) if over else 0
    violations = violations or judge_end(world, replace(settings, clean=True), record)
    return Played(violations, world.step, service.visits, service.rings, service.late, world.purged, faults, crossings)


def _cast(choices: Choices, faults: Faults, service: Service, record: cast.Record, log: Log | None) -> list[Process]:
    world, settings = service.world, service.settings
    processes: list[Process] = []
    enter = entrance(processes, world, faults, log)
    packs = choices.pick(2) == 1
    pace = (cast.LONG, cast.LATE, cast.LATE)[choices.pick(3)]
    for _ in range(5 + choices.pick(20)):
        if record.numbers > cast.NUMBERS_MAX - PACKED_MAX - 1:
            break
        home = settings.regions[choices.pick(len(settings.regions))]
        ahead_ms = AHEAD_MS if len(processes) % 4 == 3 and settings.fold_min < 3 else 0
        sender = cast.Sender(home, record, settings, choices, lambda: world.now_ms, faults.skew_ms, 1, ahead_ms)
        if packs and choices.pick(2):
            numbers = sender.numbers(2 + choices.pick(PACKED_MAX - 1))
            enter(f"packer {numbers.start}", home, packer(numbers, sender, pace))
        else:
            (number,) = sender.numbers(1)
            enter(f"writer {number}", home, cast.writer(number, sender, pace))
    for number in range(4 + choices.pick(8)) if settings.limits else ():
        home = settings.regions[choices.pick(len(settings.regions))]
        enter(f"seller {number}", home, seller(number, replace(settings, region=home), choices, pace))
    service.producers = list(processes)
    rare = 4 if settings.limits else 16
    for region in settings.regions:
        own = service.own(region)
        reads = cast.reader(region, 3 + choices.pick(6), record, own, choices, faults.slow_reads, cast.LONG)
        enter(f"reader {region}", region, reads)
        service.memories[region] = [Memory() for _ in range(1 + choices.pick(2))]
        enter(f"ring {region}", region, _ring(service, region, choices))
        for number in range(1 + choices.pick(2)):
            enter(f"compact {region} {number}", region, _compact(service, region, record, choices))
        if choices.pick(8) == 7:  # a compactor of one's own, beside the service
            lanes, paces = own.lanes_of(cast.COUNTER, region), PACES[choices.pick(len(PACES))]
            enter(f"compactor {region}", region, cast.compactor(lanes, 4, record, own, choices, False, paces))
        if choices.pick(rare) == rare - 1:
            enter(f"purge {region}", region, _purge(service, region, choices))
    return processes


def _ring(service: Service, region: str, choices: Choices) -> Callable[[], Script]:
    """Reads the stream, a batch after the other, by one of its containers; after a crash by a new one."""
    world, memories = service.world, service.memories[region]
    began: list[bool] = []

    def script() -> Script:
        if began:
            memories[choices.pick(len(memories))] = Memory()
        began.append(True)
        while not service.is_over(region):
            batch = world.read_stream(region, 1 + choices.pick(6))
            if not batch:
                yield Sleep(POLL_STEPS)
                continue
            records = [_event(region, number, each) for number, each in enumerate(batch)]
            came = arrived(records, service.own(region))
            done = Rung()
            memory = memories[choices.pick(len(memories))]
            yield from _sent(ring(came, done, memory, service.own(region), service.every_s))
            service.rings += done.rung
            service.late += done.late
            world.posts[region].position += came.first_of(done.failed)[0] if done.failed else len(batch)

    return script


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


def _event(region: str, number: int, record: Any) -> dict[str, Any]:
    """A record as Lambda hands it over."""
    image = {
        name: {"B": base64.b64encode(value["B"]).decode()} if "B" in value else value
        for name, value in record.item.items()
    }
    change: dict[str, Any] = {"Keys": {"pk": {"S": record.key.pk}, "sk": {"S": record.key.sk}}, "NewImage": image}
    change |= {"SequenceNumber": str(number), "ApproximateCreationDateTime": record.made_ms / 1_000}
    return {"eventName": "INSERT" if record.new else "MODIFY", "dynamodb": change}


def _compact(service: Service, region: str, record: cast.Record, choices: Choices) -> Callable[[], Script]:
    """Serves the work queue: the messages of a lane together, and each is deleted when it was served."""
    world = service.world

    def script() -> Script:
        own = service.own(region)
        while not service.is_over(region):
            batch = world.receive(region, 1 + choices.pick(3))
            if not batch:
                yield Sleep(_until(world, region))
                continue
            jobs = [(str(n), job) for n, message in enumerate(batch) for job in jobs_of(message.body, own)]
            lost = set[str]()
            for tasks in tasks_of((name, _otherwise(job)) for name, job in jobs):
                deadline = world.step + (choices.pick(60) if choices.pick(8) == 7 else 10**9)
                stop = lambda: world.step > deadline  # noqa: E731, B023
                yield from _sent(serve_lane(tasks, own, stop, commits_max=1 + choices.pick(3)))
                for task in tasks:
                    done = task.done
                    lost |= task.ids if done.lost is not None else set()
                    service.visits += done.visited
                    service.dropped += done.outcome == "gave up" and not done.sent
                    if done.lost is not None and not isinstance(done.lost, LedgerError):
                        raise done.lost
                    if isinstance(done.error, DamagedItem | LaneDamaged):
                        record.broken.append(f"a visit to {task.job.lane}: {done.error}")
            world.delete(region, [message for n, message in enumerate(batch) if str(n) not in lost])

    return script


def _otherwise(job: Job) -> Job:
    """The same job, as it may come, too, by its own bits: after many tries, or with a range in the place of names."""
    drawn = crc32(message_of(job).encode())
    if isinstance(job, Settle) and job.named.keys and not job.again and drawn % 2:
        keys, between = job.named.keys, job.named.between
        job = replace(job, named=Named((), ((keys[0], keys[-1]), *between)))
    return replace(job, tries=job.tries + (5 if drawn // 2 % 4 == 3 else 0))


def _until(world: ServedWorld, region: str) -> int:
    """The steps until a message can be received, if that is known to be long."""
    next_ms = world.next_ms(region)
    return POLL_STEPS if next_ms is None else max(POLL_STEPS, (next_ms - world.now_ms) // world.step_ms)


def _purge(service: Service, region: str, choices: Choices) -> Callable[[], Script]:
    def script() -> Script:
        yield Sleep(cast.LATE[choices.pick(len(cast.LATE))])
        while service.settings.thresholds and not all(each.done for each in service.producers):
            yield Sleep(POLL_STEPS)  # so that what asked for the last evaluation is lost
        service.world.purge(region)

    return script


def _swept(service: Service, choices: Choices) -> list[str]:
    """Two passes of the sweep, and what they send is served, with no fault left; but some is stopped at first."""
    world = service.world
    world.mishaps = Mishaps()
    for _ in range(2):
        for region in world.regions:
            world.quiesce()
            world.now_ms += 3_600_000 + service.settings.keep_ms
            own = service.own(region)
            for run in range(3):
                finish(world, region, sweep(Swept(), own, lambda: False, lambda: False, hours=HOURS))
                world.now_ms += int(HOURS * 3_600_000) // (1 + run)
            for _ in range(1_000):
                batch = world.receive(region, 10)
                for job in (job for message in batch for job in jobs_of(message.body, own)):
                    left = iter(range(choices.pick(30) if choices.pick(2) and job.tries < 3 else 10**9))
                    finish(world, region, serve(job, Done(), own, lambda: next(left, None) is None))  # noqa: B023
                world.delete(region, batch)
                if not world.posts[region].queue:
                    break
                world.now_ms = max(world.now_ms, world.next_ms(region) or 0)
            else:
                return [f"after the sweep the queue of {region} is never empty"]
    return []


__all__ = ["Played", "Post", "play"]
