"""How the requests of a call grow with what it takes, lists or ends: one for 25 of them at most, or
what FLOORS says, and why no request can answer more.

Each row makes a shop with n of something, and the call; the table charges it. A new public method
stands in a row, or among those that take one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from compactor import Compactor
from lab.measure.metered_table import HOME, START_MS, Shop
from ledger import Change, Keep, Ledger, Limit, Period
from ledger.core import items, tokens
from ledger.core.checks import to_datetime
from ledger.core.requests import Item, Put
from ledger.core.values import Checkpoint, Lane
from ledger.gate import items as gates
from ledger.lane import directory
from reader import Reader

FEW, MANY = 50, 550
HOUR = timedelta(hours=1)
LIMITED: dict[str, Any] = {"limits": {"seats:": Limit(floor=0, ceiling=10**9, region=HOME)}}
SHARDED: dict[str, Any] = {"shards": {"sharded:": 4}}
KEPT: dict[str, Any] = {"periods": {"seats:": Keep(late=HOUR, keep=timedelta(days=900))}}

Call = Callable[[], object]


def names(n: int, prefix: str = "plain:") -> list[str]:
    return [f"{prefix}{number:05}" for number in range(n)]


def store(shop: Shop, stored: list[Item]) -> None:
    for item in stored:
        shop.tables[HOME].table.answer(Put(item))


def listed(n: int, prefix: str = "plain:", **settings: Any) -> Shop:
    """A shop whose directory has n counters."""
    shop = Shop(**settings)
    store(shop, [directory.item_of(Lane(HOME, 0, name)) for name in names(n, prefix)])
    return shop


def folded(n: int) -> Shop:
    """A shop with n counters in the directory that were folded a second ago."""
    shop = listed(n)
    at = tokens.make(START_MS - 1_000, bytes(tokens.RANDOM_BYTES))
    lanes = [Lane(HOME, 0, name) for name in names(n)]
    store(
        shop,
        [items.checkpoint_item(Checkpoint(lane, 1, 1, at, 1, at, START_MS)) for lane in lanes],
    )
    return shop


def changed(n: int, *, folds: bool = False, counter: str = "plain:a", **settings: Any) -> Shop:
    """A shop with n changes of a counter, a minute apart."""
    shop = Shop(**settings)
    at = [to_datetime(START_MS - number * 60_000) for number in range(n)]
    shop.add_many([Change(counter, 1, f"key {number}", at[number]) for number in range(n)])
    if folds:
        shop.now_ms += 60_000
        shop.compactor.compact(counter)
    return shop


def holding(n: int) -> Shop:
    """A shop with n open holds of a counter, which take all that is left."""
    shop = Shop(limits={"seats:": Limit(ceiling=n, region=HOME)}, unshared_limits=True)
    for _ in range(n):
        shop.now_ms += 10
        shop.ledger.hold("seats:a", 1, expires=HOUR)
    return shop


def opened(n: int) -> Shop:
    """A shop with n limited counters that have a gate."""
    shop = Shop(unshared_limits=True, **LIMITED)
    limit = LIMITED["limits"]["seats:"]
    store(shop, [gates.new_gate(Lane(HOME, 0, name), limit) for name in names(n, "seats:")])
    return shop


def over(n: int) -> Shop:
    shop = holding(n)
    shop.now_ms += 2 * 3_600_000
    return shop


def of(shop: Shop, call: Callable[[Shop], object]) -> tuple[Shop, Call]:
    return shop, lambda: call(shop)


def changes(n: int, counter: str | None = None, prefix: str = "plain:") -> list[Change]:
    at = to_datetime(START_MS)  # with a key each, so that each run draws the same tokens
    return [Change(counter or name, 1, name, at) for name in names(n, prefix)]


SINCE = to_datetime(START_MS - MANY * 60_000)

ROWS: dict[str, Callable[[int], tuple[Shop, Call]]] = {
    "add_many, counters": lambda n: of(Shop(), lambda s: s.add_many(changes(n))),
    "add_many, one counter": lambda n: of(Shop(), lambda s: s.add_many(changes(n, "plain:a"))),
    "add_many, packed": lambda n: of(Shop(), lambda s: s.add_many(changes(n, "a"), pack=True)),
    "add_many, one limited counter": lambda n: of(
        changed(1, counter="seats:a", unshared_limits=True, **LIMITED),
        lambda s: s.add_many(changes(n, "seats:a")),
    ),
    "add_many, limited counters": lambda n: of(
        opened(n), lambda s: s.add_many(changes(n, prefix="seats:"))
    ),
    "hold_all": lambda n: of(
        opened(n), lambda s: s.ledger.hold_all(names(n, "seats:"), 1, expires=HOUR)
    ),
    "add, which needs all holds that are over": lambda n: of(
        over(n), lambda s: s.ledger.add("seats:a", n)
    ),
    "add, which needs one hold that is over": lambda n: of(
        over(n), lambda s: s.ledger.add("seats:a", 1)
    ),
    "add beside holds": lambda n: of(holding(n), lambda s: s.ledger.add("seats:a", 0)),
    "values, limited": lambda n: of(
        Shop(unshared_limits=True, **LIMITED), lambda s: s.reader.values(names(n, "seats:"))
    ),
    "values": lambda n: of(folded(n), lambda s: s.reader.values(names(n))),
    "counters": lambda n: of(listed(n), lambda s: s.reader.counters("plain:", limit=n)),
    "counters, of one name": lambda n: of(
        listed(n), lambda s: s.reader.counters("plain:00007", limit=n)
    ),
    "top, limited": lambda n: of(
        listed(n, "seats:", unshared_limits=True, **LIMITED), lambda s: s.reader.top("seats:")
    ),
    "top, folded lately": lambda n: of(folded(n), lambda s: s.reader.top("plain:")),
    "top, never folded": lambda n: of(listed(n), lambda s: s.reader.top("plain:")),
    "holds": lambda n: of(holding(n), lambda s: s.reader.holds("seats:a")),
    "holds, which are over": lambda n: of(over(n), lambda s: s.reader.holds("seats:a")),
    "standing": lambda n: of(holding(n), lambda s: s.reader.standing("seats:a")),
    "standing, beside holds that are over": lambda n: of(
        over(n), lambda s: s.reader.standing("seats:a")
    ),
    "history": lambda n: of(changed(n), lambda s: [*s.reader.history("plain:a")]),
    "history, folded": lambda n: of(
        changed(n, folds=True), lambda s: [*s.reader.history("plain:a")]
    ),
    "history, limited": lambda n: of(
        changed(n, counter="seats:a", unshared_limits=True, **LIMITED),
        lambda s: [*s.reader.history("seats:a")],
    ),
    "history_page": lambda n: of(
        changed(n), lambda s: s.reader.history_page("plain:a", limit=min(n, 500))
    ),
    "history_page, folded": lambda n: of(
        changed(n, folds=True), lambda s: s.reader.history_page("plain:a", limit=min(n, 500))
    ),
    "history_page, limited": lambda n: of(
        changed(n, counter="seats:a", unshared_limits=True, **LIMITED),
        lambda s: s.reader.history_page("seats:a", limit=min(n, 500)),
    ),
    "series": lambda n: of(
        changed(n, folds=True),
        lambda s: s.reader.series("plain:a", since=SINCE, every=timedelta(seconds=33_000 // n)),
    ),
    "series, sharded": lambda n: of(
        changed(n, folds=True, counter="sharded:a", **SHARDED),
        lambda s: s.reader.series("sharded:a", since=SINCE, every="hour"),
    ),
    "value_at": lambda n: of(
        changed(n, folds=True), lambda s: s.reader.value_at("plain:a", SINCE + HOUR / 7)
    ),
    "periods, limited": lambda n: of(
        Shop(unshared_limits=True, **LIMITED, **KEPT),
        lambda s: s.reader.periods("seats:a", Period("day"), last=n),
    ),
    "compact": lambda n: of(changed(n), lambda s: s.compactor.compact("plain:a")),
    "run, where nothing is due": lambda n: of(folded(n), lambda s: s.compactor.run()),
    "verify": lambda n: of(changed(n, folds=True), lambda s: s.compactor.verify("plain:a")),
    "rebuild": lambda n: of(changed(n, folds=True), lambda s: s.compactor.rebuild("plain:a")),
}

FLOORS = {
    "values": (1.01, "a Query has the tail of one lane, and only it says that nothing came since"),
    "top, never folded": (1.01, "the same"),
    "add, which needs all holds that are over": (
        0.2,
        "25 notes or late entries are a batch, and a look-up and two Updates come to 50 holds",
    ),
    "add_many, one limited counter": (
        0.15,
        "an expression has room for 40, which are filed then; some are looked up",
    ),
    "add_many, limited counters": (1.01, "a counter's gate is an item, which one Update writes"),
    "hold_all": (1.01, "the same"),
}

OF_ONE = {
    Ledger: "add_up_to apply capture close hold parse_hold prepare release set_limit transfer",
    Reader: "crossed read value",
    Compactor: "",
}
"""Methods that take one thing."""


def requests(row: str, n: int) -> int:
    shop, call = ROWS[row](n)
    return shop.charged(call).requests


@pytest.mark.parametrize("row", ROWS)
def test_requests_do_not_grow_with_what_a_call_takes(row: str) -> None:
    few, many = requests(row, FEW), requests(row, MANY)
    most, _ = FLOORS.get(row, (1 / 25, ""))
    assert many - few <= most * (MANY - FEW)


def test_every_public_method_is_in_a_row_or_takes_one_thing() -> None:
    for of_class, one in OF_ONE.items():
        public = {name for name in vars(of_class) if not name.startswith("_")}
        assert public - {row.replace(",", " ").split()[0] for row in ROWS} == {*one.split()}
