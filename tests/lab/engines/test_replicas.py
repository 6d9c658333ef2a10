"""The pure half of the replicator, against a model of the Regions."""

import random

import pytest

from lab.engines.replicas import Change, Image, Replicas
from ledger.requests import Key

REGIONS = "eu-west-1", "us-east-1", "ap-south-1"
MAX_LAG_MS, STEPS = 40, 60


class Model:
    """Tables and streams of some Regions in memory, and the registry under test, which gets what a replicator gives."""

    def __init__(self, rng: random.Random) -> None:
        self.replicas, self._rng = Replicas(REGIONS, rng, 0, MAX_LAG_MS), rng
        self.now_ms = self.order = 0
        self.tables: dict[str, dict[Key, Image]] = {region: {} for region in REGIONS}
        self.streams: dict[str, list[Change]] = {region: [] for region in REGIONS}
        self.last: dict[Key, Image] = {}

    def act(self, *, alike: bool) -> None:
        """One of what may happen. alike: writes may be like others, or delete."""
        rng, region = self._rng, self._rng.choice(REGIONS)
        match rng.randrange(8):
            case 0 | 1:
                value = rng.choice([None, 1, 2]) if alike else self.order + 1
                key, new = Key(rng.choice("xy"), "s"), None if value is None else {"value": {"N": str(value)}}
                self._store(region, key, new)
                self.last[key] = new
            case 2 | 3:
                self.send(region, rng.randint(1, 2))
            case 4:
                self.read(region, rng.randint(1, 3))
            case 5:
                self.now_ms += rng.randint(1, MAX_LAG_MS)
            case 6:
                self.replicas.cut(rng.sample(REGIONS, rng.randint(1, 3)))
            case _:
                self.replicas.join(self.now_ms)

    def read(self, region: str, limit: int = 1_000) -> None:
        page, self.streams[region] = self.streams[region][:limit], self.streams[region][limit:]
        for change in page:
            self.replicas.saw(region, change, self.now_ms)
        if not self.streams[region]:
            self.replicas.caught_up(region, self.now_ms)

    def send(self, region: str, limit: int = 25) -> None:
        for where, new in self.replicas.take(region, self.now_ms, limit).items():
            self._store(region, where, new)

    def run_to_the_end(self) -> None:
        self.replicas.join(self.now_ms)
        for _ in range(50):
            for region in REGIONS:
                self.read(region)
            if self.replicas.pending == 0:
                return
            self.now_ms += MAX_LAG_MS
            for region in REGIONS:
                self.send(region)
        raise AssertionError(f"{self.replicas.pending} changes are pending")

    def _store(self, region: str, where: Key, new: Image) -> None:
        if self.tables[region].get(where) != new:  # DynamoDB makes no record of a write that changes nothing
            self.tables[region][where] = new
            self.order += 1
            self.streams[region].append(Change(where, new, self.order))


@pytest.mark.parametrize("alike", [False, True])
def test_regions_converge_and_to_the_last_writer_where_no_two_writes_are_alike(alike: bool) -> None:
    for seed in range(100):
        model = Model(random.Random(seed))
        for _ in range(STEPS):
            model.act(alike=alike)
        model.run_to_the_end()
        present = [{k: v for k, v in table.items() if v is not None} for table in model.tables.values()]
        assert present[0] == present[1] == present[2], seed
        assert alike or present[0] == model.last, seed
