"""The pure half of the replicator, against a model of the Regions."""

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lab.engines.replicas import Change, Image, Replicas
from ledger.core.requests import Key

A, B, C = "eu-west-1", "us-east-1", "ap-south-1"
MAX_LAG_MS = 40


def key(name: str) -> Key:
    return Key(name, "s")


def image(value: int) -> Image:
    return {"value": {"N": str(value)}}


class Model:
    """Tables and streams of some Regions in memory, and the registry under test, which gets what
    a replicator gives.
    """

    def __init__(self, *regions: str, seed: int) -> None:
        self.replicas = Replicas(regions, random.Random(seed), 0, MAX_LAG_MS)
        self.now_ms = self.order = 0
        self.tables: dict[str, dict[Key, Image]] = {region: {} for region in regions}
        self.streams: dict[str, list[Change]] = {region: [] for region in regions}
        self.last: dict[Key, Image] = {}

    def write(self, region: str, name: str, new: Image) -> None:
        self._store(region, key(name), new)
        self.last[key(name)] = new

    def read(self, region: str, limit: int = 1_000) -> None:
        page, self.streams[region] = self.streams[region][:limit], self.streams[region][limit:]
        for change in page:
            self.replicas.saw(region, change, self.now_ms)
        if not self.streams[region]:
            self.replicas.caught_up(region, self.now_ms)

    def send(self, region: str, limit: int = 25) -> list[Key]:
        sent = self.replicas.take(region, self.now_ms, limit)
        for where, new in sent.items():
            self._store(region, where, new)
        return list(sent)

    def run_to_the_end(self) -> None:
        self.replicas.join(self.now_ms)
        for _ in range(50):
            for region in self.tables:
                self.read(region)
            if self.replicas.pending == 0:
                return
            self.now_ms += MAX_LAG_MS
            for region in self.tables:
                self.send(region)
        raise AssertionError(f"{self.replicas.pending} changes are pending")

    def play(self, script: Sequence[tuple[Any, ...]]) -> None:
        for step in script:
            match step:
                case ("write", region, name, value):
                    value = self.order + 1 if value is None else value
                    self.write(region, name, None if value == "delete" else image(value))
                case ("read", region, limit):
                    self.read(region, limit)
                case ("send", region, limit):
                    self.send(region, limit)
                case ("wait", lag_ms):
                    self.now_ms += lag_ms
                case ("cut", regions):
                    self.replicas.cut(regions)
                case ("join",):
                    self.replicas.join(self.now_ms)

    def _store(self, region: str, where: Key, new: Image) -> None:
        if self.tables[region].get(where) == new:
            return  # DynamoDB makes no stream record of a write that changes nothing
        self.tables[region][where] = new
        self.order += 1
        self.streams[region].append(Change(where, new, self.order))


REGIONS = st.sampled_from([A, B, C])


def steps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Each write of None is one that no other is like."""
    write = st.tuples(st.just("write"), REGIONS, st.sampled_from(["x", "y"]), values)
    send = st.tuples(st.just("send"), REGIONS, st.integers(1, 2))
    others = (
        st.tuples(st.just("read"), REGIONS, st.integers(1, 3)),
        st.tuples(st.just("wait"), st.integers(1, MAX_LAG_MS)),
        st.tuples(st.just("cut"), st.sets(REGIONS, min_size=1)),
        st.tuples(st.just("join")),
    )
    return st.lists(st.one_of(write, write, send, send, *others), max_size=60)


@given(steps(st.none()) | steps(st.sampled_from(["delete", 1, 2])), st.integers(0, 99))
def test_regions_converge_to_the_last_writer(script: list[tuple[Any, ...]], seed: int) -> None:
    world = Model(A, B, C, seed=seed)
    world.play(script)
    world.run_to_the_end()
    present = [{k: v for k, v in table.items() if v is not None} for table in world.tables.values()]
    assert present[0] == present[1] == present[2]
    if all(step[-1] is None for step in script if step[0] == "write"):
        assert present[0] == world.last
