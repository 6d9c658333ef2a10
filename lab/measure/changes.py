"""Events that a sum names, and what is wrong with a sum: lost, doubled, false.

Rule 1: Pure, and knowing nothing of how a counter works.
Rule 2: Event k changes its counter by 8^k, so that a sum says of each event how often it is in it,
up to seven times. A change has at most 10^18, so from event 19 on all change it by 8^19 and are
counted together; so are all events where a design takes changes of 1 alone.
Rule 3: Of events that are counted together a lost one and a doubled one hide each other: what is
found of them is the least that there can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import astuple, dataclass, field

BASE = 8
SLOTS = 20  # digits of a sum; the last has no upper bound
EVENTS = 20


@dataclass(frozen=True, slots=True)
class Counted:
    """events: that callers sent. lost: acknowledged and not in the sum. doubled: how often an event
    is in it too often. gave_up: never acknowledged, however often they were sent; such an event may
    count or not.

    reads: that had an answer. false: not the sum of distinct events that were sent by their end.
    missed: strong reads without an event that their own Region had acknowledged before they began.
    """

    events: int = 0
    lost: int = 0
    doubled: int = 0
    gave_up: int = 0
    reads: int = 0
    false: int = 0
    missed: int = 0

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            *(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True))
        )


@dataclass(slots=True)
class Record:
    """The events and the reads of one counter. units: all changes are 1."""

    units: bool
    asked: set[int] = field(default_factory=set)
    acknowledged: dict[str, set[int]] = field(default_factory=dict)  # by the Region that did
    reads: Counted = Counted()

    def change(self, number: int) -> int:
        return 1 if self.units else BASE ** min(number, SLOTS - 1)

    def answered(self, number: int, region: str) -> None:
        self.acknowledged.setdefault(region, set()).add(number)

    @property
    def counted(self) -> set[int]:
        """The events that were acknowledged, anywhere."""
        return set[int]().union(*self.acknowledged.values())

    def saw(self, value: int, must: Collection[int]) -> None:
        """A read has ended; `must`: what it had to have."""
        lost, doubled = self._wrong(value, must, self.asked)
        self.reads += Counted(reads=1, false=doubled > 0, missed=lost > 0)

    def ended(self, values: Iterable[int]) -> Counted:
        """At the end the Regions read `values`; the worst of them counts."""
        wrong = [self._wrong(value, self.counted, self.asked) for value in values]
        lost, doubled = (max(column) for column in zip(*wrong, strict=True))
        gave_up = len(self.asked - self.counted)
        return self.reads + Counted(len(self.asked), lost, doubled, gave_up)

    def _wrong(self, value: int, least: Collection[int], most: Collection[int]) -> tuple[int, int]:
        """How often an event of `least` is not in a sum; how often one is that is not of `most`,
        or once too often.
        """
        held = self._digits(value)
        return (self._slots(least) - held).total(), (held - self._slots(most)).total()

    def _digits(self, value: int) -> Counter[int]:
        last = 0 if self.units else SLOTS - 1
        digits = Counter[int]()
        for slot in range(last):
            value, digits[slot] = divmod(value, BASE)
        digits[last] = value
        return digits

    def _slots(self, numbers: Collection[int]) -> Counter[int]:
        """How many of the events each digit stands for."""
        return Counter(0 if self.units else min(number, SLOTS - 1) for number in numbers)
