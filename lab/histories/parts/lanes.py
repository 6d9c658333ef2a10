"""One history of lanes: a cast on a world, step by step as the choices say, then the judgement."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from unittest.mock import patch

from lab.histories.judges.checker import Record
from lab.histories.judges.lanes import COUNTER, AtRest, Reads, SeriesAtRest
from lab.histories.parts.cast import NUMBERS_MAX, Cast
from lab.histories.parts.remade import ROUNDS_MAX, Disaster
from lab.histories.parts.series import DAYS, FREE_BYTES, charts
from lab.histories.parts.writers import PACKED_MAX, Sender, enter_writer
from lab.histories.stage.stage import (
    PACE,
    PACES,
    REGIONS,
    Played,
    Stage,
    any_skew,
    in_steps_of,
    one_of,
    timed,
)
from simulator.choices import Choices
from simulator.faults import Faults, mix
from simulator.process import Log
from simulator.world import World

STEPS_MS = (10, 40, 160)
"""The time of a step, so that a pack's span is four times the allowed lateness, as long, or a
quarter of it.
"""


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
    record = Record()
    stage = Stage(world, faults, log)
    stage.judged_by(Reads(record), AtRest(world, settings, record))
    cast = Cast(stage, settings, record)
    _enter_all(cast)
    for region in regions if charted else ():
        script = partial(charts, cast, region, 6 + choices.pick(10), one_of(choices, PACE))
        stage.enter(f"charts {region}", region, script)
    if charted:
        stage.judged_by(SeriesAtRest(world, settings, record))
    disaster = Disaster(cast) if faults.remade else None
    if disaster is None:
        stage.play()
    elif stage.play(disaster.is_due):
        disaster.strike()
    stage.counts.update(deltas=len(record.asked), packs=record.packs, reads=len(record.seen))
    stage.counts["cleaned"] = sum(tally.cleaned for tally in record.tallies)
    stage.counts["charts"] = len(record.charts)
    return stage.ended()


def _enter_all(cast: Cast) -> None:
    stage, choices, faults = cast.stage, cast.choices, cast.stage.faults

    def pace() -> Sequence[int]:
        return one_of(choices, PACE)

    grain_ms = 100 * stage.world.step_ms if choices.pick(4) == 3 else 1
    packs = choices.pick(2) == 1
    for _ in range(2 + choices.pick(7) + 4 * faults.remade):  # so that a later commit is halved
        if cast.record.numbers > NUMBERS_MAX - ROUNDS_MAX - PACKED_MAX:
            break
        enter_writer(Sender(cast, cast.any_region(), grain_ms), packs, pace)
    for region in cast.settings.regions:
        stage.enter(
            f"reader {region}", region, partial(cast.reads, region, 6 + choices.pick(10), pace())
        )
        for twin in range(1 + choices.pick(2)):
            paces = one_of(choices, PACES)
            rounds = iter(range(6 + choices.pick(10)))
            visits = partial(cast.visits, region, rounds, paces, slow=faults.slow_visits)
            stage.enter(f"compactor {region} {twin}", region, visits)
