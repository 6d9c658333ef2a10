"""A reading of a counter, judged by what its Region could know when it was read, and the reasons where it is wrong.

Rule 1: Reasons are counted change by change; together they give exactly what the number is off, or nothing is said.
"""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Literal

from lab.live.contents import Content

Kind = Literal["overwritten", "again", "coming", "early"]


@dataclass(frozen=True, slots=True)
class Why:
    """Of so many changes. amount: what they make the number wrong by."""

    kind: Kind
    changes: int
    amount: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, the sum and number of the changes that the Region could know then, and why they differ.

    count: of how many changes the read knows that it is the sum; None where it does not know.
    """

    value: int = 0
    count: int | None = None
    known: int = 0
    known_count: int = 0
    why: tuple[Why, ...] = ()

    @property
    def off(self) -> int:
        return self.value - self.known


def reasons(
    off: int, known: Set[int], content: Content, elsewhere: Set[int], amount: Callable[[Iterable[int]], int]
) -> tuple[Why, ...]:
    """Why a number that is made of `content` differs by `off` from the sum of the known changes.

    elsewhere: changes that another Region's number holds, so that they may come yet. amount: what changes come to.
    """
    missing, early = known - content.once, content.once - known
    lost, coming = missing - elsewhere, missing & elsewhere
    found = (
        Why("overwritten", len(lost), -amount(lost)),
        Why("again", len(content.again), amount(content.again)),
        Why("coming", len(coming), -amount(coming)),
        Why("early", len(early), amount(early)),
    )
    return tuple(why for why in found if why.changes) if sum(why.amount for why in found) == off else ()
