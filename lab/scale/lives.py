"""Lives that the shipped programs lead from an empty table on: of cold lanes, of hardly used ones, of a hot one.

Rule 1: Units are those that each request was charged; none is worked out.
Rule 2: Few lanes are played, for long. So messages come one by one here and fill no batch: what SQS and Lambda take is
measured on the million (million.py), what the table takes here.
"""

from random import Random

from lab.scale.arrivals import REGION, START_MS, in_packs, lanes_of, singly
from lab.scale.lived import Lived, between, so_far, tail_of
from lab.scale.region import Region
from lab.scale.tails import Tails
from ledger.settings import Settings

SETTINGS = Settings(table="counters", region=REGION)
KEPT = Settings(table="counters", region=REGION, clean=False)
DAY_MS = 86_400_000
LOOKED = 100
"""How often the lengths of tails are looked at in what is measured."""


def cold(
    lanes: int, rate: float, *, days: float, measured: float, settings: Settings = SETTINGS, seed: int = 1
) -> tuple[Region, Lived]:
    """Lanes that change `rate` times a second, for `days`; measured: how many days at their end."""
    region = Region(settings, START_MS)
    some = lanes_of(lanes)
    region.feed(singly(some, rate, Random(seed)))
    until_ms = START_MS + int(days * DAY_MS)
    region.run(until_ms - int(measured * DAY_MS))
    before, tails = so_far(region), Tails()
    for n in reversed(range(LOOKED)):
        region.run(until_ms - int(measured * DAY_MS * n / LOOKED))
        for lane in some:
            tails.add(tail_of(region, lane))
    return region, between(before, so_far(region), tails)


def hot(rate: int, each: int, *, minutes: float, measured: float, seed: int = 1) -> Lived:
    """One lane that gets `rate` changes a second in packs of `each`, for so many minutes."""
    region = Region(SETTINGS, START_MS)
    (lane,) = lanes_of(1)
    region.feed(in_packs(lane, rate, each, Random(seed)))
    until_ms = START_MS + int(minutes * 60_000)
    region.run(until_ms - int(measured * 60_000))
    before, tails = so_far(region), Tails()
    for n in reversed(range(LOOKED)):
        region.run(until_ms - int(measured * 60_000 * n / LOOKED))
        tails.add(tail_of(region, lane) * each)
    return between(before, so_far(region), tails)
