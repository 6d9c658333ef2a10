"""The judge of the deployed service, once everybody has come to an end: what messages told of, and
events of thresholds.

Rule 1: the judge knows the rules and not the code: who rings is worked out here, too.
Rule 2: A lane that has a record is in the directory. No entry at or below a watermark is listed
nowhere.
Rule 3: A ringing item stands for what came before it, up to its own time or that of its record,
whichever is later. Of what any stands for less than fold_min is in the tail, unless a message was
dropped that only folds. After a sweep, because messages were lost, less than fold_min is in the
tail at all.
Rule 4: Of a threshold the side is the truth of the value, of one of the ceiling under the ceiling
that is set in the end; an event is true of its own number. Every crossing was published, and each
id says one thing. Of two crossings that follow each other the later one has seen what the earlier
one had: whatever left the value in between is a stray.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

from lab.histories.judges.checker import deltas_in
from lab.histories.judges.lanes import COUNTER, strays_of
from lab.histories.stage.judge import Judge
from lab.histories.stage.served_world import Record, ServedWorld
from lab.histories.stage.stage import finish, shelf, strays_left
from ledger.core import items
from ledger.core.entries import time_ms
from ledger.core.limit import IN, OUT, Threshold
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.gate.items import gate_key
from ledger.lane import directory
from reader.read import balances
from service.compact.result import Done
from service.compact.serve import serve
from service.messages import job_of
from service.sweep.sweep import Swept, sweep
from service.thresholds import crossings
from simulator.world import World

SEATS = "seats"
ROUNDED_MS = 999
HOURS = 0.01
"""Of a sweep's pass."""


