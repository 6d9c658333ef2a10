"""How long tails are: their lengths, each with the time or the number of times that it was so."""

from collections import defaultdict
from collections.abc import Iterable


class Tails:
    def __init__(self, lengths: Iterable[int] = ()) -> None:
        self._times: defaultdict[int, float] = defaultdict(float)
        for each in lengths:
            self.add(each)

    def add(self, length: int, times: float = 1) -> None:
        self._times[length] += times

    def __add__(self, other: "Tails") -> "Tails":
        both = Tails()
        for tails in (self, other):
            for length, times in tails._times.items():
                both.add(length, times)
        return both

    @property
    def mean(self) -> float:
        return sum(length * times for length, times in self._times.items()) / sum(self._times.values())

    @property
    def longest(self) -> int:
        return max(self._times)

    def quantile(self, share: float) -> int:
        """The shortest that so large a share does not exceed."""
        left = share * sum(self._times.values())
        for length, times in sorted(self._times.items()):
            left -= times
            if left <= 0:
                return length
        return self.longest

    def __str__(self) -> str:
        at = "  ".join(f"p{share * 100:g} {self.quantile(share):,}" for share in (0.5, 0.99, 0.999))
        return f"mean {self.mean:,.1f}  {at}  max {self.longest:,}"
