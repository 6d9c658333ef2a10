"""`Named`: items of a lane that somebody names, and the compactor settles.

Rule 1: Who names them, such as `ring`, loads nothing of the compactor.
"""

from collections.abc import Iterable
from dataclasses import dataclass

KEYS_MAX, BETWEEN_MAX = 5_000, 10
"""Of what is named, as much as the messages of one batch name; more is named by fewer and wider ranges."""


@dataclass(frozen=True, slots=True)
class Named:
    """Items of a lane by their sort keys. between: pairs of a first and a last one, and all that are in between."""

    keys: tuple[str, ...] = ()
    between: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, keys: Iterable[str]) -> "Named":
        """These; many are named by the first and the last."""
        some = sorted(set(keys))
        return cls(tuple(some)) if len(some) <= KEYS_MAX else cls((), ((some[0], some[-1]),))

    def __bool__(self) -> bool:
        return bool(self.keys or self.between)

    def __or__(self, other: "Named") -> "Named":
        named = Named.of((*self.keys, *other.keys))
        between = sorted({*self.between, *other.between, *named.between})
        if len(between) > BETWEEN_MAX:
            between = [(between[0][0], max(last for _, last in between))]
        return Named(named.keys, tuple(between))
