"""docs/deploying.md, "Adding a Region": its order, played with traffic between the steps."""

import re
from collections.abc import Callable

import pytest

from ledger import Ledger, Limit
from ledger.core import errors
from ledger.lane.shape import write
from tests.docs.pages import DOCS
from tests.world import A, B, World, fail

C = "ap-south-1"
OLD, NEW = (A, B), (A, B, C)
SEATS = "seats:gig"


class Table:
    """A table in two Regions, whose limited counter is sold out, and the processes that use it."""

    def __init__(self) -> None:
        self.world = World(NEW, limits={"seats:": Limit(ceiling=10, region=A)})
        self.write_shape(OLD)
        self.world[C].before(object, fail(errors.TableMissing("Requested resource not found.")))
        self.processes = [self.start(region, OLD) for region in OLD]
        self.processes[0].add(SEATS, 10, **self.world.key())

    def start(self, region: str, regions: tuple[str, ...]) -> Ledger:
        return self.world.ledger(region, regions=regions)

    def make_replica(self) -> None:
        self.world[C]._before.clear()
        self.replicate()

    def start_anew(self) -> None:
        # some of the old ones still run
        self.processes += [self.start(region, NEW) for region in OLD]

    def write_shape(self, regions: tuple[str, ...] = NEW) -> None:
        for region in regions:
            self.world[region].run(write(self.world.settings(region, regions=regions)))

    def use_it(self) -> None:
        self.processes[:2] = []
        self.processes.append(self.start(C, NEW))

    def replicate(self) -> None:
        self.world.replicate()
        for table in self.world.regions.values():
            self.world.home.copy_to(
                table, *(key for key in self.world.home.items if key.pk == "shape")
            )

    def ends(self) -> list[str]:
        """How changes end that give a seat back, take it, and take one more, in each process."""
        found: list[str] = []
        for process in self.processes:
            for change in (-1, 1, 1):
                self.world.now_ms += 2_000  # nothing is remembered
                try:
                    found.append(process.add(SEATS, change, **self.world.key()).outcome)
                except errors.LedgerError as error:
                    found.append(type(error).__name__)
        return found


STEPS: dict[str, Callable[[Table], None]] = {
    "The replica": Table.make_replica,
    "The processes": Table.start_anew,
    "The shape": Table.write_shape,
    "let anyone add": Table.use_it,
}


def played(order: list[str]) -> set[tuple[str, ...]]:
    table, seen = Table(), set[tuple[str, ...]]()
    for step in order:
        STEPS[step](table)
        ends = table.ends()
        seen |= {tuple(ends[n : n + 3]) for n in range(0, len(ends), 3)}
    return seen


def test_in_the_order_of_the_page_every_refusal_is_one() -> None:
    page = (DOCS / "deploying.md").read_text("utf-8")
    section = page.partition("## Adding a Region")[2].partition("\n## ")[0]
    steps = re.findall(rf"^\d\. .*?({'|'.join(STEPS)})", section, re.MULTILINE)
    assert sorted(steps) == sorted(STEPS)
    assert played(steps) == {("recorded", "recorded", "LimitReached")}


def test_no_old_process_starts_after_the_shape() -> None:
    seen = played(["The processes", "The replica"])
    assert ("recorded", "recorded", "OutOfReach") in seen
    table = Table()
    for step in ("The replica", "The processes", "The shape"):
        STEPS[step](table)
    with pytest.raises(errors.SettingsMismatch):
        table.start(A, OLD).add(SEATS, -1, **table.world.key())
