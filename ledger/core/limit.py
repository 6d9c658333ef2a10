"""`Limit`: what a counter's value never passes; `Threshold`: a number that somebody wants to know
it passed; `Shape`.

Rule 1: A Limit's sides and its region are for the counter's life, because its first rights follow
from them.
Rule 2: A counter begins at 0, so 0 is within every limit.
Rule 3: A Threshold is strict: `above=1_000` holds at 1,001 and not at 1,000, `below=10` at 9 and
not at 10. A threshold of a limit has a number of its own for each counter, and follows the limit as
it is set now, never that of the settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import permutations

from ledger.core.checks import check_region
from ledger.core.errors import InvalidSettings, shown
from ledger.core.keep import Keep
from ledger.core.ranges import CHANGE_MAX, SHARD_MAX, VERSION_MAX

DOWN, UP = "down", "up"
SIDES = (DOWN, UP)
"""The rights that a limited lane may have: to lower the value, where there is a floor, and to
raise it.
"""


@dataclass(frozen=True, slots=True)
class Limit:
    """What the value of a counter never passes. Amounts are whole. Without a floor the value can
    fall without end, and without a ceiling it can rise without end.

    region: the Region that begins with all that the limit leaves, and in which `set_limit` writes.
    It never changes. Name it where there is something left at 0: with a ceiling above 0, or a floor
    below 0. Raises InvalidSettings.
    """

    floor: int | None = None
    ceiling: int | None = None
    region: str | None = None

    def __post_init__(self) -> None:
        for name, amount, fits in (("floor", self.floor, -1), ("ceiling", self.ceiling, 1)):
            if amount is not None and (
                type(amount) is not int or not 0 <= amount * fits <= CHANGE_MAX
            ):
                span = "-10**18 to 0" if fits < 0 else "0 to 10**18"
                raise InvalidSettings(
                    f"{name}={shown(amount)} is not an int from {span}. A counter begins at 0, so "
                    "its limit allows 0."
                )
        if self.floor is None and self.ceiling is None:
            raise InvalidSettings("A Limit has a floor, a ceiling or both.")
        if self.region is not None:
            check_region(self.region, InvalidSettings)
        elif any(self.opening(side) for side in SIDES):
            raise InvalidSettings(
                f"{self} names no region. Nothing was written. Name the Region that begins with "
                "all that the limit leaves, the same one in every process."
            )

    def has(self, side: str) -> bool:
        """Whether the gates of the counter have that right."""
        return (self.floor if side == DOWN else self.ceiling) is not None

    def opening(self, side: str) -> int:
        """How many first rights a side has, before anything is decided."""
        return -(self.floor or 0) if side == DOWN else self.ceiling or 0

    def opens(self, region: str, shard: int) -> bool:
        """Whether the first rights are in the lane of that Region and shard."""
        return region == self.region and shard == 0


@dataclass(frozen=True, slots=True)
class Shape:
    """Which lanes and limits a table's counters have; every process must agree on it.

    version: how often it was written. is_strong: whether its Regions are strongly consistent with
    each other, so that it takes neither transactions nor time to live.
    """

    regions: tuple[str, ...]
    shards: Mapping[str, int]
    version: int = 1
    limits: Mapping[str, Limit] = field(default_factory=dict)
    periods: Mapping[str, Keep] = field(default_factory=dict)
    is_strong: bool = False

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
"""The sides of a threshold: it holds for the value, or it does not.

Rule 4: a counter without a published crossing is outside all of its thresholds.
"""

BOUNDS = ("above", "below", "of_ceiling", "left")
"""The kinds of threshold: numbers, then parts of a limit."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_UNNAMED = "{kind}-{bound}"


