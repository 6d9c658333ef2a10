"""Histories of the deployed service: writers, readers, and in each Region `ring`, `compact` and `sweep` as shipped.

Rule 1: When everybody has come to an end, what messages told of is served: served_judge.py. Then comes the judgement of
every other history.
Rule 2: A history of thresholds has them, and a limited counter beside.
"""

from collections import Counter
from dataclasses import replace

from lab.histories import checker
from lab.histories.cast import COUNTER
from lab.histories.history import judge_end, timed
from lab.histories.served_cast import SEATS, Service
from lab.histories.served_judge import judge
from lab.histories.served_world import ServedWorld
from lab.histories.theatre import REGIONS, Played, Theatre, finish, in_steps_of, one_of
from ledger.limit import Limit, Threshold
from ledger.settings import Settings
from service.compact.result import Done
from service.compact.serve import serve
from service.messages import jobs_of
from service.sweep.sweep import Swept, sweep
from simulator.choices import Choices
from simulator.faults import Faults, mix
from simulator.process import Log

STEPS_MAX = 40_000
STEPS_MS = (10, 10, 10, 40, 160)
HOURS = 0.01
"""Of a sweep's pass."""

CALM_MS = 40
"""A step no longer than this, and no pause is as long as a second ask waits beyond a commit."""


def play(choices: Choices, faults: Faults | None = None, log: Log | None = None, *, thresholds: bool = False) -> Played:
    """Play one history of the service, or of thresholds, and judge it. Without `faults` the mix is drawn too."""
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
    record = checker.Record()
    service = Service(Theatre(world, faults, log), _settings(choices, regions, step_ms, thresholds), record)
    service.enter_all()
    if thresholds:
        service.settings = _with_thresholds(service.settings, choices, record.numbers)
    service.theatre.play(service.joined_again, STEPS_MAX)
    calm = step_ms < CALM_MS or not (faults.pause or faults.slow_visits or faults.late)
    over = all(service.is_over(region) for region in regions)
    wrong = list(checker.check_reads(record))
    if not wrong and over:
        swept = world.purged or not calm
        wrong = _swept(service) if swept else []
        wrong = wrong or judge(world, service.settings, swept, dropped=service.counts["dropped"] > 0)
    crossings = len({each["id"] for post in world.posts.values() for each in post.events}) if over else 0
    wrong = wrong or judge_end(world, replace(service.settings, clean=True), record)
    counts = Counter(crossings=crossings) if thresholds else service.counts + Counter(purged=int(world.purged))
    return Played(wrong, world.step, counts)


def _settings(choices: Choices, regions: tuple[str, ...], step_ms: int, thresholds: bool) -> Settings:
    settings = replace(timed(step_ms), regions=regions, fold_min=1 + choices.pick(4), fold_max=4 + choices.pick(4))
    settings = replace(settings, clean=choices.pick(4) != 3)
    if choices.pick(3) == 2:
        settings = replace(settings, shards={COUNTER: 2})
    if thresholds:
        limit = Limit(floor=0, ceiling=6 + choices.pick(6), region=regions[0])
        settings = replace(settings, limits={SEATS: limit})
    return settings


def _with_thresholds(settings: Settings, choices: Choices, numbers: int) -> Settings:
    """Of both counters, each told in one of the Regions. One of them is crossed by the last of so many changes,
    whichever that is.
    """
    low, most = 4 ** choices.pick(16), (4**numbers - 1) // 3
    least = 1 + choices.pick(4)

    def region() -> str | None:
        return one_of(choices, (None, *settings.regions))

    of_all = (Threshold(below=low, region=region()), Threshold(above=max(low, most - 1), name="all", region=region()))
    of_seats = (Threshold(below=least, region=region()), Threshold(above=least + choices.pick(3), region=region()))
    return replace(settings, thresholds={COUNTER: of_all, SEATS: of_seats})


def _swept(service: Service) -> list[str]:
    """Two passes of the sweep, and what they send is served, with no fault left; but some is stopped at first."""
    world = service.world
    world.lost = world.doubled = world.stream_late = 0
    for _ in range(2):
        for region in world.regions:
            world.quiesce()
            world.now_ms += 3_600_000 + service.settings.keep_ms
            own = service.own(region)
            for run in range(3):
                finish(world, region, sweep(Swept(), own, lambda: False, lambda: False, hours=HOURS))
                world.now_ms += int(HOURS * 3_600_000) // (1 + run)
            if not _served(world, own):
                return [f"after the sweep the queue of {region} is never empty"]
    return []


def _served(world: ServedWorld, own: Settings) -> bool:
    for _ in range(1_000):
        batch = world.receive(own.region, 10)
        for job in (job for message in batch for job in jobs_of(message.body, own)):
            stops = world.choices.pick(30) if world.choices.pick(2) and job.tries < 3 else 10**9
            left = iter(range(stops))
            finish(world, own.region, serve(Done(job=job), own, lambda: next(left, None) is None))  # noqa: B023
        world.delete(own.region, batch)
        if not world.posts[own.region].queue:
            return True
        world.now_ms = max(world.now_ms, world.next_ms(own.region) or 0)
    return False
