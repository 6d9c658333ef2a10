"""The largest counters: `largest` of those with some names, and `top`, which reads all.

Rule 1: BATCH counters are read together, so that one request brings the checkpoints or the gates of
up to 100 lanes. A Query has one lane's tail, so a batch costs a further Query for each lane whose
tail must be read.
Rule 2: Memory holds no more than a page of names, a batch, and `n` rows.
Rule 3: Of two counters with the same amount the one whose name comes first is the larger.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import nsmallest

from ledger.core.checks import plain_text
from ledger.core.cost import NOTHING, Cost
from ledger.core.errors import InvalidInput, shown
from ledger.core.requests import Key, Program
from reader.balance import Balance, Place
from reader.checks import check_count, prefix_of, seconds
from reader.counters_page import counters_page
from reader.rules import Rules

BATCH = 100
NAMES = 1_000
"""Names after which a page of the directory ends, with all of the buckets that it read."""

BEHIND_S = 300.0
BY = {"value": "value", "changes": "count", "pending": "pending"}
"""By what counters are compared, and the name of it in a Balance."""

Row = tuple[str, Balance]


@dataclass(frozen=True, slots=True)
class Top:
    """The largest counters. rows: (name, balance), the largest first. counters: how many were read.
    damaged: items of the directory that name no lane, and were skipped. cost: of the whole call,
    with the names."""

    rows: tuple[Row, ...]
    counters: int
    damaged: tuple[Key, ...] = ()
    cost: Cost = field(default=NOTHING, compare=False, repr=False)


class Best:
    """The n largest of the counters that were read. rows: the largest first. count: how many were
    read.

    balances: the program that reads several counters together.
    """

    def __init__(
        self, n: int, by: str, balances: Callable[[Sequence[str]], Program[dict[str, Balance]]]
    ) -> None:
        self.rows: list[Row] = []
        self.count = 0
        self._n, self._attribute, self._balances = n, BY[by], balances

    def read(self, names: Sequence[str]) -> Program[None]:
        """Read these counters too. Raises what reading one of them raises."""
        for start in range(0, len(names), BATCH):
            found = yield from self._balances(names[start : start + BATCH])
            self.rows = nsmallest(self._n, [*self.rows, *found.items()], key=self._place)
            self.count += len(found)

    def _place(self, row: Row) -> tuple[int, str]:
        return -getattr(row[1], self._attribute), row[0]


def top(
    rules: Rules,
    prefix: str = "",
    n: int = 10,
    *,
    by: str = "value",
    behind: float = BEHIND_S,
) -> Program[Top]:
    check_count("n", n)
    prefix, best = prefix_of(prefix), _best(rules, n, by, behind)
    yield from rules.shape.program()
    wanted, regions = rules.kept(prefix), rules.settings.regions
    damaged: dict[Key, None] = {}
    names: list[str] = []
    after: Place | None = None
    while True:
        page = yield from counters_page(regions, prefix, wanted, after, NAMES, may_have_more=True)
        damaged |= dict.fromkeys(page.damaged)
        names += page.counters
        if page.next is None:
            yield from best.read(names)
            return Top(tuple(best.rows), best.count, tuple(damaged))
        whole_batches = len(names) // BATCH * BATCH
        yield from best.read(names[:whole_batches])
        names, after = names[whole_batches:], page.next


def largest(
    rules: Rules, names: Sequence[str], n: int, *, by: str, behind: float = BEHIND_S
) -> Program[list[Row]]:
    """The rows of `top` among the counters with these names."""
    best = _best(rules, n, by, behind)
    yield from best.read(names)
    return best.rows


def _best(rules: Rules, n: int, by: str, behind: float) -> Best:
    order = plain_text(by)
    if order is None or order not in BY:
        raise InvalidInput(f"by is one of {', '.join(BY)}, not {shown(by)}.")
    behind_ms = int(seconds("behind", behind) * 1_000)
    # a tail that is left out would be counted as none
    behind_ms = 0 if order == "pending" else behind_ms
    return Best(n, order, partial(rules.balances, behind_ms=behind_ms))
