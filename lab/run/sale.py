"""The flash sale: 1,000 seats, 1,200 buyers in two Regions, a cut in the middle; three ways to keep
to the seats.

Rule 1: It is played on the simulated table, because no emulator replicates with a lag or can be
cut: the same buyers, faults and cut for each design, from a seed.
Rule 2: A buyer who gets no answer asks again, every second time in the other Region, until the
answer is yes or no.
Rule 3: Whoever gets a yes has a seat. A refusal is wrong if a seat was free at that moment: for
ours by what its gates had decided, for the others by how many had got a yes.
"""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass

from lab.designs.atomic import Atomic
from ledger import Ledger, Limit, Settings
from ledger.core.checks import to_datetime
from ledger.core.errors import LedgerError, LimitReached
from ledger.core.requests import Get, Instant
from ledger.core.running import run
from ledger.gate.items import gate_key, gate_of
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


@dataclass(frozen=True, slots=True)
class Way:
    """sell: whether a buyer who asks in a Region has a seat; raises LedgerError where there is no
    answer. is_free: whether a seat is free after so many buyers got a yes."""

    name: str
    sell: Callable[[str, Buyer], bool]
    is_free: Callable[[int], bool]


Make = Callable[[Simulation], Way]


def conditional_add(name: str, seats: int, *, shared: bool) -> Make:
    """The guidance: ADD 1 IF fewer than `seats` are sold, in the buyer's Region; one item for
    all, or one for each.
    """

    def make(simulation: Simulation) -> Way:
        def sell(region: str, buyer: Buyer) -> bool:
            program = Atomic(ceiling=seats).add(
                "seats" if shared else region, 1, str(buyer.number), buyer.at_ms
            )
            return (
                run(program, simulation.table(region), lambda: Instant(simulation.clock(), 0))
                == "recorded"
            )

        return Way(name, sell, lambda sold: sold < SEATS)

    return make


def limited(simulation: Simulation, ceiling: int = SEATS) -> Way:
    """This library, with a limit."""
    limits = {"seats:": Limit(ceiling=ceiling, region=HOME)}
    settings = {
        region: Settings(table="sale", region=region, regions=REGIONS, limits=limits)
        for region in REGIONS
    }
    ledgers = {
        region: Ledger(settings[region], table=simulation.table(region), clock=simulation.clock)
        for region in REGIONS
    }

    def sell(region: str, buyer: Buyer) -> bool:
        at = to_datetime(buyer.at_ms)
        try:
            ledgers[region].add(
                COUNTER, 1, idempotency_key=str(buyer.number), at=at, region=buyer.home
            )
        except LimitReached:
            return False
        return True

    def is_free(sold: int) -> bool:
        """By what the gates hold at their homes."""
        lanes = settings[HOME].lanes_of(COUNTER)
        found = (
            (lane, simulation.world.answer(lane.region, Get(gate_key(lane)))) for lane in lanes
        )
        return sum(gate_of(lane, item).value for lane, item in found if item is not None) < SEATS

    return Way("this library", sell, is_free)


@dataclass(frozen=True, slots=True)
class Sold:
    """How a sale ended. wrongly_refused: how many buyers were refused while a seat was free."""

    name: str
    sold: int
    refused: int
    wrongly_refused: int

    @property
    def oversold(self) -> int:
        return max(0, self.sold - SEATS)

    @property
    def empty(self) -> int:
        return max(0, SEATS - self.sold)

    @property
    def is_right(self) -> bool:
        return (self.sold, self.refused, self.wrongly_refused) == (SEATS, BUYERS - SEATS, 0)


DESIGNS: tuple[Make, ...] = (
    limited,
    conditional_add("conditional ADD", SEATS, shared=True),
    conditional_add("half per Region", SEATS // 2, shared=False),
)


def flash_sale(seed: int) -> list[Sold]:
    """The sale in each design."""
    return [sale(make, seed) for make in DESIGNS]


def buyers_of(seed: int, began_ms: int) -> list[Buyer]:
    drawn = Drawn(seed)
    homes = (AWAY if drawn.pick(10) < IN_AWAY else HOME for _ in range(BUYERS))
    return [Buyer(n, home, began_ms + n * SALE_MS // BUYERS) for n, home in enumerate(homes)]


def sale(make: Make, seed: int) -> Sold:
    """One sale in one design."""
    simulation = Simulation(REGIONS, seed=seed, faults=FAULTS, start=START)
    design = make(simulation)
    began_ms = simulation.clock()
    order = itertools.count()
    waiting = [(buyer.at_ms, next(order), buyer, 0) for buyer in buyers_of(seed, began_ms)]
    sold = refused = wrongly = 0
    while waiting:
        due_ms, _, buyer, tries = heapq.heappop(waiting)
        simulation.wait(due_ms - simulation.clock())
        if CUT_FROM_MS <= simulation.clock() - began_ms < CUT_UPTO_MS:
            simulation.cut_off(AWAY)
        else:
            simulation.world.cut.clear()
        region = buyer.home if tries % 2 == 0 else REGIONS[buyer.home == HOME]
        try:
            has_seat = design.sell(region, buyer)
        except LedgerError:
            heapq.heappush(waiting, (simulation.clock() + AGAIN_MS, next(order), buyer, tries + 1))
            continue
        wrongly += not has_seat and design.is_free(sold)
        sold, refused = sold + has_seat, refused + (not has_seat)
    return Sold(design.name, sold, refused, wrongly)
