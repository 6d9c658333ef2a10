"""`Named`: items of a lane that somebody names, for the compactor to settle.

Rule 1: A module that names them, such as `ring`, loads nothing of the compactor.
"""

from collections.abc import Iterable
from typing import NamedTuple

KEYS_MAX, BETWEEN_MAX = 5_000, 10
"""How many keys and ranges name items, as many as the messages of one batch have; more need
fewer, wider ranges.
"""


class Named(NamedTuple):
    """Items of a lane by their sort keys.

    between: pairs of a first and a last key, for all items in between, too.
    """

    keys: tuple[str, ...] = ()
    between: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, keys: Iterable[str]) -> "Named":
        """These keys; if they are many, the range from the first to the last."""
        names = sorted(set(keys))
        return cls(tuple(names)) if len(names) <= KEYS_MAX else cls((), ((names[0], names[-1]),))

    def __bool__(self) -> bool:
        return bool(self.keys or self.between)

    def __or__(self, other: "Named") -> "Named":
        named = Named.of((*self.keys, *other.keys))
        between = sorted({*self.between, *other.between, *named.between})
        if len(between) > BETWEEN_MAX:
            between = [(between[0][0], max(last for _, last in between))]
        return Named(named.keys, tuple(between))
