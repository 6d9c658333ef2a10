"""A crossing and its format: only this file knows its key and its attributes.

Rule 1: the format is public (docs/data-model.md); it ignores further attributes, and keeps them.
Rule 2: a crossing is written at the endpoint of the Region in its key alone, so every condition
decides. The crossings of one threshold are numbered from 1, in that Region.
Rule 3: an Update may come twice, or long after its sender stopped waiting: its own effect, or that
of the next one, breaks its condition, or it writes what is there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ledger.core.actions import Remove, Set
from ledger.core.checks import check_counter
from ledger.core.conditions import Absent, Condition, Equals
from ledger.core.decoding import decoded, integer, number, text_of
from ledger.core.errors import InvalidCounter
from ledger.core.items import RETIRES
from ledger.core.limit import IN, OUT, Threshold
from ledger.core.requests import Item, Key, Update

BOUNDS = ("above", "below")
NUMBERS = ("number", "value", "at_ms", "told")


class Crossing(NamedTuple):
    """The last crossing of a threshold. number: how many there were. side: the one to which the
    value came.

    region: the one that keeps and publishes it. name, above, below: of the threshold, as it was
    then; a threshold of a limit has its number in above or below. value: as it was read; at_ms:
    when that read began, by the reader's clock.
    told: the number of the last crossing that was published.
    """

    region: str
    counter: str
    name: str
    number: int
    side: str
    value: int
    at_ms: int
    told: int
    above: int | None = None
    below: int | None = None

    @classmethod
    def after(
        cls,
        before: Crossing | None,
        region: str,
        counter: str,
        threshold: Threshold,
        value: int,
        at_ms: int,
    ) -> Crossing:
        """The crossing that follows `before`, which was published, at this value."""
        last = before.number if before is not None else 0
        named: Any = {"region": region, "counter": counter}
        named |= {name: getattr(threshold, name) for name in ("name", *BOUNDS)}
        return cls(
            **named,
            number=last + 1,
            side=threshold.side_of(value),
            value=value,
            at_ms=at_ms,
            told=last,
        )

    @property
    def is_told(self) -> bool:
        return self.told >= self.number


def crossing_key(region: str, counter: str, name: str) -> Key:
    return Key(f"crossing#{region}#{counter}", name)


def counter_of(pk: str, region: str) -> str | None:
    """The counter of a crossing that a Region keeps; None when the partition key is not that of
    one.
    """
    opening = crossing_key(region, "", "").pk
    try:
        return check_counter(pk.removeprefix(opening)) if pk.startswith(opening) else None
    except InvalidCounter:
        return None


def crossing_of(region: str, counter: str, name: str, item: Item) -> Crossing:
    """Raises DamagedItem."""
    key = crossing_key(region, counter, name)

    def decode() -> Crossing:
        there = [*NUMBERS, *(bound for bound in BOUNDS if bound in item)]
        numbers = {name: integer(item, name) for name in there}
        crossing = Crossing(
            region=region, counter=counter, name=name, side=text_of(item, "side"), **numbers
        )
        if crossing.side not in (IN, OUT) or not 0 <= crossing.told <= crossing.number:
            raise ValueError("its side is neither in nor out, or `told` is above `number`")
        return crossing

    return decoded(item, key.pk, decode, key.sk)


def cross(before: Crossing | None, crossing: Crossing, retires_s: int = 0) -> Update:
    """Keep a crossing, IF the last one is as it was read.

    retires_s: when the table may delete that of a period.
    """
    seen: Condition = Absent() if before is None else Equals("number", number(before.number))
    numbers = {name: getattr(crossing, name) for name in (*BOUNDS, *NUMBERS)}
    actions = [
        Remove(name) if value is None else Set(name, number(value))
        for name, value in numbers.items()
    ]
    actions += [Set(RETIRES, number(retires_s))] if retires_s else []
    key = crossing_key(crossing.region, crossing.counter, crossing.name)
    return Update(key, (Set("side", {"S": crossing.side}), *actions), seen)


def note_told(crossing: Crossing) -> Update:
    """Note that a crossing was published, IF it is the last one."""
    key = crossing_key(crossing.region, crossing.counter, crossing.name)
    return Update(
        key, (Set("told", number(crossing.number)),), Equals("number", number(crossing.number))
    )
