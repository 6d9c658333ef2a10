"""A global table with multi-Region strong consistency, as a mode of the simulated table.

Rule 1: A strong read in any Region returns the newest item; an eventual one what has arrived there.
Rule 2: A write's condition is compared with the newest item. For a few steps the write is in
flight: a write from another Region to the same item fails meanwhile, and writes nothing.
Rule 3: A Region that reaches neither another one nor the witness (a third place beside two) answers
only eventual reads.
Source:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html
"""

from collections.abc import Sequence
from typing import Any

from ledger.core.errors import TableMismatch, TransactionConflict, Unavailable
from ledger.core.requests import (
    Delete,
    Get,
    GetMany,
    Item,
    Key,
    Put,
    Query,
    Request,
    Transact,
    Update,
)
from simulator.cells import Cell
from simulator.world import Replica

IN_FLIGHT_STEPS = 4
NEED_TWO = (Put, Update, Delete, Get, GetMany, Query)


class StrongReplica(Replica):
    """One Region's copy of such a table: `World(..., replica=StrongReplica)`."""

    def answer(self, request: Request, /) -> Any:
        cut = self._world.cut
        is_alone = self._region in cut or len(cut) > 1  # of three places
        if is_alone and isinstance(request, NEED_TWO) and getattr(request, "consistent", True):
            raise Unavailable(f"{self._region} reaches no second Region. Nothing was written.")
        return super().answer(request)

    def lose(self) -> None:
        super().lose()
        self.in_flight: dict[Key, int] = {}
        """The step until which a write of an item is in flight, for writes that were sent here."""

    def _newest(self, key: Key) -> Cell | None:
        cells = (replica.cell(key) for replica in self._world.replicas.values())
        return max((cell for cell in cells if cell), key=lambda cell: cell.stamp, default=None)

    def _there(self, key: Key) -> Item | None:
        others = (other for other in self._world.replicas.values() if other is not self)
        if any(
            isinstance(other, StrongReplica) and other.in_flight.get(key, 0) > self._world.step
            for other in others
        ):
            raise TransactionConflict(
                f"{key} is being written in another Region. Nothing was written."
            )
        return self._seen(key, consistent=True)

    def _seen(self, key: Key, consistent: bool) -> Item | None:
        if not consistent:
            return super()._seen(key, consistent)
        newest = self._newest(key)
        return newest.item if newest else None

    def _sort_keys(self, pk: str) -> Sequence[str]:
        return sorted(
            {sk for replica in self._world.replicas.values() for sk in replica.cells.get(pk, ())}
        )

    def _store(self, key: Key, item: Item | None) -> None:
        newest, world = self._newest(key), self._world
        if newest is not None and newest is not self.cell(key):
            world._store(self._region, key, newest.item, newest.stamp)
        super()._store(key, item)
        self.in_flight[key] = world.step + world.choices.pick(IN_FLIGHT_STEPS)

    def _transact(self, transaction: Transact) -> Any:
        # Rule 4: this mode has no transactions. AWS does not say how the table answers one: here
        # with a TableMismatch.
        raise TableMismatch(
            "A table with multi-Region strong consistency has no transactions. Nothing was written."
        )
