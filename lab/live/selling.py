"""The scene of a flash sale: two Regions sell the seats of one gig, by a limit of this library, and by an ADD on the
condition that enough are left.

Rule 1: Who is told yes has a seat: what was promised is summed from the answers, with no code of a counter.
Rule 2: Who gets no decision asks again until there is one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from lab.designs.atomic import Atomic
from lab.live import scripts
from lab.live.controls import Controls
from lab.live.customers import Demand
from lab.live.scene import REGIONS, Scene
from ledger import tokens
from ledger.errors import LimitReached
from ledger.gate import decide
from ledger.gate.gates import Gates
from ledger.limit import Limit
from ledger.requests import Program
from ledger.settings import Settings
from ledger.values import Delta
from reader.standing import read_gates, standing_of
from simulator.process import Process, Script, Sleep

COUNTER, SEATS = "seats:gig", 200
CONDITIONAL = Atomic(floor=0)


@dataclass(frozen=True, slots=True)
class Left:
    """How many seats a read in a Region says are left; of those, how many it can sell without asking the other."""

    value: int = 0
    here: int = 0


class Selling(Scene):
    """`left`: what was read last, `orders`: by number, what customers were told, both by Region and design."""

    DESIGNS: ClassVar = {"ours": "this library", "atomic": "conditional ADD"}
    DEMAND: ClassVar = Demand(COUNTER, (-1, -1, -2, -3))
    SETTINGS: ClassVar = Settings(table="seats", region=REGIONS[0], regions=REGIONS, limits={"seats:": Limit(floor=0)})
    CONTROLS: ClassVar = Controls(duplicates_percent=0, writes_per_s=10)
    RETRY: ClassVar = Sleep(100)  # many customers wait at once

    def __init__(self, seed: int = 1, controls: Controls | None = None) -> None:
        super().__init__(seed, controls)
        self.left = {region: dict.fromkeys(self.DESIGNS, Left()) for region in REGIONS}
        self.orders: dict[str, dict[str, dict[int, str]]] = {
            region: {design: {} for design in self.DESIGNS} for region in REGIONS
        }
        self._gates = {region: Gates.limited(replace(self.SETTINGS, region=region), COUNTER, "") for region in REGIONS}
        first = Delta(self.SETTINGS.lanes_of(COUNTER)[0], tokens.keyed(COUNTER, "the house", self.world.now_ms), SEATS)
        self.simulated.run(decide.add(self._gates[REGIONS[0]], first), REGIONS[0])
        self.simulated.run(CONDITIONAL.add(COUNTER, SEATS, "the house", 0), REGIONS[0])
        self.world.quiesce()  # the doors open, and time begins, when both Regions have the seats
        self.world.step = 0

    def readers(self, region: str) -> Iterator[Process]:
        gates = self._gates[region]

        def ours() -> Program[Left]:
            began, (copies,) = yield from read_gates([gates], consistent=True)
            found = standing_of(gates, copies, began)
            return Left(found.value, found.here.down or 0)

        def atomic() -> scripts.Reading[Left]:
            return Left((yield from self.simulated.steps(CONDITIONAL.value(COUNTER), region)))

        readings: scripts.Readings[Left] = {
            "ours": ("reader", ours),
            "atomic": ("reader of ADD", atomic),
        }
        for design, (who, once) in readings.items():
            see = partial(self.left[region].__setitem__, design)
            yield self.enter(who, region, partial(scripts.reads, once, see, self.problems.append))

    def sends(self, delta: Delta, region: str) -> dict[str, scripts.Send]:
        number = self.truth.numbers[delta.token]

        def ours() -> Script:
            self._told(region, "ours", number, "waits")
            try:
                yield from decide.add(self._gates[region], delta)
                self._told(region, "ours", number, "sold")
            except LimitReached:
                self._told(region, "ours", number, "refused")

        def atomic() -> Script:
            self._told(region, "atomic", number, "waits")
            add = CONDITIONAL.add(COUNTER, delta.change, delta.token, 0)
            outcome = yield from self.simulated.steps(add, region, CONDITIONAL.sdk_attempts)
            self._told(region, "atomic", number, "sold" if outcome == "recorded" else "refused")

        return {"writer": ours, "writer of ADD": atomic}

    def _told(self, region: str, design: str, number: int, what: str) -> None:
        """A customer who was told yes once has the seats."""
        orders = self.orders[region][design]
        if orders.get(number) != "sold":
            orders[number] = what

    def seats(self, design: str, what: str, region: str | None = None) -> int:
        """The seats of the orders that were sold, refused, or wait: in both Regions, each order once, or in one."""
        regions = REGIONS if region is None else (region,)
        found = {n for each in regions for n, told in self.orders[each][design].items() if told == what}
        return -self.truth.sum(found)

    def oversold(self, design: str) -> int:
        """By how many seats more was promised than there are."""
        return max(0, self.seats(design, "sold") - SEATS)

    def sample(self) -> tuple[int, ...]:
        """By design, what is left of all that was promised; then by Region, what each design reads."""
        promised = [SEATS - self.seats(design, "sold") for design in self.DESIGNS]
        return (*promised, *(each.value for region in REGIONS for each in self.left[region].values()))
