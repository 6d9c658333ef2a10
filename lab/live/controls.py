"""What a visitor of the live page may set, and how a request to set it is checked.

Rule 1: Values are frozen and a request is taken whole or not at all.
Rule 2: A message says what may be given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self

LIMITS = {"lag_ms": (0, 5_000), "duplicates_percent": (0, 50), "writes_per_s": (0, 20)}
"""The least and the most of each number."""


class BadControl(ValueError):
    """A control cannot be set so. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Controls:
    """lag_ms: what an item takes to the other Region, on average. duplicates_percent: how many changes come again.

    writes_per_s: new changes of both Regions together. cut: the Regions cannot reach each other.
    """

    lag_ms: int = 400
    duplicates_percent: int = 10
    writes_per_s: int = 6
    cut: bool = False
    paused: bool = False

    def with_(self, given: object) -> Self:
        """These controls with what a request asks for. Raises BadControl."""
        if not isinstance(given, Mapping) or not given:
            raise BadControl('Give an object such as {"lag_ms": 400}.')
        known = [field.name for field in fields(self)]
        for name, value in given.items():
            if name not in known:
                raise BadControl(f"There is no control {name!r}; there are {', '.join(known)}.")
            if name not in LIMITS:
                if type(value) is not bool:
                    raise BadControl(f"{name} is true or false, not {value!r}.")
                continue
            least, most = LIMITS[name]
            if type(value) is not int or not least <= value <= most:
                raise BadControl(f"{name} is a whole number from {least:,} to {most:,}, not {value!r}.")
        return replace(self, **given)
