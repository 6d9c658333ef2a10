"""One history: a cast on a world, step by step as the choices say, then the judgement.

Rule 1: Everything follows from the choices, so a seed or a list of picks is the whole history.
Rule 2: At its end whatever was on its way arrives, the compactors come to rest, and every delta is sent once more, as a
replay a year later would.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compactor.fold import fold
from compactor.report import Tally
from compactor.verify import verify
from compactor.visit import visit
from lab.histories import cast, checker
from lab.histories.packs import packer
from lab.histories.remade import WRITERS, Disaster
from ledger import items, tokens
from ledger.errors import LedgerError
from ledger.lane.add import add
from ledger.requests import Instant, Now, Program, Query, Result, drive
from ledger.settings import Settings
from ledger.values import Lane
from reader.history import entries, history
from reader.read import read
from simulator.choices import Choices
from simulator.faults import NONE, Faults, mix
from simulator.happening import by_itself
from simulator.process import Log, Process, Script
from simulator.world import Landing, World

REGIONS = ("eu-west-1", "us-east-1", "ap-south-1")
STEPS_MAX = 20_000
ROUNDS = 3
PACES = ((cast.LONG,), (cast.LONG, cast.SHORT), (cast.LONG, cast.AT_ONCE, cast.AT_ONCE))
"""Of compactors: some come several times in a row, within one read."""
IDLE_STEPS_MAX = 10
PACKED_MAX = 5
STEPS_MS = (10, 40, 160)
"""The time of a step, so that a pack's span is four times the allowed lateness, as long, or a quarter of it."""


def timed(step_ms: int) -> Settings:
    """Times in proportion to the real ones. keep is above a read's longest time and lag and four worst clocks."""
    return Settings(
        table="counters",
        region=REGIONS[0],
        allowed_lateness_ms=250 * step_ms,
        keep_ms=1_000 * step_ms,
        read_time_max_ms=300 * step_ms,
    )


@dataclass(slots=True)
class Played:
    """A history that was played: what is wrong with it, and how much happened."""

    violations: list[str]
    steps: int
    reads: int
    deltas: int
    packs: int
    cleaned: int
    faults: Faults


def play(choices: Choices, faults: Faults | None = None, log: Log | None = None) -> Played:
    """Play one history and judge it. Without `faults` the mix is drawn too."""
    faults = mix(choices) if faults is None else faults
    regions = REGIONS[: 2 + (choices.pick(3) == 2)]
    step_ms = STEPS_MS[choices.pick(len(STEPS_MS))]
    faults = replace(faults, skew_ms=faults.skew_ms * step_ms)
    skews = [choices.pick(2 * faults.skew_ms + 1) - faults.skew_ms for _ in regions]
    world = World(regions, choices, page_size=1 + choices.pick(3), lag_steps=faults.lag_steps, clock_skew_ms=skews)
    world.step_ms = step_ms
    settings = replace(timed(step_ms), regions=regions, fold_min=1 + choices.pick(3), fold_max=3 + choices.pick(4))
    if choices.pick(4) == 3:
        settings = replace(settings, shards={cast.COUNTER: 2})
    record = cast.Record()
    processes = _cast(choices, faults, world, settings, record, log)
    disaster = Disaster(world, settings, record, processes, faults, log) if faults.remade else None
    for _ in range(STEPS_MAX):
        if disaster is not None:
            disaster.step()
        if not step(world, processes, faults, log):
            break
    if disaster is not None:
        disaster.end()
    violations = list(checker.check_reads(record)) or judge_end(world, settings, record)
    cleaned = sum(tally.cleaned for tally in record.tallies)
    return Played(violations, world.step, len(record.seen), len(record.asked), record.packs, cleaned, faults)


def entrance(
    processes: list[Process], world: World, faults: Faults, log: Log | None
) -> Callable[[str, str, Callable[[], Script]], None]:
    """What adds a process by its name, its Region and its script, with a clock that is as wrong as the faults say."""

    def enter(name: str, region: str, script: Callable[[], Script]) -> None:
        process = Process(name, region, script, world, faults, log)
        if faults.skew_ms:
            process.skew_ms = world.choices.pick(2 * faults.skew_ms + 1) - faults.skew_ms
        processes.append(process)

    return enter


