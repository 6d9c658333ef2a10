"""A world that shows each write to whoever judges it."""

from collections.abc import Callable

from ledger.core.cost import item_bytes
from ledger.core.errors import ItemTooLarge
from ledger.core.requests import ITEM_BYTES_MAX, Item, Key
from simulator.world import World


class WatchedWorld(World):
    """gate_bytes_max: what a gate may have at most."""

    watch: Callable[[str, Key, Item | None], None] = staticmethod(lambda region, key, item: None)
    gate_bytes_max: int = ITEM_BYTES_MAX

    def _write(self, region: str, key: Key, item: Item | None) -> None:
        if (
            item is not None
            and key.pk.startswith("gate#")
            and item_bytes(item) > self.gate_bytes_max
        ):
            raise ItemTooLarge(
                f"{key} would have more than {self.gate_bytes_max:,} bytes. Nothing was written."
            )
        super()._write(region, key, item)
        self.watch(region, key, item)
