"""A table in several Regions as DynamoDB promises it, and no better: the double that histories are played on.

Rule 1: Deterministic from its choices.
Rule 2: No I/O, no sleep, no thread.
Rule 3: It knows requests, not counters. Each Region has a replica.
Rule 4: A write is strongly visible at home at once and reaches other Regions item by item, as late and in any order as
the choices say, the last writer winning per item. A transaction is decided at once and becomes visible item by item,
also to strong reads.
Rule 5: Until it has landed its items answer other writes with TransactionConflict. An eventually consistent read may
see any recent state of each item.
Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html (isolation levels) and
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html (last writer wins).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.conditions import Absent, has
from ledger.errors import LedgerError, TokenConflict, TransactionConflict, Unavailable
from ledger.requests import (
    AlreadyThere,
    At,
    Delete,
    DeleteMany,
    Get,
    GetMany,
    Item,
    Key,
    KeyPage,
    Page,
    Pause,
    Put,
    PutMany,
    Query,
    Request,
    Scan,
    Together,
    Transact,
    Update,
    Write,
    Written,
    becomes,
    holds,
    key_of,
    refusals,
)
from simulator.choices import Choices

Stamp = tuple[int, int]
"""Orders the writes of an item: the Region's clock, then a running number. The largest wins everywhere."""

PAST_MAX = 6
TOKEN_MS = 600_000
"""How long a Region remembers the token of a transaction."""


@dataclass(slots=True)
class Cell:
    """An item's newest state in one Region (None: deleted), and recent ones with the step at which each ended."""

    item: Item | None
    stamp: Stamp
    past: list[tuple[int, Item | None]] = field(default_factory=list)


@dataclass(slots=True)
class Landing:
    """A transaction that was decided and is becoming visible; `left` are the writes that have not."""

    region: str
    left: list[tuple[Key, Item | None]]


class Replica:
    """One Region's copy of the table."""

    def __init__(self) -> None:
        self.cells: dict[str, dict[str, Cell]] = {}
        self.locked: set[Key] = set()
        self.inbox: dict[Key, tuple[Item | None, Stamp, str]] = {}
        """What other Regions wrote and has not arrived: only the newest write of each item, and its Region."""

    def cell(self, key: Key) -> Cell | None:
        return self.cells.get(key.pk, {}).get(key.sk)

    def item(self, key: Key) -> Item | None:
        cell = self.cell(key)
        return cell.item if cell else None


