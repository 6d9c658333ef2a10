"""What a read asks for after 10^2 to 10^7 changes.

Rule 1: The first hundred changes are the design's own programs. Beyond them, what is `measured` was read from the
engine, and the state that was read came about as follows:

- A single item that remembers no more than a few changes: one change of all the rest leaves the same item.
- A set: the item is put with so many ids. Deltas: put in batches, then merged, or folded, settled and cleaned.

All else is worked out: what did not grow between the last two measured states never does, the rest grows by so much a
change; a page ends at 1 MB, an item at 400 KB (LIMITS). An id has 36 characters, as a UUID has.

LIMITS https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mypy_boto3_dynamodb.client import DynamoDBClient

from lab.bench.compactor_speed import put_all
from lab.designs import Design
from lab.designs.item_collection import ItemCollection, Ours
from lab.designs.string_set import IDS, StringSet
from lab.designs.trial import REGION, SETTINGS, Trial
from lab.engines.ministack import Engine
from lab.meters.meter import Meter
from ledger import tokens
from ledger.cost import item_bytes, read_units
from ledger.errors import ItemTooLarge
from ledger.items import delta_item
from ledger.requests import ITEM_BYTES_MAX, keyed
from ledger.values import Delta, Lane

CHANGES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
ITEMS_MAX = 1_000  # changes that are put as items: DynamoDB Local takes some hundred a second
IDS_MAX = 10_000  # changes that are put as ids of a set
PAGE_BYTES_MAX = 1024 * 1024
AT_ONCE = 3
COUNTER = "scale"


@dataclass(frozen=True, slots=True)
class Read:
    """A strongly consistent read after so many changes: what it looked at, and what it asked for.

    possible: whether so many changes can be made at all.
    """

    design: str
    changes: int
    items: int
    bytes: int
    read_units: float
    round_trips: int
    measured: bool
    possible: bool = True


class Looked:
    """The items that a client's reads brought."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.items: list[Any] = []
        client.meta.events.register("response-received.dynamodb", self._came)

    def _came(self, parsed_response: Any = None, **_: Any) -> None:
        came = parsed_response or {}
        self.items += [came["Item"]] if "Item" in came else came.get("Items", [])
        read = came.get("Responses", {})
        self.items += (item for items in (read.values() if isinstance(read, dict) else ()) for item in items)


def reads(engine: Engine, design: Design, changes: Sequence[int] = CHANGES) -> list[Read]:
    """The reads of a design after each of these numbers of changes, the first of them by its programs."""
    trial, meter = Trial(engine, design), Meter()
    meter.attach(trial.client)
    looked = Looked(trial.client)
    found: list[Read] = []
    done = 0
    for target in changes:
        fill = _first if not found else _rest(design, target)
        if fill is None:
            found.append(worked_out(found[-2:], target))
            continue
        fill(trial, done, target)
        done = target
        looked.items.clear()
        before = meter.total()
        value = trial.value(COUNTER)
        spent = meter.total() - before
        if value != target:
            raise AssertionError(f"{design.name} reads {value} after {target} changes of 1")
        size = sum(map(item_bytes, looked.items))
        found.append(
            Read(design.name, target, len(looked.items), size, spent.read_units, spent.requests, measured=True)
        )
    return found


def worked_out(last: Sequence[Read], changes: int) -> Read:
    """By the rules of the meter, from the last two reads; from one alone: what it looked at does not grow."""
    (one, two), grown = (last[0], last[-1]), changes - last[-1].changes
    span = max(1, two.changes - one.changes)
    items = two.items + round((two.items - one.items) * grown / span)
    slope = round((two.bytes - one.bytes) / span)  # a number that has a digit more is not growth
    size = two.bytes + slope * grown
    if items == two.items == 1 and slope:
        units, trips = read_units(size, consistent=True), 1
    elif slope:
        whole, rest = divmod(size, PAGE_BYTES_MAX)
        units = whole * read_units(PAGE_BYTES_MAX, consistent=True) + (read_units(rest, consistent=True) if rest else 0)
        trips = math.ceil(size / PAGE_BYTES_MAX)
    else:
        units, trips = two.read_units, two.round_trips
    possible = items > 1 or size <= ITEM_BYTES_MAX
    return Read(two.design, changes, items, size, units, trips, measured=False, possible=possible)


Fill = Callable[[Trial, int, int], None]


def _first(trial: Trial, done: int, target: int) -> None:
    for change in range(done, target):
        trial.now_ms += 1
        trial.add(COUNTER, 1, key(change))
    make_go(trial)


def _rest(design: Design, target: int) -> Fill | None:
    """How the rest of the changes is made, quickly; None: it is worked out."""
    match design:
        case StringSet():
            return _put_set if target <= IDS_MAX else None
        case ItemCollection():
            return _put_deltas if target <= ITEMS_MAX else None
        case _:
            return None if design.claims.units else _at_once


def _at_once(trial: Trial, done: int, target: int) -> None:
    trial.add(COUNTER, target - done, key(target))


def _put_set(trial: Trial, done: int, target: int) -> None:
    item = keyed(StringSet.item_key(COUNTER), **{IDS: {"SS": [key(change) for change in range(target)]}})
    trial.client.put_item(TableName=trial.name, Item=item)


def _put_deltas(trial: Trial, done: int, target: int) -> None:
    """As items that the design itself would have put, a millisecond apart."""
    lane, items = Lane(REGION, 0, COUNTER), []
    for each in range(done, target):
        trial.now_ms += 1
        items.append(delta_item(Delta(lane, tokens.keyed(COUNTER, key(each), trial.now_ms), 1)))
    put_all(trial.client, trial.name, items)
    make_go(trial)


def make_go(trial: Trial) -> None:
    """The design's housekeeping until nothing is left to do: ours folds, settles, and cleans in two later visits."""
    trial.housekeep(COUNTER)
    if isinstance(trial.design, Ours):
        trial.housekeep(COUNTER)
        trial.housekeep(COUNTER, SETTINGS.keep_ms)


def key(number: int) -> str:
    """A change's: 36 characters, as a UUID has."""
    return f"{number:036}"


def set_wall(engine: Engine) -> int:
    """How many ids of 36 characters the item of a set takes: worked out, and then held against the engine."""
    trial = Trial(engine, StringSet())
    empty = item_bytes(keyed(StringSet.item_key(COUNTER), **{IDS: {"SS": []}}))
    wall = (ITEM_BYTES_MAX - empty) // len(key(0))
    _put_set(trial, 0, wall - 1)
    trial.add(COUNTER, 1, key(wall))
    try:
        trial.add(COUNTER, 1, key(wall + 1))
    except ItemTooLarge:
        return wall
    raise AssertionError(f"{wall + 1} ids are in the set")
