"""One history of lanes: a cast on a world, step by step as the choices say, then the judgement.

Rule 1: At its end whatever was on its way arrives, the compactors come to rest, and every delta is
sent once more, as a replay a year later would.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from unittest.mock import patch

from compactor.fold import fold
from compactor.report import Tally
from compactor.verify import verify
from compactor.visit import visit
from lab.histories.judges import checker
from lab.histories.parts.cast import COUNTER, NUMBERS_MAX, Cast
from lab.histories.parts.remade import ROUNDS_MAX, Disaster
from lab.histories.parts.series import DAYS, FREE_BYTES, charts, charts_at_the_end
from lab.histories.parts.writers import PACKED_MAX, Sender, enter_writer
from lab.histories.stage.theatre import (
    PACE,
    PACES,
    REGIONS,
    Played,
    Theatre,
    any_skew,
    finish,
    in_steps_of,
    one_of,
    strays_left,
)
from ledger.core import items, tokens
from ledger.core.errors import LedgerError
from ledger.core.requests import Query
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.lane.add import add
from reader.history import entries, history
from reader.read import read
from simulator.choices import Choices
from simulator.faults import Faults, mix
from simulator.process import Log
from simulator.world import World

ROUNDS = 3
STEPS_MS = (10, 40, 160)
"""The time of a step, so that a pack's span is four times the allowed lateness, as long, or a
quarter of it.
"""


def timed(step_ms: int) -> Settings:
    """Times in proportion to the real ones.

    keep is above a read's longest time and lag and four worst clocks.
    """
    return Settings(
        table="counters",
        region=REGIONS[0],
        allowed_lateness_ms=250 * step_ms,
        keep_ms=1_000 * step_ms,
        read_time_max_ms=300 * step_ms,
    )


def play_charts(choices: Choices, faults: Faults | None = None, log: Log | None = None) -> Played:
    """As `play`, with readers of series beside the others."""
    faults = mix(choices) if faults is None else faults
    steps, free_bytes = one_of(choices, DAYS), one_of(choices, FREE_BYTES)
    with (
        patch("ledger.core.days.DAY_MS", steps * min(STEPS_MS)),
        patch("ledger.core.items.FREE_BYTES", free_bytes),
    ):
        return play(choices, faults, log, charted=True)


def play(
    choices: Choices, faults: Faults | None = None, log: Log | None = None, *, charted: bool = False
) -> Played:
    """Play one history and judge it. Without `faults` the mix is drawn too."""
    faults = mix(choices) if faults is None else faults
    regions = REGIONS[: 2 + (choices.pick(3) == 2)]
    step_ms = one_of(choices, STEPS_MS)
    faults = in_steps_of(step_ms, faults)
    skews = [any_skew(choices, faults) for _ in regions]
    world = World(
        regions,
        choices,
        page_size=1 + choices.pick(3),
        lag_steps=faults.lag_steps,
        clock_skew_ms=skews,
    )
    world.step_ms = step_ms
    settings = replace(
        timed(step_ms), regions=regions, fold_min=1 + choices.pick(3), fold_max=3 + choices.pick(4)
    )
    if choices.pick(4) == 3:
        settings = replace(settings, shards={COUNTER: 2})
    record = checker.Record()
    cast = Cast(Theatre(world, faults, log), settings, record)
    _enter_all(cast)
    for region in regions if charted else ():
        script = partial(charts, cast, region, 6 + choices.pick(10), one_of(choices, PACE))
        cast.theatre.enter(f"charts {region}", region, script)
    disaster = Disaster(cast) if faults.remade else None
    if disaster is None:
        cast.theatre.play()
    elif cast.theatre.play(disaster.is_due):
        disaster.strike()
    counts = Counter(deltas=len(record.asked), packs=record.packs, reads=len(record.seen))
    counts["cleaned"] = sum(tally.cleaned for tally in record.tallies)
    counts["charts"] = len(record.charts)
    wrong = list(checker.check_reads(record)) or judge_end(world, settings, record)
    return Played(
        wrong or (list(charts_at_the_end(world, settings, record)) if charted else []),
        world.step,
        counts,
    )


def _enter_all(cast: Cast) -> None:
    theatre, choices, faults = cast.theatre, cast.choices, cast.theatre.faults

    def pace() -> Sequence[int]:
        return one_of(choices, PACE)

    grain_ms = 100 * theatre.world.step_ms if choices.pick(4) == 3 else 1
    packs = choices.pick(2) == 1
    for _ in range(2 + choices.pick(7) + 4 * faults.remade):  # so that a later commit is halved
        if cast.record.numbers > NUMBERS_MAX - ROUNDS_MAX - PACKED_MAX:
            break
        enter_writer(Sender(cast, cast.any_region(), grain_ms), packs, pace)
    for region in cast.settings.regions:
        theatre.enter(
            f"reader {region}", region, partial(cast.reads, region, 6 + choices.pick(10), pace())
        )
        for twin in range(1 + choices.pick(2)):
            paces = one_of(choices, PACES)
            rounds = iter(range(6 + choices.pick(10)))
            visits = partial(cast.visits, region, rounds, paces, slow=faults.slow_visits)
            theatre.enter(f"compactor {region} {twin}", region, visits)


def judge_end(world: World, settings: Settings, record: checker.Record) -> list[str]:
    try:
        return _come_to_rest(world, settings, record)
    except LedgerError as error:  # with no fault left, nothing may fail
        return [f"at the end: {type(error).__name__}: {error}"]


def _come_to_rest(world: World, settings: Settings, record: checker.Record) -> list[str]:
    wrong = _left_behind(world, settings)
    for sent_again in (False, True):
        if sent_again:
            contested = {number for rivals in record.rivals for number in rivals.numbers}
            for asked in record.asked:
                if asked.number not in contested:
                    finish(
                        world, world.regions[asked.number % len(world.regions)], add(asked.delta)
                    )
                    asked.acknowledged = True
        for _ in range(ROUNDS):
            world.quiesce()
            # ahead of now?
            latest_ms = max(
                (tokens.time_ms(asked.delta.token) for asked in record.asked), default=0
            )
            world.now_ms = max(world.now_ms, latest_ms) + settings.keep_ms + 1_000 * world.step_ms
            for region in world.regions:
                own = replace(settings, region=region, fold_min=1)
                for lane in own.lanes_of(COUNTER, region):
                    finish(world, region, visit(lane, Tally(), own))
        world.quiesce()
        wrong += _judge(world, settings, record)
        if wrong:
            return wrong
    strays = strays_of(world, settings)
    return [
        *checker.check_on_time(record, strays),
        *checker.check_continuity(record, strays | record.lost),
    ]


def _left_behind(world: World, settings: Settings) -> list[str]:
    """What one visit leaves at or below the watermark, listed nowhere, when all that is there
    has arrived.
    """
    world.quiesce()
    wrong = []
    for lane in settings.lanes_of(COUNTER):
        before = _value_at(world, lane, settings)
        finish(world, lane.region, fold(lane, Tally(), replace(settings, fold_min=1, fold_max=3)))
        if (after := _value_at(world, lane, settings)) != before:
            wrong.append(f"{lane}: at rest a fold makes {after} of {before}")
        finish(
            world,
            lane.region,
            visit(lane, Tally(), replace(settings, region=lane.region, clean=False)),
        )
        left = sorted(map(tokens.from_bytes, strays_left(world, lane)))
        wrong += [f"{lane}: a visit left the stray {token}" for token in left]
    return wrong


def _value_at(world: World, lane: Lane, settings: Settings) -> int:
    program = read([lane], consistent=True, read_time_max_ms=settings.read_time_max_ms)
    return finish(world, lane.region, program)[1][0].value


def strays_of(world: World, settings: Settings) -> set[int]:
    """The deltas that were strays once: settled, not folded.

    A fold's segment is the first one filed under its hi.
    """
    strays: set[int] = set()
    for lane in settings.lanes_of(COUNTER):
        segments, _ = finish(
            world, lane.region, history(lane, consistent=True, read_time_max_ms=10**9)
        )
        folded: set[str] = set()
        for segment in sorted(segments, key=lambda each: each.version):
            if segment.hi in folded:
                strays.update(change.bit_length() // 2 for _, change in segment)
            folded.add(segment.hi)
    return strays


def _judge(world: World, settings: Settings, record: checker.Record) -> list[str]:
    lanes, limit = settings.lanes_of(COUNTER), settings.read_time_max_ms
    values: dict[str, int] = {}
    histories: dict[str, list[int]] = {}
    wrong: list[str] = []
    for region in world.regions:
        _, sums = finish(world, region, read(lanes, consistent=True, read_time_max_ms=limit))
        values[region] = sum(each.value for each in sums)
        histories[region] = []
        for lane in lanes:
            segments, tail = finish(
                world, region, history(lane, consistent=True, read_time_max_ms=limit)
            )
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
    """How many items there are that hold no contested token: of those clean keeps the one that
    does not count.
    """
    there = world.answer(region, Query(items.delta_pk(lane))).items
    held = [
        {tokens.from_bytes(token) for token in items.entries_of(lane, item).tokens}
        for item in there
    ]
    return sum(each.isdisjoint(contested) for each in held)
