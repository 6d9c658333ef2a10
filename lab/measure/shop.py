"""`Shop`: the shipped classes on metered tables, with a clock of ours, so that nothing waits and
every run prints the same."""

from typing import Any

from compactor import Compactor
from lab.measure.metered_table import TABLE, Charge, MeteredTable
from ledger import Ledger, Settings
from reader import Reader

HOME = "eu-west-1"
START_MS = 1_800_000_000_000


class Shop:
    """A ledger in each Region; a reader and a compactor in the first. `now_ms` moves on by hand."""

    def __init__(self, *regions: str, **settings: Any) -> None:
        self.homes, self.now_ms = regions or (HOME,), float(START_MS)
        self.tables = {region: MeteredTable() for region in self.homes}
        given: Any = {"tables": self.tables, "clock": lambda: int(self.now_ms)}
        of = {
            home: Settings(table=TABLE, region=home, regions=self.homes, **settings)
            for home in self.homes
        }
        self.settings, self.ledgers = (
            of[self.homes[0]],
            {home: Ledger(of[home], **given) for home in self.homes},
        )
        self.reader = Reader(self.settings, table=self.tables[self.homes[0]], clock=given["clock"])
        self.compactor = Compactor(self.settings, **given)
        # asks for the table's shape, once a process; the figures are of what comes after
        self.reader.read("another")

    @property
    def ledger(self) -> Ledger:
        """That of the first Region."""
        return self.ledgers[self.homes[0]]

    @property
    def cost(self) -> Charge:
        """Of everything so far, in all Regions."""
        return sum((table.cost for table in self.tables.values()), start=Charge())