def _cast(
    choices: Choices, faults: Faults, world: World, settings: Settings, record: cast.Record, log: Log | None
) -> list[Process]:
    processes: list[Process] = []
    enter = entrance(processes, world, faults, log)

    def now_ms() -> int:
        return world.now_ms

    def pace() -> Sequence[int]:  # in a burst, over several visits, or when the first ones were cleaned
        return (cast.LONG, cast.LONG, cast.SHORT, cast.LATE)[choices.pick(4)]

    regions = settings.regions
    grain_ms = 100 * world.step_ms if choices.pick(4) == 3 else 1  # of the times that events carry
    packs = choices.pick(2) == 1
    for _ in range(2 + choices.pick(7) + 4 * faults.remade):  # so that a later commit is halved
        if record.numbers > cast.NUMBERS_MAX - WRITERS - PACKED_MAX:
            break
        home = regions[choices.pick(len(regions))]
        sender = cast.Sender(home, record, settings, choices, now_ms, faults.skew_ms, grain_ms)
        if packs and choices.pick(2):
            numbers = sender.numbers(2 + choices.pick(PACKED_MAX - 1))
            enter(f"packer {numbers.start}", home, packer(numbers, sender, pace()))
        else:
            (number,) = sender.numbers(1)
            enter(f"writer {number}", home, cast.writer(number, sender, pace()))
    for region in regions:
        own = replace(settings, region=region)
        reads = cast.reader(region, 6 + choices.pick(10), record, own, choices, faults.slow_reads, pace())
        enter(f"reader {region}", region, reads)
        for twin in range(1 + choices.pick(2)):
            lanes = own.lanes_of(cast.COUNTER, region)
            paces = PACES[choices.pick(len(PACES))]
            visits = cast.compactor(lanes, 6 + choices.pick(10), record, own, choices, faults.slow_visits, paces)
            enter(f"compactor {region} {twin}", region, visits)
    return processes


def step(world: World, processes: list[Process], faults: Faults, log: Log | None) -> bool:
    """One step of the history; False when nobody has anything left to do."""
    choices = world.choices
    world.step += 1
    world.now_ms += world.step_ms
    _by_itself(world, processes, faults, log)
    ready = [process for process in processes if process.ready]
    if ready:
        ready[choices.pick(len(ready))].step()
        return True
    sleeping = [process.asleep_until for process in processes if not process.done and process.asleep_until > world.step]
    if sleeping and not world.landings:
        skipped = min(sleeping) - world.step
        world.step += skipped
        world.now_ms += skipped * world.step_ms
        for _ in range(min(skipped, IDLE_STEPS_MAX)):
            _by_itself(world, processes, faults, log)
    return any(not process.done for process in processes)


def _by_itself(world: World, processes: list[Process], faults: Faults, log: Log | None) -> None:
    """What the world does without being asked, and the clocks."""
    by_itself(world, faults, (lambda what, came: log("the world", what, came)) if log else _unheard)
    if faults.skew_ms and world.choices.chance(10):
        process = processes[world.choices.pick(len(processes))]
        process.skew_ms = world.choices.pick(2 * faults.skew_ms + 1) - faults.skew_ms


def _unheard(what: object, came: object) -> None:
    """Nobody keeps a trace."""


def judge_end(world: World, settings: Settings, record: cast.Record) -> list[str]:
    """Come to rest, send every delta once more, come to rest again, and judge both."""
    try:
        return _come_to_rest(world, settings, record)
    except LedgerError as error:  # with no fault left, nothing may fail
        return [f"at the end: {type(error).__name__}: {error}"]


def _come_to_rest(world: World, settings: Settings, record: cast.Record) -> list[str]:
    wrong = _left_behind(world, settings)
    for sent_again in (False, True):
        if sent_again:
            contested = {number for rivals in record.rivals for number in rivals.numbers}
            for asked in record.asked:
                if asked.number not in contested:
                    finish(world, world.regions[asked.number % len(world.regions)], add(asked.delta))
                    asked.acknowledged = True
        for _ in range(ROUNDS):
            world.quiesce()
            world.now_ms += settings.keep_ms + 1_000 * world.step_ms
            for region in world.regions:
                own = replace(settings, region=region, fold_min=1)
                for lane in own.lanes_of(cast.COUNTER, region):
                    finish(world, region, visit(lane, Tally(), own))
        world.quiesce()
        wrong += _judge(world, settings, record)
        if wrong:
            return wrong
    strays = _strays(world, settings)
    return [*checker.check_on_time(record, strays), *checker.check_continuity(record, strays | record.lost)]


