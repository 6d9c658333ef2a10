"""The deployed service in memory, minute by minute, with a bill: adds, marks, plan, visits and reads as shipped.

Rule 1: Every request is charged by lab/meters, from the items that are really there.
Rule 2: Changes come at random from a seed.
Rule 3: Replicas are the same table, so they never lag, and each write counts once for every Region.
Rule 4: A request takes a millisecond. As in DynamoDB a page ends at 1 MB, and a Query that reached its limit does not
know that it was the end.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lab.meters.charges import charge
from lab.meters.item_sizes import ItemSizes
from ledger import Change, Ledger, Receipt, wire
from ledger.entries import ENTRY
from ledger.memory import MemoryTable
from ledger.requests import At, Get, GetMany, Item, Key, Page, Put, Query, Request, Scan, Transact
from ledger.settings import Settings
from ledger.units import Cost, item_bytes
from ledgerctl.bill import ITEM_OVERHEAD_BYTES
from ledgerctl.sizes import PAGE_BYTES
from reader import Reader
from service.compact.visit import Done, handle
from service.find.scan import Findings, find
from service.mark.handler import Marker
from service.marks import Claim, Rest
from service.marks import key_of as mark_key_of
from service.plan.handler import due_marks, send_due
from service.runtime import Runtime, chunks
from service.work import Work
from tests.service.support import MemoryMarks, Queue, Told, never, stored

MINUTE_MS = 60_000
START_MS = 1_800_000_000_000
TABLE = "counters"
FAILED = {"Error": {"Code": "ConditionalCheckFailedException"}}


class Metered(MemoryTable):
    """A table that charges what it answers to whoever is named by `by`."""

    def __init__(self) -> None:
        super().__init__(page_size=10**9)
        self.now_ms = START_MS
        self.costs: dict[str, Cost] = {}
        self.payer = "nobody"
        self.seen = ItemSizes()
        self.deltas: list[Item] = []  # put, and not yet told by the stream

    @contextmanager
    def by(self, payer: str) -> Iterator[None]:
        self.payer = payer
        yield
        self.payer = "nobody"

    def pay(self, cost: Cost) -> None:
        self.costs[self.payer] = self.costs.get(self.payer, Cost()) + cost

    def answer(self, request: Request, /) -> Any:
        if isinstance(request, At):  # answered, and paid for, by the peer
            return super().answer(request)
        self.now_ms += 1
        before = set(self.items) if not isinstance(request, Put | Get | GetMany | Query | Transact | Scan) else set()
        sizes = {key: self.items[key] for key in before}
        answer = super().answer(request)
        match request:
            case Put(item):
                self._charge("PutItem", {"Item": item}, {} if answer is None else FAILED | {"Item": answer})
                if item["pk"]["S"].startswith("delta#") and answer is None:
                    self.deltas.append(item)
            case Get(key, consistent):
                asked = {"Key": _key(key), "ConsistentRead": consistent}
                self._charge("GetItem", asked, {"Item": answer} if answer else {})
            case GetMany(keys, consistent):
                batch = {TABLE: {"Keys": [_key(key) for key in keys], "ConsistentRead": consistent}}
                self._charge(
                    "BatchGetItem", {"RequestItems": batch}, {"Responses": {TABLE: list(filter(None, answer))}}
                )
            case Query():
                answer = _paged(answer, request)
                self._charge("Query", {"ConsistentRead": request.consistent}, {"Items": answer.items})
            case Scan():
                found = [_key(key) for key in answer.keys]
                self._charge("Scan", {"ProjectionExpression": "pk, sk"}, {"Items": found})
            case Transact():
                canceled = {"Error": {"Code": "TransactionCanceledException"}}
                arguments = wire.operation(request, TABLE).arguments
                self._charge("TransactWriteItems", arguments, {} if answer is None else canceled)
            case _:  # deletes, however they are asked for
                for key in before - set(self.items):
                    self.seen.put(TABLE, sizes[key])
                    self._charge("DeleteItem", {"Key": _key(key)}, {})
        return answer

    def _charge(self, operation: str, asked: dict[str, Any], answer: dict[str, Any]) -> None:
        self.pay(charge(operation, {"TableName": TABLE, **asked}, answer, self.seen))


class MeteredMarks:
    """Marks that pay a write unit for each request, as marks_table.py makes one of each."""

    def __init__(self, table: Metered) -> None:
        self._table, self._marks = table, MemoryMarks(table)

    def answer(self, request: Any, /) -> Any:
        self._table.now_ms += 1
        answer = self._marks.answer(request)
        lane = request.seen.lane if isinstance(request, Claim) else request.lane
        item = self._table.items.get(mark_key_of(lane))
        if item is not None:
            assert item_bytes(item) <= 1024
            self._table.seen.put(TABLE, item)
        failed = isinstance(request, Claim | Rest) and not answer
        self._table.pay(Cost(requests=1, write_units=1, replicated_units=0 if failed else 1))
        return answer


class Played:
    """A Region of the service and counters that change `rate` times a second each, `pack` times at once."""

    def __init__(self, settings: Settings, rate: float, counters: int = 1, seed: int = 1, pack: int = 1) -> None:
        self.settings, self.rate, self.pack = settings, rate / pack, pack  # rate: of items
        self.counters = [f"stock:{n:05d}A" for n in range(counters)]
        self.table = Metered()
        self.table.peers = dict.fromkeys(settings.regions, self.table)
        self.random = random.Random(seed)
        self.queue = Queue()
        clock = lambda: self.table.now_ms  # noqa: E731
        self.world = Runtime(self.table, MeteredMarks(self.table), self.queue, clock=clock, workers=1)
        told: Any = Told()
        self.marker = Marker(settings, self.world, told, told)
        self.ledger = Ledger(settings, table=self.table, clock=clock, entropy=self.random.randbytes)
        self.reader = Reader(settings, table=self.table, clock=clock)
        self.minute = START_MS
        self.changes = 0
        self.tails: list[int] = []  # of each read
        self.resident: list[float] = []  # bytes beside segments, before and after the visits of each minute

    def play(self, minutes: int, reads: int = 0) -> None:
        """Some minutes; each ends with plan and the visits that it sends. `reads` of each counter in each of them."""
        for _ in range(minutes):
            for at_ms, counter, add in self._happenings(reads):
                self.table.now_ms = at_ms
                if add:
                    self.add(counter)
                else:
                    with self.table.by("read"):
                        self.tails.append(self.reader.read(counter).pending)
            self.minute += MINUTE_MS
            self.table.now_ms = max(self.table.now_ms, self.minute)
            self.resident.append(self._weigh())
            self.plan()
            self.resident.append(self._weigh())

    def _happenings(self, reads: int) -> list[tuple[int, str, bool]]:
        found = []
        for counter in self.counters:
            at_s = self.random.expovariate(self.rate)
            while at_s < 60:
                found.append((self.minute + int(at_s * 1000), counter, True))
                at_s += self.random.expovariate(self.rate)
            found += [(self.minute + self.random.randrange(MINUTE_MS), counter, False) for _ in range(reads)]
        return sorted(found)

    def add(self, counter: str) -> None:
        with self.table.by("change"):
            if self.pack == 1:
                self.ledger.add(counter, -6)
            else:
                told = self.ledger.add_many([Change(counter, -6)] * self.pack, pack=True)
                assert {receipt.outcome for receipt in told if isinstance(receipt, Receipt)} == {"accepted"}
        self.changes += self.pack
        records = [stored(item, made_ms=self.table.now_ms) for item in self.table.deltas]
        self.table.deltas.clear()
        with self.table.by("mark"):
            self.marker({"Records": records})

    def plan(self) -> None:
        with self.table.by("plan"):
            marks = self.world.run(due_marks(self.settings.region))
        with self.table.by("mark"):
            for chunk in chunks(marks, 10):
                self.world.run(send_due(chunk, never))
        sent, self.queue.sent = self.queue.sent, []
        for work in sent:
            with self.table.by("visit"):
                self.world.run(handle(Work(work.lane, planned=True), Done(), self.settings, never))

    def find(self) -> None:
        with self.table.by("find"):
            self.world.run(find(Findings(), self.settings, lambda: False, never))

    def total(self, *payers: str) -> Cost:
        return sum((self.table.costs.get(payer, Cost()) for payer in payers), start=Cost())

    def fill(self) -> None:
        """Each counter gets some of the changes that it takes to fold, so that they are not all folded at once."""
        for counter in self.counters:
            for _ in range(self.random.randrange(self.settings.fold_min)):
                self.add(counter)

    def forget(self) -> None:
        """Begin to look anew."""
        self.tails.clear()
        self.resident.clear()

    def left_bytes(self) -> float:
        """What a folded change leaves in the table for good, as storage is charged."""
        segments = [item for item in self.table.items.values() if item["sk"]["S"].startswith("segment#")]
        whole = sum(item_bytes(item) + ITEM_OVERHEAD_BYTES for item in segments)
        return whole * ENTRY.size / sum(len(item["entries"]["B"]) for item in segments)

    def _weigh(self) -> float:
        passing = (item for item in self.table.items.values() if not item["sk"]["S"].startswith("segment#"))
        return float(sum(self.table.seen.size(TABLE, item) + ITEM_OVERHEAD_BYTES for item in passing))


def _paged(page: Page, query: Query) -> Page:
    size = 0
    for n, item in enumerate(page.items):
        size += item_bytes(item)
        if size > PAGE_BYTES:
            return Page(page.items[:n], page.items[n - 1]["sk"]["S"])
    reached = query.limit is not None and len(page.items) == query.limit
    return Page(page.items, page.items[-1]["sk"]["S"]) if reached else page


def _key(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}