@dataclass
class ServiceJudge(Judge):
    """swept: of all lanes, at the end. dropped: a message that only folds was. rivals: the changes
    that share a token with another one, which may count in their place until one of the two is
    folded.
    """

    world: ServedWorld
    settings: Settings
    rivals: set[int]
    swept: bool
    dropped: bool
    wrong: list[str] = field(default_factory=list)

    def at_end(self) -> None:
        if self.swept:
            self._sweep()
        if not self.wrong:
            self._lanes()
        if not self.wrong:
            self._thresholds()

    def _sweep(self) -> None:
        """Two passes of the sweep, and what they send is served, with no fault left; but some is
        stopped at first.
        """
        world = self.world
        world.lost = world.doubled = world.stream_late = 0
        for _ in range(2):
            for region in world.regions:
                world.quiesce()
                world.now_ms += 3_600_000 + self.settings.keep_ms
                own = replace(self.settings, region=region)
                for run in range(3):
                    finish(
                        world,
                        region,
                        sweep(Swept(), own, lambda: False, lambda: False, hours=HOURS),
                    )
                    world.now_ms += int(HOURS * 3_600_000) // (1 + run)
                if not _served(world, own):
                    self.wrong.append(f"after the sweep the queue of {region} is never empty")

    def _lanes(self) -> None:
        world, settings = self.world, self.settings
        for region in world.regions:
            arrived: dict[Lane, list[Record]] = {}
            for record in world.posts[region].records:
                found = items.lane_of(record.key.pk)
                if found is not None and found[0] == "delta" and found[1].region == region:
                    arrived.setdefault(found[1], []).append(record)
            for lane, records in arrived.items():
                if world.replicas[region].item(directory.key_of(lane)) is None:
                    self.wrong.append(f"{lane} is not in the directory")
                if left := strays_left(world, lane):
                    self.wrong.append(f"{lane}: {len(left)} strays that nobody will settle")
                waiting = _waiting(world, lane, records, settings.fold_min, self.swept)
                if waiting >= settings.fold_min and (self.swept or not self.dropped):
                    self.wrong.append(
                        f"{lane}: {waiting} changes in the tail that nobody will fold"
                    )

    def _thresholds(self) -> None:
        world, settings = self.world, self.settings
        leave = strays_of(world, settings) | self.rivals
        for region in settings.regions:
            own = replace(settings, region=region)
            for counter in settings.thresholds:
                value = finish(world, region, balances([counter], own, consistent=True))[
                    counter
                ].value
                events = [each for each in world.posts[region].events if each["counter"] == counter]
                for threshold in own.told_here(counter):
                    if threshold.of_ceiling is not None:  # half of what is set, rounded down
                        threshold = Threshold(above=_ceiling(world, own) // 2, name=threshold.name)
                    wrongs = wrong_crossings(world, own, counter, threshold, value, events, leave)
                    self.wrong.extend(
                        f"{counter} {threshold.name} in {region}: {each}" for each in wrongs
                    )


def _served(world: ServedWorld, own: Settings) -> bool:
    for _ in range(1_000):
        batch = world.receive(own.region, 10)
        for job in (job_of(message.body, own) for message in batch):
            stops = world.choices.pick(30) if world.choices.pick(2) and job.tries < 3 else 10**9
            is_over = partial(_counted_down, iter(range(stops)))
            finish(world, own.region, serve(Done(job=job), own, is_over))
        world.delete(own.region, batch)
        if not world.posts[own.region].queue:
            return True
        world.now_ms = max(world.now_ms, world.next_ms(own.region) or 0)
    return False


def _counted_down(left: Iterator[int]) -> bool:
    return next(left, None) is None


def _waiting(
    world: World, lane: Lane, records: Sequence[Record], fold_min: int, swept: bool
) -> int:
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


def _ceiling(world: ServedWorld, own: Settings) -> int:
    """Of the seats, as it is set in the gate with the first rights, in that Region's replica."""
    gate = world.replicas[own.region].item(gate_key(Lane(own.regions[0], 0, SEATS)))
    return int(gate["ceiling"]["N"]) if gate is not None else own.limits[SEATS].ceiling or 0


def wrong_crossings(
    world: World,
    own: Settings,
    counter: str,
    threshold: Threshold,
    value: int,
    published: Sequence[dict[str, Any]],
    leave: set[int],
) -> list[str]:
    """The item against the value, and the events against the item.

    leave: deltas that may leave a value again.
    """
    events = [each for each in published if each["threshold"] == threshold.name]
    item = world.replicas[own.region].item(
        crossings.crossing_key(own.region, counter, threshold.name)
    )
    crossing = (
        crossings.crossing_of(own.region, counter, threshold.name, item)
        if item is not None
        else None
    )
    side, number = (crossing.side, crossing.number) if crossing is not None else (OUT, 0)
    wrong = []
    if side != threshold.side_of(value):
        wrong.append(f"it is {side} after {number} crossings, and the value is {value}")
    if crossing is not None and not crossing.is_told:
        wrong.append(f"crossing {number} was never told")
    if {each["number"] for each in events} != set(range(1, number + 1)):
        wrong.append(
            f"{number} crossings, and events of {sorted({each['number'] for each in events})}"
        )
    return [
        *wrong,
        *_said_twice(threshold, events),
        *(_grown(events, leave) if counter == COUNTER else ()),
    ]


def _said_twice(threshold: Threshold, events: Sequence[dict[str, Any]]) -> list[str]:
    """Each id says one thing, the first of each in order, and sides take turns."""
    first: dict[str, dict[str, Any]] = {}
    wrong = []
    for event in events:
        if first.setdefault(event["id"], event) != event:
            wrong.append(f"{event['id']} says two things")
        then = replace(
            threshold, **{side: event[side] for side in ("above", "below") if side in event}
        )
        if event["side"] != (IN if event["number"] % 2 else OUT) or event["side"] != then.side_of(
            event["value"]
        ):
            wrong.append(f"crossing {event['number']} is {event['side']} at {event['value']}")
    if [each["number"] for each in first.values()] != list(range(1, len(first) + 1)):
        wrong.append(f"told in the order {[each['number'] for each in first.values()]}")
    return wrong


def _grown(events: Sequence[dict[str, Any]], leave: set[int]) -> list[str]:
    """No crossing is from an older view than the one before it, which may only lack what may
    leave a value.
    """
    wrong = []
    seen = [
        deltas_in(value) for value in {each["number"]: each["value"] for each in events}.values()
    ]
    for one, after in pairwise(seen):
        if one is None or after is None:
            wrong.append("a crossing's value counts a delta twice")
        elif gone := one - after - leave:
            wrong.append(f"a crossing has not seen {sorted(gone)}, which the one before it had")
    return wrong