def _left_behind(world: World, settings: Settings) -> list[str]:
    """What one visit leaves at or below the watermark, listed nowhere, when all that is there has arrived."""
    world.quiesce()
    wrong = []
    for lane in settings.lanes_of(cast.COUNTER):
        before = _value_at(world, lane, settings)
        folding = fold(lane, Tally(), allowed_lateness_ms=settings.allowed_lateness_ms, fold_min=1, fold_max=3)
        finish(world, lane.region, folding)
        if (after := _value_at(world, lane, settings)) != before:
            wrong.append(f"{lane}: at rest a fold makes {after} of {before}")
        finish(world, lane.region, visit(lane, Tally(), replace(settings, region=lane.region, clean=False)))
        replica = world.replicas[lane.region]
        checkpoint = replica.item(items.checkpoint_key(lane))
        if checkpoint is None:
            continue
        upto = tokens.to_bytes(items.checkpoint_of(lane, checkpoint).watermark)
        folded = [cell.item for sk, cell in replica.cells[items.fold_pk(lane)].items() if sk.startswith("segment#")]
        listed = {token for item in folded if item for token, _ in items.segment_of(lane, item)}
        there = [cell.item for cell in replica.cells.get(items.delta_pk(lane), {}).values()]
        held = {token for item in there if item for token in items.entries_of(lane, item).tokens}
        left = sorted(tokens.from_bytes(token) for token in held - listed if token <= upto)
        wrong += [f"{lane}: a visit left the stray {token}" for token in left]
    return wrong


def _value_at(world: World, lane: Lane, settings: Settings) -> int:
    """What a strong read of a lane in its own Region finds."""
    program = read([lane], consistent=True, read_time_max_ms=settings.read_time_max_ms)
    return finish(world, lane.region, program)[1][0].value


def _strays(world: World, settings: Settings) -> set[int]:
    """The deltas that were strays once: settled, not folded. A fold's segment is the first one filed under its hi."""
    strays: set[int] = set()
    for lane in settings.lanes_of(cast.COUNTER):
        segments, _ = finish(world, lane.region, history(lane, consistent=True, read_time_max_ms=10**9))
        folded: set[str] = set()
        for segment in sorted(segments, key=lambda each: each.version):
            if segment.hi in folded:
                strays.update(change.bit_length() // 2 for _, change in segment)
            folded.add(segment.hi)
    return strays


def _judge(world: World, settings: Settings, record: cast.Record) -> list[str]:
    lanes, limit = settings.lanes_of(cast.COUNTER), settings.read_time_max_ms
    values: dict[str, int] = {}
    histories: dict[str, list[int]] = {}
    wrong: list[str] = []
    for region in world.regions:
        _, sums = finish(world, region, read(lanes, consistent=True, read_time_max_ms=limit))
        values[region] = sum(each.value for each in sums)
        histories[region] = []
        for lane in lanes:
            segments, tail = finish(world, region, history(lane, consistent=True, read_time_max_ms=limit))
            histories[region] += [entry.change for entry in entries(lane, segments, tail)]
    contested = {rivals.one.delta.token for rivals in record.rivals}
    for lane in lanes:
        differences = finish(world, lane.region, verify(lane)).differences
        wrong += [each for each in differences if not any(token in each for token in contested)]
        wrong += [
            f"{lane}: {left} items that were counted long ago are not cleaned in {region}"
            for region in world.regions
            if (left := _uncleaned(world, region, lane, contested))
        ]
    return [*wrong, *checker.check_end(record, values, histories)]


def _uncleaned(world: World, region: str, lane: Lane, contested: Collection[str]) -> int:
    """How many items there are that hold no contested token: of those clean keeps the one that does not count."""
    there = world.answer(region, Query(items.delta_pk(lane))).items
    held = [{tokens.from_bytes(token) for token in items.entries_of(lane, item).tokens} for item in there]
    return sum(each.isdisjoint(contested) for each in held)


def finish(world: World, region: str, program: Program[Result]) -> Result:
    """Run a program alone, with no faults and a right clock."""

    def answer(request: Any) -> Any:
        if isinstance(request, Now):
            return Instant(world.now_ms, world.now_ms)
        given = world.answer(region, request)
        while isinstance(given, Landing) and given.left:
            world.land(given, 0)
        return None if isinstance(given, Landing) else given

    return drive(program, answer)


__all__ = ["NONE", "Played", "play"]
