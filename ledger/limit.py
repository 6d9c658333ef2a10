"""`Limit`: what the value of a counter never passes.

Rule 1: Its sides and its region are for the counter's life, because its first rights follow from them.
Rule 2: A counter begins at 0, so 0 is within every limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.checks import CHANGE_MAX, check_region
from ledger.errors import InvalidInput, InvalidSettings, shown

if TYPE_CHECKING:
    from ledger.values import Lane

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
            try:
                check_region(self.region)
            except InvalidInput as error:
                raise InvalidSettings(error.why) from None
        elif any(self.opening(side) for side in SIDES):
            raise InvalidSettings(f"{self} needs a region: where its first rights are, the same in every process.")

    def has(self, side: str) -> bool:
        """Whether the gates of the counter have that right."""
        return (self.floor if side == DOWN else self.ceiling) is not None

    def opening(self, side: str) -> int:
        """The first rights of a side, before anything is decided."""
        return -(self.floor or 0) if side == DOWN else self.ceiling or 0

    def opens(self, lane: Lane) -> bool:
        """Whether the first rights are in this lane."""
        return lane.region == self.region and lane.shard == 0
