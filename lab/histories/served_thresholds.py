"""Thresholds in histories of the service: of the counter, and of a limited one beside it; and what is judged at rest.

Rule 1: It knows the promise and not the code: the side is the truth of the value, every crossing was told, and each id
says one thing.
Rule 2: Of two crossings that follow each other the later one has seen what the earlier one had: whatever left the value
in between is a stray.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from lab.histories import cast, history
from lab.histories.checker import deltas_in
from lab.histories.served_world import ServedWorld
from ledger import tokens
from ledger.errors import LedgerError
from ledger.gate import decide
from ledger.gate.gates import Gates
from ledger.lane import crossings
from ledger.limit import IN, OUT, Limit, Threshold
from ledger.requests import Now
from ledger.settings import Settings
from ledger.values import Delta
from reader.balances import balances
from simulator.choices import Choices
from simulator.process import Script
from simulator.world import World

SEATS = "seats"
CHANGES = (1, 2, 3, 3, -1, -2)
TRIES_MAX = 8


def with_limits(settings: Settings, choices: Choices) -> Settings:
    return replace(settings, limits={SEATS: Limit(floor=0, ceiling=6 + choices.pick(6), region=settings.regions[0])})


def with_thresholds(settings: Settings, choices: Choices, numbers: int) -> Settings:
    """These settings with thresholds of both counters, each told in one of the Regions.

    One of them is crossed by the last of so many changes, whichever that is.
    """
    low, most = 4 ** choices.pick(16), (4**numbers - 1) // 3
    least = 1 + choices.pick(4)
    regions = (None, *settings.regions)

    def region() -> str | None:
        return regions[choices.pick(len(regions))]

    of_all = (Threshold(below=low, region=region()), Threshold(above=max(low, most - 1), name="all", region=region()))
    of_seats = (Threshold(below=least, region=region()), Threshold(above=least + choices.pick(3), region=region()))
    return replace(settings, thresholds={cast.COUNTER: of_all, SEATS: of_seats})


def seller(number: int, own: Settings, choices: Choices, pace: Sequence[int]) -> Callable[[], Script]:
    """Asks for one change of the limited counter, and sends it until it is decided."""
    mine: list[Delta] = []  # outlives a crash
    gates = Gates.of(own, SEATS)
    assert gates is not None

    def script() -> Script:
        yield cast.rest(choices, pace)
        if not mine:
            token = tokens.keyed(SEATS, str(number), (yield Now()).wall_ms)
            mine.append(Delta(own.lane_for(SEATS, token, own.region), token, CHANGES[choices.pick(len(CHANGES))]))
        for _ in range(TRIES_MAX):
            try:
                yield from decide.decide_change(gates, mine[0])
            except LedgerError:
                yield cast.rest(choices, cast.LONG)
                continue
            return

    return script


def told(world: ServedWorld, settings: Settings) -> list[str]:
    """What is not as it was promised."""
    wrong: list[str] = []
    strays = history._strays(world, settings) if settings.thresholds else set()
    for region in settings.regions if settings.thresholds else ():
        own = replace(settings, region=region)
        for counter in settings.thresholds:
            balance = history.finish(world, region, balances([counter], own, consistent=True))[counter]
            for threshold in own.told_here(counter):
                what = f"{counter} {threshold.name} in {region}"
                events = [
                    each
                    for each in world.posts[region].events
                    if (each["counter"], each["threshold"]) == (counter, threshold.name)
                ]
                wrong += [f"{what}: {each}" for each in kept(world, own, counter, threshold, balance.value, events)]
                wrong += [f"{what}: {each}" for each in sent(threshold, events)]
                if counter == cast.COUNTER:
                    wrong += [f"{what}: {each}" for each in grown(events, strays)]
    return wrong


def kept(
    world: World, own: Settings, counter: str, threshold: Threshold, value: int, events: list[dict[str, Any]]
) -> list[str]:
    """The item against the value, and the events against the item."""
    item = world.replicas[own.region].item(crossings.crossing_key(own.region, counter, threshold.name))
    crossing = crossings.crossing_of(own.region, counter, threshold.name, item) if item is not None else None
    side, number = (crossing.side, crossing.number) if crossing is not None else (OUT, 0)
    wrong = []
    if side != threshold.side_of(value):
        wrong.append(f"it is {side} after {number} crossings, and the value is {value}")
    if crossing is not None and not crossing.is_told:
        wrong.append(f"crossing {number} was never told")
    if {each["number"] for each in events} != set(range(1, number + 1)):
        wrong.append(f"{number} crossings, and events of {sorted({each['number'] for each in events})}")
    return wrong


def sent(threshold: Threshold, events: list[dict[str, Any]]) -> list[str]:
    """Each id says one thing, the first of each in order, and sides take turns."""
    first: dict[str, dict[str, Any]] = {}
    wrong = []
    for event in events:
        if first.setdefault(event["id"], event) != event:
            wrong.append(f"{event['id']} says two things")
        if event["side"] != (IN if event["number"] % 2 else OUT) or event["side"] != threshold.side_of(event["value"]):
            wrong.append(f"crossing {event['number']} is {event['side']} at {event['value']}")
    if [each["number"] for each in first.values()] != list(range(1, len(first) + 1)):
        wrong.append(f"told in the order {[each['number'] for each in first.values()]}")
    return wrong


def grown(events: list[dict[str, Any]], strays: set[int]) -> list[str]:
    """No crossing is from an older view than the one before it."""
    wrong = []
    seen = [deltas_in(value) for value in {each["number"]: each["value"] for each in events}.values()]
    for one, after in pairwise(seen):
        if one is None or after is None:
            wrong.append("a crossing's value counts a delta twice")
        elif gone := one - after - strays:
            wrong.append(f"a crossing has not seen {sorted(gone)}, which the one before it had")
    return wrong
