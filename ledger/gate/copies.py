"""`Copies`: the gates of a counter as one Region has them.

Rule 1: a counter's value is the sum of its gates' values. Copies of other Regions' gates are each
of its own moment, so they may show a sale without the rights that came for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.core.requests import GetMany, Item, Program
from ledger.gate import items
from ledger.gate.gate import Gate, name_of
from ledger.gate.gates import Gates


@dataclass(frozen=True, slots=True)
class Copies:
    """The gates of a counter as one Region has them; a missing gate has decided nothing."""

    gates: tuple[Gate, ...]

    @classmethod
    def of(cls, gates: Gates, found: Sequence[Item | None]) -> "Copies":
        """The copies in the items of the gates, in the order of the lanes.

        Raises DamagedItem and LimitMismatch.
        """
        there = zip(gates.lanes, found, strict=True)
        return cls(tuple(gates.gate(lane, item) for lane, item in there if item is not None))

    def has_opened(self, gates: Gates) -> bool:
        """Whether it has the gate with the first rights, and so the limit as it is set."""
        return any(gates.limit.opens(gate.lane.region, gate.lane.shard) for gate in self.gates)

    @property
    def value(self) -> int:
        return sum(gate.value for gate in self.gates)

    @property
    def count(self) -> int:
        return sum(gate.number for gate in self.gates)

    @property
    def is_closed(self) -> bool:
        """Whether it has, for every lane that got rights, the giver with at least as much given.

        Then the value is certainly within the limit.
        """
        known = {name_of(gate.lane): gate for gate in self.gates}
        return all(
            name in known and known[name].given.get((name_of(gate.lane), side), 0) >= got
            for gate in self.gates
            for (name, side), got in gate.got.items()
        )


def read_copies(counters: Sequence[Gates], *, consistent: bool) -> Program[list[Copies]]:
    """The copies of counters in this Region, by one request.

    Raises DamagedItem, LimitMismatch and TableErrors.
    """
    keys = tuple(items.gate_key(lane) for gates in counters for lane in gates.lanes)
    found = iter((yield GetMany(keys, consistent)))
    return [Copies.of(gates, [next(found) for _ in gates.lanes]) for gates in counters]
