"""What calls take that look at many things: requests and units, exact, on tables in memory.

Rule 1: Each has something to find, and what it found is checked.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from lab.measure.figure import Figure
from lab.measure.goals import goal
from lab.measure.lives import COUNTER, Life
from lab.measure.metered_table import HOME, Charge, Shop
from ledger import Change, Limit
from ledger.lane.add import PACK_CHANGES

TOGETHER = 100  # changes of a call
FOLDED = 5
SHARDS = 100


def found(shop: Shop, call: Callable[[], Any], is_right: Callable[[Any], bool]) -> Charge:
    """What a call costs. Raises AssertionError where its answer is wrong."""
    answers: list[Any] = []
    charge = shop.charged(lambda: answers.append(call()))
    if not is_right(answers[0]):
        raise AssertionError(f"{answers[0]!r} is not what was there")
    return charge


def visits(_: bool) -> Iterator[Figure]:
    shop = Shop(fold_min=1, clean_units_per_s=10**9)

    def visit(folded: int) -> int:
        return found(
            shop, lambda: shop.compactor.compact(COUNTER), lambda tally: tally.folded == folded
        ).requests

    shop.ledger.add_many([Change(COUNTER, 1)] * FOLDED)
    shop.now_ms += shop.settings.allowed_lateness_ms + 1
    folds = visit(FOLDED)
    visit(0)  # notes what it folded
    shop.now_ms += shop.settings.keep_ms + 1
    visit(0)  # cleans
    ratio = visit(0) / folds
    yield goal(
        f"a visit that finds nothing to do / one that folds {FOLDED} changes: requests", ratio
    )


def holds(small: bool) -> Iterator[Figure]:
    if small:  # what they cost is of how many there are
        return
    limits = {"seats:": Limit(ceiling=10**9, region=HOME)}
    shop, number = Shop(limits=limits, unshared_limits=True), 1_000
    for _each in range(number):
        shop.now_ms += 10
        shop.ledger.hold("seats:gala", 1, expires=timedelta(hours=1))
    charge = found(shop, lambda: shop.reader.holds("seats:gala"), lambda held: len(held) == number)
    yield goal(f"reader.holds of {number:,} open holds: requests a hold", charge.requests / number)


def lists(small: bool) -> Iterator[Figure]:
    if small:
        return
    shop, number = Shop(clean_units_per_s=10**9), 10_000
    names = [f"stock:{each:06}" for each in range(number)]
    for at in range(0, number, TOGETHER):
        shop.add_many([Change(name, 1) for name in names[at : at + TOGETHER]])
    shop.now_ms += 60_000
    shop.compactor.run()  # lists them
    one = found(
        shop,
        lambda: shop.reader.counters(names[1], limit=10),
        lambda page: [*page.counters] == names[1:2],
    )
    yield goal(f"a list of the counters of one name, of {number:,}: requests", one.requests)
    top = found(shop, lambda: shop.reader.top("stock:", 10), lambda top: top.counters == number)
    yield goal(f"top 10 of {number:,} cold counters: requests", top.requests)


def packs(_: bool) -> Iterator[Figure]:
    shop = Shop(shards={COUNTER: SHARDS})
    units = shop.charged(lambda: shop.add_many([Change(COUNTER, 1)] * TOGETHER, pack=True))
    name = f"{TOGETHER} changes without keys in a pack, over {SHARDS} shards: write units"
    yield goal(name, units.write_units)


def pages(small: bool) -> Iterator[Figure]:
    if small:
        return
    life, changes = Life(), 100_000
    while life.changes < changes:
        life.write(10_000, each=PACK_CHANGES, pack=True)
        life.compact()
    charge = found(
        life,
        lambda: life.reader.history_page(COUNTER, limit=100),
        lambda page: len(page.entries) == 100,
    )
    yield goal(f"history_page of 100 after {changes:,} changes: read units", charge.read_units)


PARTS = (visits, holds, lists, packs, pages)