# Rule 5: a Threshold decides nothing. It may change at any time, and no add and no read looks at
# it.
@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A number that a value may pass, given in one of four ways. Two follow the limit. Raises
    InvalidSettings.

    - above, below: a whole number, of magnitude at most 10**18.
    - of_ceiling: it holds while the value is above that share of the ceiling, rounded down to a
      whole number; a float above 0 and at most 1, taken as it is written.
    - left: it holds while less than this is left, down to the floor or up to the ceiling, whichever
      the counter has; 0 to 10**18, so 1 means that nothing is left.
    - name: the name in its crossings' items, 1 to 64 letters, digits, . _ -; default: such as
      above-1000. A name keeps its state, so a threshold with another number and the same name goes
      on from the side where the first one was.
    - region: which Region evaluates it and publishes its crossings; default: the first of the
      settings' regions.
    """

    above: int | None = None
    below: int | None = None
    of_ceiling: float | None = None
    left: int | None = None
    name: str = _UNNAMED
    region: str | None = None

    def __post_init__(self) -> None:
        given = {kind: bound for kind in BOUNDS if (bound := getattr(self, kind)) is not None}
        if len(given) != 1:
            several = f"{' and '.join(given)} were given: make a Threshold of each"
            which = several if given else "none was given, as in Threshold(below=10)"
            raise InvalidSettings(f"A Threshold has one of {', '.join(BOUNDS)}; {which}.")
        ((kind, bound),) = given.items()
        if expected := _expected(kind, bound):
            raise InvalidSettings(f"{kind}={shown(bound)} is not {expected}.")
        if self.name is _UNNAMED:
            object.__setattr__(
                self, "name", _UNNAMED.format(kind=kind.replace("_", "-"), bound=bound)
            )
        if type(self.name) is not str or not _NAME.fullmatch(self.name):
            raise InvalidSettings(
                f"name={shown(self.name)} is not 1 to 64 letters, digits, dots, _ and -."
            )
        if self.region is not None:
            check_region(self.region, InvalidSettings)

    def at(self, floor: int | None, ceiling: int | None) -> Threshold | None:
        """The same threshold under a limit, as above or below a number. None where the limit lacks
        its side, or has both sides and `left` could mean either."""
        if self.of_ceiling is None and self.left is None:
            return self
        above: int | None = None
        below: int | None = None
        if self.of_ceiling is not None and ceiling is not None:
            above = Fraction(str(self.of_ceiling)) * ceiling // 1
        elif self.left is not None and ceiling is not None and floor is None:
            above = ceiling - self.left
        elif self.left is not None and floor is not None and ceiling is None:
            below = floor + self.left
        if above is None and below is None:
            return None
        return replace(self, above=above, below=below, of_ceiling=None, left=None)

    def side_of(self, value: int) -> str:
        """IN where it holds for the value, else OUT.

        For a threshold of a limit first ask `at` for its number.
        """
        if self.above is not None:
            return IN if value > self.above else OUT
        if self.below is not None:
            return IN if value < self.below else OUT
        raise ValueError(f"{self.name} is of a limit")


def _expected(kind: str, bound: object) -> str | None:
    """What a threshold's bound should be; None for a bound that fits."""
    if kind == "of_ceiling":
        return None if type(bound) is float and 0 < bound <= 1 else "a float above 0 and at most 1"
    if type(bound) is int and (0 if kind == "left" else -CHANGE_MAX) <= bound <= CHANGE_MAX:
        return None
    return "an int from 0 to 10**18" if kind == "left" else "an int of magnitude at most 10**18"


def check_thresholds(name: str, given: object, regions: Sequence[str]) -> None:
    """Raises InvalidSettings for thresholds that contradict each other.

    name: how the message names the setting.
    """
    if not isinstance(given, tuple | list) or any(
        type(threshold) is not Threshold for threshold in given
    ):
        raise InvalidSettings(f"{name}={shown(given)} is not a tuple of Thresholds.")
    for threshold in given:
        if threshold.region not in (None, *regions):
            known = shown(tuple(regions), 200)
            raise InvalidSettings(
                f"{name}: no Region of regions={known} publishes {threshold.name}."
            )
    for one, other in permutations(given, 2):
        if one.name == other.name:
            raise InvalidSettings(
                f"{name} has two thresholds with the name {one.name}: nobody could tell them apart."
            )
        if _said(one, regions) == _said(other, regions):
            raise InvalidSettings(
                f"{name}: {one.name} and {other.name} say the same; one of them is enough."
            )
        if one.above is not None and other.below is not None and one.above < other.below:
            raise InvalidSettings(
                f"{name}: above={one.above} and below={other.below} contradict each other: "
                "whatever the value is, one of them holds. The number of above must not be lower "
                "than that of below."
            )


def check_of_limits(name: str, thresholds: Sequence[Threshold], limits: Sequence[Limit]) -> None:
    """Raises InvalidSettings for a threshold of a limit that its counters lack.

    limits: those that they may have.
    """
    for threshold in thresholds:
        if threshold.of_ceiling is not None and not any(limit.has(UP) for limit in limits):
            none = (
                "has no counter with a ceiling: give it one in limits, or use above= with a number."
            )
            raise InvalidSettings(f"{name}: {threshold.name} {none}")
        if threshold.left is not None and not limits:
            none = (
                "has no counter with a limit: give it one in limits, or use above= or below= "
                "with a number."
            )
            raise InvalidSettings(f"{name}: {threshold.name} {none}")
        if threshold.left is not None and any(
            limit.has(DOWN) and limit.has(UP) for limit in limits
        ):
            both = (
                "has counters with a floor and a ceiling: choose one, by above= or below= "
                "with a number."
            )
            raise InvalidSettings(f"{name}: {threshold.name} {both}")


def _said(threshold: Threshold, regions: Sequence[str]) -> tuple[object, ...]:
    """The bounds of a threshold and the Region that publishes it: several Regions may publish
    the same one.
    """
    return *(getattr(threshold, kind) for kind in BOUNDS), threshold.region or regions[0]
