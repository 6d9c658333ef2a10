"""The recipe of a table's stream: consumers in two Regions count the rows of a global table, whose
writers conflict, and whose records come again.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer

from compactor import Compactor
from ledger import Ledger, Settings
from reader import Reader
from simulator import Faults, Simulation
from tests.docs.pages import RECIPES, Before, instead, run

REGIONS = ("eu-west-1", "us-east-1")
STATES = ("open", "paid", "sent")
Row = dict[str, str]
written = TypeSerializer().serialize


class Killed(BaseException):
    """The process ends here: no `except Exception` of its handler sees it."""


@dataclass
class Replica:
    """One Region's rows, each with the number of its write, or that of its delete; and the stream
    of what changed here.
    """

    rows: dict[str, tuple[int, Row | None]] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    consumed: int = 0

    def put(self, name: str, number: int, row: Row | None) -> None:
        """The last writer wins, here and when another Region's write arrives."""
        before, was = self.rows.get(name, (-1, None))
        if number <= before:
            return
        self.rows[name] = number, row
        if was != row:
            images = {"OldImage": was, "NewImage": row}
            self.records.append(
                {
                    "eventID": f"{id(self)}/{len(self.records)}",
                    "dynamodb": {"SequenceNumber": str(len(self.records))}
                    | {kind: written(image)["M"] for kind, image in images.items() if image},
                }
            )


class Orders:
    """The global table: a replica gets the other's newest row, so it may miss versions between."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.replicas = {region: Replica() for region in REGIONS}
        self.writes = 0

    def write(self, region: str, now: Any) -> None:
        name = f"order-{self.random.randrange(6)}"
        self.writes += 1
        row: Row | None = {
            "id": name,
            "status": self.random.choice(STATES),
            "changed_at": (now + timedelta(microseconds=self.writes % 1_000)).isoformat(),
            "changed_in": region,
        }
        if self.random.random() < 0.2:
            row = None
        self.replicas[region].put(name, self.writes, row)

    def replicate(self, name: str) -> None:
        for one, other in (REGIONS, REGIONS[::-1]):
            if name in self.replicas[one].rows:
                self.replicas[other].put(name, *self.replicas[one].rows[name])


@pytest.mark.parametrize("seed", range(12))
def test_consumers_in_both_regions_count_each_row_once(seed: int) -> None:
    page, orders = run(RECIPES / "stream.md"), Orders(seed)
    chance = orders.random
    faults = Faults(throttled=30, lost=80, dropped=30, lag_steps=40)
    simulation = Simulation(REGIONS, seed=seed, faults=faults)
    tables = {region: simulation.table(region) for region in REGIONS}
    settings = {
        region: Settings(table="counters", region=region, regions=REGIONS, fold_min=1)
        for region in REGIONS
    }
    ledgers = {
        region: Ledger(settings[region], table=tables[region], clock=simulation.clock)
        for region in REGIONS
    }
    sent = 0

    def compact() -> None:
        for region in REGIONS:
            Compactor(settings[region], tables=tables, clock=simulation.clock).run()

    def consume(region: str, most: int) -> None:
        """A batch, as Lambda hands it out: from the first record on that failed. A process may die
        before any call of its ledger.
        """
        nonlocal sent
        replica = orders.replicas[region]
        batch = replica.records[replica.consumed :][:most]
        if not batch:
            return
        sent += len(batch)
        lives = chance.randrange(8) if chance.random() < 0.2 else len(batch) * 2

        def add() -> None:
            nonlocal lives
            lives -= 1
            if lives < 0:
                raise Killed

        with instead(page, ledger=Before(ledgers[region], add)):
            try:
                failed = page["handler"]({"Records": batch}, None)["batchItemFailures"]
            except Killed:
                return
        numbers = [int(each["itemIdentifier"]) for each in failed]
        replica.consumed = min(numbers, default=replica.consumed + len(batch))

    for step in range(120):
        simulation.wait(200)
        if step % 40 == 39:
            compact()
        orders.write(chance.choice(REGIONS), simulation.now())
        if chance.random() < 0.4:
            orders.replicate(f"order-{chance.randrange(6)}")
        if chance.random() < 0.5:
            consume(chance.choice(REGIONS), chance.randrange(1, 12))
    for name in range(6):
        orders.replicate(f"order-{name}")
    for region in REGIONS:
        replica = orders.replicas[region]
        for _ in range(400):
            consume(region, 10)
        assert replica.consumed == len(replica.records)
    for _ in range(3):
        simulation.come_to_rest()
        simulation.wait(60_000)
        compact()
    here, there = (orders.replicas[region].rows for region in REGIONS)
    assert here == there
    truth = Counter(row["status"] for _, row in here.values() if row)
    for region in REGIONS:
        reader = Reader(settings[region], table=tables[region], clock=simulation.clock)
        read = {state: reader.value(f"orders:{state}") for state in STATES}
        assert read == {state: truth[state] for state in STATES}
    assert sent > orders.writes