class World:
    """The table `regions` share. `lag_steps`: how far an eventually consistent read may lag; `page_size`: of a Query.

    `clock_skew_ms`: how much a Region's clock, by which the last writer is known, runs ahead of true time.
    """

    def __init__(
        self,
        regions: Sequence[str],
        choices: Choices,
        *,
        page_size: int = 3,
        lag_steps: int = 20,
        clock_skew_ms: Sequence[int] = (),
    ) -> None:
        self.regions = tuple(regions)
        self.choices = choices
        self.page_size = page_size
        self.lag_steps = lag_steps
        self.replicas = {region: Replica() for region in regions}
        self.landings: list[Landing] = []
        self.late: list[tuple[str, Request]] = []
        """Writes whose senders stopped waiting, and which are still on their way."""
        self.cut: set[str] = set()
        self.step = 0
        self.step_ms = 1
        self.now_ms = 1_000_000
        self._skew = dict(zip(regions, [*clock_skew_ms, *[0] * len(regions)], strict=False))
        self._writes = 0
        self._tokens: dict[tuple[str, str | None], tuple[tuple[Write, ...], int]] = {}

    # -- requests ------------------------------------------------------------------------------------------------------

    def answer(self, region: str, request: Request) -> Any:
        """What `region` answers at this moment. A Transact may return its Landing: None, once it has landed."""
        replica = self.replicas[region]
        match request:
            case At(other, inner):
                if self.is_cut(region, other):
                    raise Unavailable(f"{other} cannot be reached from {region}. Nothing was written.")
                return self.answer(other, inner)
            case Get(key, consistent):
                return self._seen(replica.cell(key), consistent)
            case GetMany(keys, consistent):
                return tuple(self._seen(replica.cell(key), consistent) for key in keys)
            case Query():
                return self._page(replica, request)
            case Put() | Update() | Delete():
                return self._write_one(region, request)
            case PutMany(items):
                return tuple(self._put_answer(region, item) for item in items)
            case Transact():
                return self._transact(region, request)
            case DeleteMany(items):
                return tuple(self._delete(region, item) for item in items)
            case Pause():
                return None
            case Scan():
                keys = tuple(Key(pk, sk) for pk, cells in replica.cells.items() for sk, c in cells.items() if c.item)
                return KeyPage(keys, None)
            case Together(requests):
                return tuple(self.answer_or_error(region, each) for each in requests)
            case _:
                raise TypeError(f"not a request that a table answers: {request!r}")

    def answer_or_error(self, region: str, request: Request) -> Any:
        try:
            return self.answer(region, request)
        except LedgerError as error:
            return error

    def _seen(self, cell: Cell | None, consistent: bool) -> Item | None:
        if cell is None:
            return None
        if consistent or not cell.past or not self.lag_steps:
            return cell.item
        recent = [item for ended, item in reversed(cell.past) if ended > self.step - self.lag_steps]
        picked = self.choices.pick(len(recent) + 1) if recent else 0
        return recent[picked - 1] if picked else cell.item

    def _page(self, replica: Replica, query: Query) -> Page:
        cells = replica.cells.get(query.pk, {})
        low, high = query.after, query.upto
        size = min(query.limit or self.page_size, self.page_size)
        found: list[Item] = []
        last = None
        for sk in sorted(cells):
            if (low is not None and sk <= low) or (high is not None and sk > high):
                continue
            item = self._seen(cells[sk], query.consistent)
            if item is None:
                continue
            if len(found) == size:
                return Page(tuple(found), last)
            found.append(item)
            last = sk
        return Page(tuple(found), None)

    def _put_answer(self, region: str, item: Item) -> AlreadyThere | LedgerError | None:
        there = self.answer_or_error(region, Put(item, Absent()))
        return there if there is None or isinstance(there, LedgerError) else AlreadyThere(there)

    def _delete(self, region: str, item: Item) -> AlreadyThere | LedgerError | None:
        key, replica = key_of(item), self.replicas[region]
        if key in replica.locked:
            return TransactionConflict(f"{key} is in a transaction. Nothing was written.")
        there = replica.item(key)
        if there is None:
            return None
        if not holds(Delete(key, has(item)), there):
            return AlreadyThere(there)
        self._write(region, key, None)
        return None

    def _write_one(self, region: str, write: Write) -> Any:
        replica = self.replicas[region]
        self._refuse_locked(replica, write.key)
        there = replica.item(write.key)
        if not holds(write, there):
            return there or {}
        after = becomes(write, there)
        self._write(region, write.key, after)
        return Written(after or {}) if isinstance(write, Update) and write.shows else None

    def _transact(self, region: str, transaction: Transact) -> Landing | tuple[Item | None, ...] | None:
        replica, (writes, token) = self.replicas[region], transaction
        known, at_ms = self._tokens.get((region, token), (writes, None))
        if at_ms is not None and self.now_ms - at_ms <= TOKEN_MS:
            if known != writes:
                raise TokenConflict("The token stands for another transaction. Nothing was written.")
            return None
        for write in writes:
            self._refuse_locked(replica, write.key)
        found = [(write, replica.item(write.key)) for write in writes]
        refused = refusals(found)
        if refused is not None:
            return refused
        landing = Landing(region, [(write.key, becomes(write, there)) for write, there in found])
        replica.locked.update(write.key for write in writes)
        self.landings.append(landing)
        if token is not None:
            self._tokens[region, token] = writes, self.now_ms
        return landing

    def _refuse_locked(self, replica: Replica, key: Key) -> None:
        if key in replica.locked:
            raise TransactionConflict(f"{key} is in a transaction. Nothing was written.")

    def _write(self, region: str, key: Key, item: Item | None) -> None:
        cell = self.replicas[region].cell(key)
        self._writes += 1
        clock = self.now_ms + self._skew[region]
        # A Region's own write always replaces what it holds.
        stamp = (max(clock, cell.stamp[0] + 1) if cell else clock, self._writes)
        self._store(region, key, item, stamp)
        for other in self.regions:
            if other != region:
                inbox = self.replicas[other].inbox
                if key not in inbox or inbox[key][1] < stamp:
                    inbox[key] = (item, stamp, region)

    def _store(self, region: str, key: Key, item: Item | None, stamp: Stamp) -> None:
        cells = self.replicas[region].cells.setdefault(key.pk, {})
        cell = cells.get(key.sk)
        if cell is None:
            cells[key.sk] = Cell(item, stamp, [(self.step, None)])
            return
        cell.past = [*cell.past[1 - PAST_MAX :], (self.step, cell.item)]
        cell.item, cell.stamp = item, stamp

    # -- what happens by itself ----------------------------------------------------------------------------------------

    def is_cut(self, a: str, b: str) -> bool:
        """Whether two Regions cannot reach each other."""
        return a != b and (a in self.cut or b in self.cut)

    def deliverable(self) -> list[tuple[str, Key]]:
        """The (Region, item) pairs that replication could deliver now."""
        inboxes = [(region, self.replicas[region].inbox) for region in self.regions]
        return [(r, key) for r, inbox in inboxes for key, (_, _, home) in inbox.items() if not self.is_cut(r, home)]

    def deliver(self, region: str, key: Key) -> None:
        """One item's newest write arrives in a Region; an older one than it holds is dropped."""
        item, stamp, _ = self.replicas[region].inbox.pop(key)
        cell = self.replicas[region].cell(key)
        if cell is None or cell.stamp < stamp:
            self._store(region, key, item, stamp)

    def land(self, landing: Landing, which: int) -> None:
        """One item of a transaction becomes visible."""
        key, item = landing.left.pop(which)
        self.replicas[landing.region].locked.discard(key)
        self._write(landing.region, key, item)
        if not landing.left:
            self.landings.remove(landing)

    def apply_late(self, which: int) -> None:
        """A write arrives whose sender has stopped waiting for it."""
        region, request = self.late.pop(which)
        self.answer_or_error(region, request)

    def remake(self, region: str) -> None:
        """A Region's replica is lost, and made again from what the others hold, who agree on it among themselves.

        What had not left the Region is lost, item by item, and with it whatever was on its way there or landing.
        """
        newest: dict[Key, tuple[Stamp, Item | None, str]] = {}
        others = [other for other in self.regions if other != region]
        for other in others:
            inbox = self.replicas[other].inbox
            for key in [key for key, (_, _, home) in inbox.items() if home == region]:
                del inbox[key]
            for pk, cells in self.replicas[other].cells.items():
                for sk, cell in cells.items():
                    key = Key(pk, sk)
                    if key not in newest or newest[key][0] < cell.stamp:
                        newest[key] = cell.stamp, cell.item, other
        self.replicas[region] = Replica()
        for key, (stamp, item, holder) in newest.items():
            self._store(region, key, item, stamp)
            for other in others:
                held, inbox = self.replicas[other].cell(key), self.replicas[other].inbox
                if (held is None or held.stamp < stamp) and (key not in inbox or inbox[key][1] < stamp):
                    inbox[key] = (item, stamp, holder)
        self.landings = [landing for landing in self.landings if landing.region != region]
        self.late = [(home, request) for home, request in self.late if home != region]

    def settle_late(self, region: str) -> None:
        """Whatever was sent in a Region and whose sender stopped waiting has arrived and landed."""
        for home, request in [each for each in self.late if each[0] == region]:
            self.late.remove((home, request))
            self.answer_or_error(region, request)
            self._land_all(region)
        self._land_all(region)

    def quiesce(self) -> None:
        """Everything on its way arrives: Regions are joined, late writes applied, transactions land, nodes catch up."""
        self.cut.clear()
        while self.late:
            self.apply_late(0)
            self._land_all()
        self._land_all()
        for region, key in self.deliverable():
            self.deliver(region, key)
        self.step += self.lag_steps + 1

    def forget(self) -> None:
        """Drop what is deleted everywhere and no read can see any more: for a world that runs for hours."""
        on_its_way = {key for replica in self.replicas.values() for key in (*replica.inbox, *replica.locked)}
        for replica in self.replicas.values():
            for pk, cells in replica.cells.items():
                for sk in [sk for sk, cell in cells.items() if self._is_forgettable(cell)]:
                    if Key(pk, sk) not in on_its_way:
                        del cells[sk]

    def _is_forgettable(self, cell: Cell) -> bool:
        return cell.item is None and all(ended <= self.step - self.lag_steps for ended, _ in cell.past)

    def _land_all(self, region: str | None = None) -> None:
        for landing in [each for each in self.landings if region in (None, each.region)]:
            while landing.left:
                self.land(landing, 0)
