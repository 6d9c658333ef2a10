"""`Limit`: what a counter's value never passes; `Threshold`: what somebody wants to know it to have passed; `Shape`.

Rule 1: A Limit's sides and its region are for the counter's life, because its first rights follow from them.
Rule 2: A counter begins at 0, so 0 is within every limit.
Rule 3: A Threshold is strict: `above=1_000` holds at 1,001 and not at 1,000, `below=10` at 9 and not at 10.
Rule 4: A counter that no crossing was published of is outside all of its thresholds.
Rule 5: A Threshold decides nothing: whatever it says may change at any time, and nobody's adds or reads look at it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from ledger.checks import check_region
from ledger.errors import InvalidSettings, shown
from ledger.periods.keep import Keep
from ledger.ranges import CHANGE_MAX, SHARD_MAX, VERSION_MAX

DOWN, UP = "down", "up"
SIDES = (DOWN, UP)
"""The rights that a limited lane may have: to lower the value, where there is a floor, and to raise it."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What the value of a counter never passes. Amounts are whole; without a floor, or a ceiling, that side is free.

    region: where the counter's first rights are, and where `set_limit` writes; for the counter's life. It must be named
    where there are any: a ceiling above 0, or a floor below it. Raises InvalidSettings.
    """

    floor: int | None = None
    ceiling: int | None = None
    region: str | None = None

    def __post_init__(self) -> None:
        for name, amount, fits in (("floor", self.floor, -1), ("ceiling", self.ceiling, 1)):
            if amount is not None and (type(amount) is not int or not 0 <= amount * fits <= CHANGE_MAX):
                most = f"0 to {'-' if fits < 0 else ''}10**18"
                raise InvalidSettings(f"{name}={shown(amount)} is not an int from {most}: a counter begins at 0.")
        if self.floor is None and self.ceiling is None:
            raise InvalidSettings("A Limit has a floor, a ceiling or both.")
        if self.region is not None:
            check_region(self.region, InvalidSettings)
        elif any(self.opening(side) for side in SIDES):
            raise InvalidSettings(f"{self} needs a region: where its first rights are, the same in every process.")

    def has(self, side: str) -> bool:
        """Whether the gates of the counter have that right."""
        return (self.floor if side == DOWN else self.ceiling) is not None

    def opening(self, side: str) -> int:
        """The first rights of a side, before anything is decided."""
        return -(self.floor or 0) if side == DOWN else self.ceiling or 0

    def opens(self, region: str, shard: int) -> bool:
        """Whether the first rights are in the lane of that Region and shard."""
        return region == self.region and shard == 0


@dataclass(frozen=True, slots=True)
class Shape:
    """Which lanes and limits a table's counters have: what every process must agree on.

    version: how often it was written.
    """

    regions: tuple[str, ...]
    shards: Mapping[str, int]
    version: int = 1
    limits: Mapping[str, Limit] = field(default_factory=dict)
    periods: Mapping[str, Keep] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for region in self.regions:
            check_region(region)
        if not self.regions or len({*self.regions}) != len(self.regions):
            raise ValueError("regions must name at least one Region, and none twice")
        if not all(1 <= shards <= SHARD_MAX for shards in self.shards.values()):
            raise ValueError(f"a prefix has from 1 to {SHARD_MAX} shards")
        if not 1 <= self.version <= VERSION_MAX:
            raise ValueError(f"version must be from 1 to {VERSION_MAX}")


IN, OUT = "in", "out"
"""The sides of a threshold: what it says holds of the value, or does not."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_UNNAMED = "{side}-{bound}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Either `above` or `below` a whole number, of magnitude at most 10**18. Raises InvalidSettings.

    name: what its crossings are filed under; 1 to 64 letters, digits, . _ -; default: such as above-1000. A name keeps
    its state, so a threshold with another number and the same name goes on from the side where the first one was.
    region: which Region evaluates it and tells its crossings; default: the first of the settings' regions.
    """

    above: int | None = None
    below: int | None = None
    name: str = _UNNAMED
    region: str | None = None

    def __post_init__(self) -> None:
        given = {side: bound for side, bound in (("above", self.above), ("below", self.below)) if bound is not None}
        if len(given) != 1:
            which = "both were given: make two" if given else "neither was given, as in Threshold(below=10)"
            raise InvalidSettings(f"A Threshold has above or below; {which}.")
        ((side, bound),) = given.items()
        if type(bound) is not int or abs(bound) > CHANGE_MAX:
            raise InvalidSettings(f"{side}={shown(bound)} is not an int of magnitude at most 10**18.")
        if self.name is _UNNAMED:
            object.__setattr__(self, "name", _UNNAMED.format(side=side, bound=bound))
        if type(self.name) is not str or not _NAME.fullmatch(self.name):
            raise InvalidSettings(f"name={shown(self.name)} is not 1 to 64 letters, digits, dots, _ and -.")
        if self.region is not None:
            check_region(self.region, InvalidSettings)

    def side_of(self, value: int) -> str:
        """IN where what it says holds of the value, else OUT."""
        holds = value > self.above if self.above is not None else self.below is not None and value < self.below
        return IN if holds else OUT


def check_thresholds(name: str, given: object, regions: Sequence[str]) -> None:
    """Raises InvalidSettings for what contradicts itself. name: how the sentence names the setting."""
    if not isinstance(given, tuple | list) or any(type(each) is not Threshold for each in given):
        raise InvalidSettings(f"{name}={shown(given)} is not a tuple of Thresholds for a prefix.")
    for each in given:
        if each.region not in (None, *regions):
            known = shown(tuple(regions), 200)
            raise InvalidSettings(f"{name}: {each.name} is told in no Region of regions={known}.")
    for one, other in permutations(given, 2):
        if one.name == other.name:
            raise InvalidSettings(f"{name} has two thresholds with the name {one.name}: nobody could tell them apart.")
        if _said(one, regions) == _said(other, regions):
            raise InvalidSettings(f"{name}: {one.name} and {other.name} say the same; one of them is enough.")
        if one.above is not None and other.below is not None and one.above < other.below:
            raise InvalidSettings(
                f"{name}: above={one.above} and below={other.below} contradict each other: whatever the value is, one "
                "of them holds. The number of above must not be lower than that of below."
            )


def _said(threshold: Threshold, regions: Sequence[str]) -> tuple[int | None, int | None, str]:
    """The number, and who tells of it: the same one may be told in several Regions."""
    return threshold.above, threshold.below, threshold.region or regions[0]
