"""Every decision of a history, so that you can run a history again and write it down.

Rule 1: Only the picks of this file are random in the simulator.
Rule 2: The pick 0 is harmless (the first in line, no fault), so a shorter or smaller list is a
simpler history.
Rule 3: A list that has ended goes on with zeros.
"""

import random
from collections.abc import Sequence


class Drawn:
    """Picks from a seed; `picks` has all picks so far."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random
        self.picks: list[int] = []

    def pick(self, options: int) -> int:
        """A number from 0 to options - 1."""
        picked = int(self._random() * options)
        self.picks.append(picked)
        return picked

    def chance(self, per_mille: int) -> bool:
        """True in about `per_mille` of a thousand cases; False is the harmless answer."""
        happens = self._random() * 1000 < per_mille
        self.picks.append(int(happens))
        return happens


class Replayed:
    """Picks from a list, then zeros."""

    def __init__(self, picks: Sequence[int]) -> None:
        self._picks = picks
        self.used = 0

    def pick(self, options: int) -> int:
        picked = self._picks[self.used] if self.used < len(self._picks) else 0
        self.used += 1
        return min(picked, options - 1)

    def chance(self, per_mille: int) -> bool:
        return self.pick(2) == 1 and per_mille > 0


Choices = Drawn | Replayed
"""Where the simulator picks when something could go one way or another."""
