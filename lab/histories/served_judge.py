"""What the service promises, judged when its streams and queues are empty.

Rule 1: It knows the rules and not the code: who rings is worked out here, too.
Rule 2: A lane that has a record is in the directory. No entry at or below a watermark is listed nowhere.
Rule 3: A ringing item stands for what came before it, up to its own time or that of its record, whichever is later.
Of what any stands for less than fold_min is in the tail, unless a message was dropped that only folds. After a sweep,
because messages were lost, less than fold_min is in the tail at all.
Rule 4: Of a threshold the side is the truth of the value, every crossing was published, and each id says one thing. Of
two crossings that follow each other the later one has seen what the earlier one had: whatever left the value in between
is a stray.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from lab.histories.cast import COUNTER
from lab.histories.checker import deltas_in
from lab.histories.history import strays_of
from lab.histories.served_world import Record, ServedWorld
from lab.histories.theatre import finish, shelf, strays_left
from ledger import items
from ledger.entries import time_ms
from ledger.lane import crossings, directory
from ledger.limit import IN, OUT, Threshold
from ledger.settings import Settings
from ledger.values import Lane
from reader.read import balances
from simulator.world import World

ROUNDED_MS = 999


def judge(world: ServedWorld, settings: Settings, swept: bool, *, dropped: bool) -> list[str]:
    """What is not as it was promised. swept: of all lanes, since. dropped: a message that only folds was."""
    wrong: list[str] = []
    for region in world.regions:
        arrived: dict[Lane, list[Record]] = {}
        for record in world.posts[region].records:
            found = items.lane_of(record.key.pk)
            if found is not None and found[0] == "delta" and found[1].region == region:
                arrived.setdefault(found[1], []).append(record)
        for lane, records in arrived.items():
            if world.replicas[region].item(directory.key_of(lane)) is None:
                wrong.append(f"{lane} is not in the directory")
            if left := strays_left(world, lane):
                wrong.append(f"{lane}: {len(left)} strays that nobody will settle")
            waiting = _waiting(world, lane, records, settings.fold_min, swept)
            if waiting >= settings.fold_min and (swept or not dropped):
                wrong.append(f"{lane}: {waiting} changes in the tail that nobody will fold")
    return wrong or _of_thresholds(world, settings)


def _waiting(world: World, lane: Lane, records: Sequence[Record], fold_min: int, swept: bool) -> int:
    """How many changes in the tail of a lane some ringing item stands for."""
    _, _, upto = shelf(world, lane)
    tail: set[bytes] = set()
    reach_ms = 2**63 if swept else -1
    for record in reversed(records):
        item = world.replicas[lane.region].item(record.key)
        held = items.entries_of(lane, item).tokens if item is not None else ()
        drawn = hashlib.sha256(f"{record.key.pk}\0{record.key.sk}".encode()).digest()[:8]
        if held and int.from_bytes(drawn, "big") / 2**64 < len(held) / fold_min:
            reach_ms = max(reach_ms, record.made_ms + ROUNDED_MS, time_ms(max(held)))
        tail |= {token for token in held if token > upto and time_ms(token) <= reach_ms}
    return len(tail)


def _of_thresholds(world: ServedWorld, settings: Settings) -> list[str]:
    wrong: list[str] = []
    strays = strays_of(world, settings) if settings.thresholds else set[int]()
    for region in settings.regions if settings.thresholds else ():
        own = replace(settings, region=region)
        for counter in settings.thresholds:
            value = finish(world, region, balances([counter], own, consistent=True))[counter].value
            events = [each for each in world.posts[region].events if each["counter"] == counter]
            for threshold in own.told_here(counter):
                wrongs = wrong_crossings(world, own, counter, threshold, value, events, strays)
                wrong += [f"{counter} {threshold.name} in {region}: {each}" for each in wrongs]
    return wrong


def wrong_crossings(
    world: World,
    own: Settings,
    counter: str,
    threshold: Threshold,
    value: int,
    published: Sequence[dict[str, Any]],
    strays: set[int],
) -> list[str]:
    """The item against the value, and the events against the item."""
    events = [each for each in published if each["threshold"] == threshold.name]
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
    return [*wrong, *_said_twice(threshold, events), *(_grown(events, strays) if counter == COUNTER else ())]


def _said_twice(threshold: Threshold, events: Sequence[dict[str, Any]]) -> list[str]:
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


def _grown(events: Sequence[dict[str, Any]], strays: set[int]) -> list[str]:
    """No crossing is from an older view than the one before it."""
    wrong = []
    seen = [deltas_in(value) for value in {each["number"]: each["value"] for each in events}.values()]
    for one, after in pairwise(seen):
        if one is None or after is None:
            wrong.append("a crossing's value counts a delta twice")
        elif gone := one - after - strays:
            wrong.append(f"a crossing has not seen {sorted(gone)}, which the one before it had")
    return wrong
