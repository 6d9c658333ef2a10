"""Histories of the deployed service: writers, readers, and in each Region `ring`, `compact` and
`sweep` as shipped. A history of thresholds has them, and a limited counter beside.
"""

from collections import Counter
from dataclasses import replace

from lab.histories.judges.checker import Record
from lab.histories.judges.lanes import COUNTER, AtRest, Reads
from lab.histories.judges.service import SEATS, ServiceJudge
from lab.histories.parts.served_cast import Service
from lab.histories.stage.served_world import ServedWorld
from lab.histories.stage.stage import REGIONS, Played, Stage, in_steps_of, one_of, timed
from ledger.core.limit import Limit, Threshold
from ledger.core.settings import Settings
from simulator.choices import Choices
from simulator.faults import Faults, mix
from simulator.process import Log

STEPS_MAX = 40_000
STEPS_MS = (10, 10, 10, 40, 160)
CALM_MS = 40
"""A step no longer than this, and no pause is as long as a second ask waits beyond a commit."""


def play(
    choices: Choices,
    faults: Faults | None = None,
    log: Log | None = None,
    *,
    thresholds: bool = False,
) -> Played:
    """Play one history of the service, or of thresholds, and judge it.

    Without `faults` the mix is drawn too.
    """
    faults = replace(mix(choices) if faults is None else faults, remade=False)
    regions = REGIONS[: 1 + choices.pick(3)]
    step_ms = one_of(choices, STEPS_MS)
    faults = in_steps_of(step_ms, faults)
    faults = replace(faults, skew_ms=faults.skew_ms // 4, cut=faults.cut // 4)
    late = one_of(choices, (0, 0, 30, 3_600_000 // step_ms))
    lost, doubled = 40 * choices.pick(3), 60 * choices.pick(3)
    world = ServedWorld(regions, choices, page_size=1 + choices.pick(3), lag_steps=faults.lag_steps)
    world.step_ms, world.now_ms, world.shows_changes = step_ms, 10_000_000, thresholds
    world.lost, world.doubled, world.stream_late = lost, doubled, late
    record, stage = Record(), Stage(world, faults, log)
    stage.judged_by(Reads(record))
    service = Service(stage, _settings(choices, regions, step_ms, thresholds), record)
    service.enter_all()
    if thresholds:
        service.settings = _with_thresholds(service.settings, choices, record.numbers)
    stage.play(service.joined_again, STEPS_MAX)
    calm = step_ms < CALM_MS or not (faults.pause or faults.slow_visits or faults.late)
    settings, over = service.settings, all(service.is_over(region) for region in regions)
    if over:
        swept, dropped = world.purged or not calm, stage.counts["dropped"] > 0
        stage.judged_by(ServiceJudge(world, settings, record.lost, swept, dropped))
    stage.judged_by(AtRest(world, replace(settings, clean=True), record))
    played = stage.ended()
    if thresholds:
        told = {each["id"] for post in world.posts.values() for each in post.events}
        played.counts = Counter(crossings=len(told) if over else 0)
    else:
        played.counts = stage.counts + Counter(purged=int(world.purged))
    return played


def _settings(
    choices: Choices, regions: tuple[str, ...], step_ms: int, thresholds: bool
) -> Settings:
    settings = replace(
        timed(step_ms), regions=regions, fold_min=1 + choices.pick(4), fold_max=4 + choices.pick(4)
    )
    settings = replace(settings, clean=choices.pick(4) != 3)
    if choices.pick(3) == 2:
        settings = replace(settings, shards={COUNTER: 2})
    if thresholds:
        limit = Limit(floor=0, ceiling=6 + choices.pick(6), region=regions[0])
        settings = replace(settings, limits={SEATS: limit})
    return settings


def _with_thresholds(settings: Settings, choices: Choices, numbers: int) -> Settings:
    """Of both counters, each told in one of the Regions. One of them is crossed by the last of so
    many changes, whichever that is.
    """
    low, most = 4 ** choices.pick(16), (4**numbers - 1) // 3
    least = 1 + choices.pick(4)

    def region() -> str | None:
        return one_of(choices, (None, *settings.regions))

    of_all = (
        Threshold(below=low, region=region()),
        Threshold(above=max(low, most - 1), name="all", region=region()),
    )
    of_seats = (
        Threshold(below=least, region=region()),
        Threshold(above=least + choices.pick(3), region=region()),
    )
    half = Threshold(of_ceiling=0.5, region=region())
    return replace(settings, thresholds={COUNTER: of_all, SEATS: (*of_seats, half)})
