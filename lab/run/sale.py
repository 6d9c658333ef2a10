"""The flash sale: 1,000 seats, 1,200 buyers in two Regions, a cut in the middle; three ways to keep to the seats.

Rule 1: it is played on the simulated table, because no emulator replicates with a lag or can be cut: the same buyers,
faults and cut for each design, from a seed.
Rule 2: a buyer who gets no answer asks again, and from the other Region every second time, until the answer is yes or
no. What was answered is believed.
Rule 3: a seat is sold to whoever was told yes. A refusal is wrong if a seat was free when it was told: of ours by what
its gates had decided, of the others by who had been told yes.
"""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ledger import Ledger, Limit, Settings
from ledger.actions import Add
from ledger.checks import to_datetime
from ledger.conditions import Absent, AtLeast, Either, Not
from ledger.errors import LedgerError, LimitReached
from ledger.gate.items import gate_key, gate_of
from ledger.requests import At, Get, Key, Request, Update
from simulator import Drawn, Faults, Simulation

HOME, AWAY = REGIONS = ("eu-west-1", "us-east-1")
SEATS, BUYERS = 1_000, 1_200
SALE_MS, AGAIN_MS = 12_000, 500
CUT_FROM_MS, CUT_UPTO_MS = SALE_MS * 35 // 100, SALE_MS * 60 // 100
IN_AWAY = 3
"""Of ten buyers, so many are in the other Region."""

FAULTS = Faults(throttled=5, dropped=20, lost=30, late=10, lag_steps=20, slow_replication=True)
START = to_datetime(1_000_000)
COUNTER = "seats:gig"


@dataclass(frozen=True, slots=True)
class Buyer:
    number: int
    home: str
    at_ms: int


class Design(Protocol):
    """A way to sell."""

    name: str

    def sell(self, region: str, buyer: Buyer) -> bool:
        """Whether the buyer has a seat. Raises LedgerError where there is no answer."""

    def is_free(self, told: int) -> bool:
        """Whether a seat is free, after so many buyers were told yes."""


class ConditionalAdd:
    """The guidance: ADD 1 IF fewer than `seats` are sold, in the buyer's Region; one item for all, or one for each."""

    def __init__(self, simulation: Simulation, name: str, seats: dict[str, int], *, shared: bool) -> None:
        self.name = name
        self._simulation, self._seats, self._shared = simulation, seats, shared

    def sell(self, region: str, buyer: Buyer) -> bool:
        key = Key("sale", "seats" if self._shared else region)
        some_left = Either((Absent("sold"), Not(AtLeast("sold", {"N": str(self._seats[region])}))))
        return self._simulation.table(region).answer(Update(key, (Add("sold", 1),), some_left)) is None

    def is_free(self, told: int) -> bool:
        return told < SEATS


class Counted:
    """A table that counts what is asked of other Regions."""

    one_at_a_time = True

    def __init__(self, simulation: Simulation, region: str) -> None:
        self._table = simulation.table(region)
        self.across = 0

    def answer(self, request: Request, /) -> Any:
        self.across += isinstance(request, At)
        return self._table.answer(request)


class Limited:
    """This library, with a limit."""

    name = "this library"

    def __init__(self, simulation: Simulation, limit: Limit) -> None:
        self._simulation = simulation
        self._settings = {
            region: Settings(table="sale", region=region, regions=REGIONS, limits={"seats:": limit})
            for region in REGIONS
        }
        self._tables = {region: Counted(simulation, region) for region in REGIONS}
        self._ledgers = {
            region: Ledger(self._settings[region], table=self._tables[region], clock=simulation.clock)
            for region in REGIONS
        }

    def sell(self, region: str, buyer: Buyer) -> bool:
        at = to_datetime(buyer.at_ms)
        try:
            self._ledgers[region].add(COUNTER, 1, idempotency_key=str(buyer.number), at=at, region=buyer.home)
        except LimitReached:
            return False
        return True

    def is_free(self, told: int) -> bool:
        return self.decided < SEATS

    @property
    def decided(self) -> int:
        """What the gates hold at their homes."""
        lanes = self._settings[HOME].lanes_of(COUNTER)
        found = ((lane, self._simulation.world.answer(lane.region, Get(gate_key(lane)))) for lane in lanes)
        return sum(gate_of(lane, item).value for lane, item in found if item is not None)

    @property
    def across(self) -> int:
        return sum(table.across for table in self._tables.values())


@dataclass(frozen=True, slots=True)
class Sold:
    """What came of a sale. wrongly_refused: buyers who were told no while a seat was free."""

    name: str
    sold: int
    refused: int
    wrongly_refused: int
    asked_again: int
    across: int | None = None

    @property
    def oversold(self) -> int:
        return max(0, self.sold - SEATS)

    @property
    def empty(self) -> int:
        return max(0, SEATS - self.sold)

    @property
    def is_right(self) -> bool:
        return (self.sold, self.refused, self.wrongly_refused) == (SEATS, BUYERS - SEATS, 0)


Make = Callable[[Simulation], Design]

DESIGNS: tuple[Make, ...] = (
    lambda simulation: Limited(simulation, Limit(ceiling=SEATS, region=HOME)),
    lambda simulation: ConditionalAdd(simulation, "conditional ADD", dict.fromkeys(REGIONS, SEATS), shared=True),
    lambda simulation: ConditionalAdd(simulation, "a share a Region", dict.fromkeys(REGIONS, SEATS // 2), shared=False),
)


def flash_sale(seed: int) -> list[Sold]:
    """The sale in each design."""
    return [_sale(make, seed) for make in DESIGNS]


def buyers_of(seed: int, began_ms: int) -> list[Buyer]:
    drawn = Drawn(seed)
    homes = (AWAY if drawn.pick(10) < IN_AWAY else HOME for _ in range(BUYERS))
    return [Buyer(n, home, began_ms + n * SALE_MS // BUYERS) for n, home in enumerate(homes)]


def _sale(make: Make, seed: int) -> Sold:
    simulation = Simulation(REGIONS, seed=seed, faults=FAULTS, start=START)
    design = make(simulation)
    began_ms = simulation.clock()
    order = itertools.count()
    waiting = [(buyer.at_ms, next(order), buyer, 0) for buyer in buyers_of(seed, began_ms)]
    sold = refused = wrongly = again = 0
    while waiting:
        due_ms, _, buyer, tries = heapq.heappop(waiting)
        simulation.wait(due_ms - simulation.clock())
        _cut(simulation, simulation.clock() - began_ms)
        region = buyer.home if tries % 2 == 0 else REGIONS[buyer.home == HOME]
        try:
            has_seat = design.sell(region, buyer)
        except LedgerError:
            again += 1
            heapq.heappush(waiting, (simulation.clock() + AGAIN_MS, next(order), buyer, tries + 1))
            continue
        wrongly += not has_seat and design.is_free(sold)
        sold, refused = sold + has_seat, refused + (not has_seat)
    across = design.across if isinstance(design, Limited) else None
    return Sold(design.name, sold, refused, wrongly, again, across)


def _cut(simulation: Simulation, since_ms: int) -> None:
    """The link is cut in the middle of the sale."""
    if CUT_FROM_MS <= since_ms < CUT_UPTO_MS:
        simulation.cut_off(AWAY)
    else:
        simulation.world.cut.clear()
