"""A table in several Regions as DynamoDB promises it, and no better: histories are played on it.

Rule 1: Its choices determine all that it does.
Rule 2: It has no I/O, no sleep, no thread.
Rule 3: It knows requests, and no counters. Each Region has a replica.
Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
(isolation levels) and
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html
(last writer wins).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.core.errors import TransactionConflict, Unavailable
from ledger.core.items import RETIRES
from ledger.core.requests import Item, Key, KeyPage, Request
from ledger.core.running import or_error
from ledger.tables.memory import MemoryTable
from simulator.cells import Cell, Stamp
from simulator.choices import Choices


@dataclass(slots=True)
class Landing:
    """A transaction that is decided and becoming visible; `left` has the writes that are not
    visible yet.
    """

    region: str
    left: list[tuple[Key, Item | None]]


class Replica(MemoryTable):
    """One Region's copy of the table.

    Its items are `cells`, so that a read that lags can see earlier states.
    """

    def __init__(self, world: World, region: str) -> None:
        super().__init__(page_size=world.page_size, lists=False)
        self._world, self._region = world, region
        self.lose()

    def lose(self) -> None:
        """Lose all items, and all writes on their way here."""
        self.cells: dict[str, dict[str, Cell]] = {}
        self.locked: set[Key] = set()
        self.inbox: dict[Key, tuple[Item | None, Stamp, str]] = {}
        """Writes of other Regions that have not arrived: only the newest write of each item, and
        its Region.
        """

    def cell(self, key: Key) -> Cell | None:
        return self.cells.get(key.pk, {}).get(key.sk)

    def item(self, key: Key) -> Item | None:
        cell = self.cell(key)
        return cell.item if cell else None

    def expect(self, key: Key, item: Item | None, stamp: Stamp, home: str) -> None:
        if key not in self.inbox or self.inbox[key][1] < stamp:
            self.inbox[key] = (item, stamp, home)

    def _answer_at(self, region: str, request: Request) -> Any:
        if self._world.is_cut(self._region, region):
            raise Unavailable(
                f"{region} cannot be reached from {self._region}. Nothing was written."
            )
        return self._world.answer(region, request)

    def _now_ms(self) -> int:
        return self._world.now_ms

    def _there(self, key: Key) -> Item | None:
        if key in self.locked:
            raise TransactionConflict(f"{key} is in a transaction. Nothing was written.")
        return self.item(key)

    def _seen(self, key: Key, consistent: bool) -> Item | None:
        cell, world = self.cell(key), self._world
        if cell is None or consistent:
            return self.item(key)
        earlier = cell.ended_after(world.step - world.lag_steps)
        picked = world.choices.pick(len(earlier) + 1) if earlier else 0
        return earlier[picked - 1] if picked else cell.item

    def _sort_keys(self, pk: str) -> Sequence[str]:
        return sorted(self.cells.get(pk, ()))

    def _scan(self, after: Key | None) -> KeyPage:
        keys = (
            Key(pk, sk)
            for pk, cells in self.cells.items()
            for sk, cell in cells.items()
            if cell.item
        )
        return KeyPage(tuple(keys), None)

    def _store(self, key: Key, item: Item | None) -> None:
        self._world._write(self._region, key, item)

    def _land(self, writes: list[tuple[Key, Item | None]]) -> Landing:
        landing = Landing(self._region, writes)
        self.locked.update(key for key, _ in writes)
        self._world.landings.append(landing)
        return landing


class World:
    """The table of several `regions`. A page of a Query has `page_size` items, and an eventually
    consistent read lags by `lag_steps` at most. `clock_skew_ms`: how much a Region's clock, which
    decides the last writer, is ahead of true time; `replica`: makes each Region's copy, such as
    `strong.StrongReplica`.
    """

    def __init__(
        self,
        regions: Sequence[str],
        choices: Choices,
        *,
        page_size: int = 3,
        lag_steps: int = 20,
        clock_skew_ms: Sequence[int] = (),
        replica: Callable[[World, str], Replica] = Replica,
    ) -> None:
        self.regions = tuple(regions)
        self.choices = choices
        self.page_size = page_size
        self.lag_steps = lag_steps
        self.replicas = {region: replica(self, region) for region in regions}
        self.landings: list[Landing] = []
        self.late: list[tuple[str, Request]] = []
        """Writes whose senders stopped waiting, and which are still on their way."""
        self.cut: set[str] = set()
        self.retiring: set[tuple[str, Key]] = set()
        """The (Region, item) pairs that have a time to live."""
        self.step = 0
        self.step_ms = 1
        self.now_ms = 1_000_000
        self._skew = dict(zip(regions, [*clock_skew_ms, *[0] * len(regions)], strict=False))
        self._writes = 0

    def answer(self, region: str, request: Request) -> Any:
        """The answer of `region` at this moment.

        For a Transact it may be a Landing: None, once it has landed.
        """
        return self.replicas[region].answer(request)

    def _write(self, region: str, key: Key, item: Item | None) -> None:
        # Rule 4: a write is strongly visible at home at once and reaches other Regions item by
        # item, as late and in any order as the choices say; for each item the last writer wins. A
        # transaction is decided at once and becomes visible item by item, also to strong reads.
        cell = self.replicas[region].cell(key)
        self._writes += 1
        clock = self.now_ms + self._skew[region]
        # A Region's own write always replaces what it holds.
        stamp = (max(clock, cell.stamp[0] + 1) if cell else clock, self._writes)
        self._store(region, key, item, stamp)
        for other in self.regions:
            if other != region:
                self.replicas[other].expect(key, item, stamp, region)

    def _store(self, region: str, key: Key, item: Item | None, stamp: Stamp) -> None:
        if item is not None and RETIRES in item:
            self.retiring.add((region, key))
        else:
            self.retiring.discard((region, key))
        cells = self.replicas[region].cells.setdefault(key.pk, {})
        if key.sk not in cells:
            cells[key.sk] = Cell(None, stamp)
        cells[key.sk].write(item, stamp, self.step)

    def is_cut(self, a: str, b: str) -> bool:
        """Whether two Regions cannot reach each other."""
        return a != b and (a in self.cut or b in self.cut)

    def deliverable(self) -> list[tuple[str, Key]]:
        """The (Region, item) pairs that replication could deliver now."""
        inboxes = [(region, self.replicas[region].inbox) for region in self.regions]
        return [
            (r, key)
            for r, inbox in inboxes
            for key, (_, _, home) in inbox.items()
            if not self.is_cut(r, home)
        ]

    def deliver(self, region: str, key: Key) -> None:
        """Let one item's newest write arrive in a Region; it drops a write older than its own
        item.
        """
        item, stamp, _ = self.replicas[region].inbox.pop(key)
        cell = self.replicas[region].cell(key)
        if cell is None or cell.stamp < stamp:
            self._store(region, key, item, stamp)

    def expired(self) -> list[tuple[str, Key]]:
        """The (Region, item) pairs that the table could delete now."""
        # Rule 6: it deletes an item some time after its `retires`, in any Region, in any order;
        # that is replicated as a write.
        there = (
            (region, key, self.replicas[region].item(key)) for region, key in sorted(self.retiring)
        )
        return [
            (region, key)
            for region, key, item in there
            if item and int(item[RETIRES]["N"]) * 1_000 <= self.now_ms
        ]

    def expire(self, region: str, key: Key) -> None:
        # nobody wrote it, so nobody who watches writes sees it
        World._write(self, region, key, None)

    def land(self, landing: Landing, which: int) -> None:
        """Make one item of a transaction visible."""
        key, item = landing.left.pop(which)
        self.replicas[landing.region].locked.discard(key)
        self._write(landing.region, key, item)
        if not landing.left:
            self.landings.remove(landing)

    def apply_late(self, which: int) -> None:
        """Let a write arrive whose sender has stopped waiting for it."""
        region, request = self.late.pop(which)
        or_error(self.answer, region, request)

    def remake(self, region: str) -> None:
        """Lose a Region's replica, and make it again from what the others hold, which agree on it
        among themselves.

        Writes that had not left the Region are lost, item by item, and so are those on their way
        there or landing.
        """
        newest: dict[Key, tuple[Stamp, Item | None, str]] = {}
        others = [other for other in self.regions if other != region]
        for other in others:
            inbox = self.replicas[other].inbox
            self.replicas[other].inbox = {
                key: write for key, write in inbox.items() if write[2] != region
            }
            for pk, cells in self.replicas[other].cells.items():
                for sk, cell in cells.items():
                    key = Key(pk, sk)
                    if key not in newest or newest[key][0] < cell.stamp:
                        newest[key] = cell.stamp, cell.item, other
        self.replicas[region].lose()
        for key, (stamp, item, holder) in newest.items():
            self._store(region, key, item, stamp)
            for other in others:
                held = self.replicas[other].cell(key)
                if held is None or held.stamp < stamp:
                    self.replicas[other].expect(key, item, stamp, holder)
        self.landings = [landing for landing in self.landings if landing.region != region]
        self.late = [(home, request) for home, request in self.late if home != region]

    def settle_late(self, region: str | None = None) -> None:
        """Let all late writes of a Region, or of all, arrive and land."""
        for late in [write for write in self.late if region in (None, write[0])]:
            self.apply_late(self.late.index(late))
            self._land_all(region)
        self._land_all(region)

    def quiesce(self) -> None:
        """Let everything on its way arrive: join Regions, apply late writes, land transactions,
        let nodes catch up.
        """
        self.cut.clear()
        self.settle_late()
        for region, key in self.deliverable():
            self.deliver(region, key)
        self.step += self.lag_steps + 1

    def forget(self) -> None:
        """Drop items that are deleted everywhere and that no read can see any more, for a world
        that runs for hours.
        """
        on_its_way = {
            key for replica in self.replicas.values() for key in (*replica.inbox, *replica.locked)
        }
        oldest = self.step - self.lag_steps
        for replica in self.replicas.values():
            for pk, cells in replica.cells.items():
                for sk, cell in [*cells.items()]:
                    if (
                        cell.item is None
                        and Key(pk, sk) not in on_its_way
                        and not cell.ended_after(oldest)
                    ):
                        del cells[sk]

    def _land_all(self, region: str | None) -> None:
        # Rule 5: until a transaction has landed, its items answer other writes with
        # TransactionConflict. An eventually consistent read may see any recent state of each item.
        for landing in [landing for landing in self.landings if region in (None, landing.region)]:
            while landing.left:
                self.land(landing, 0)
