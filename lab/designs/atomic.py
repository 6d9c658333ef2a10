"""Design 1: an atomic counter, one UpdateItem that adds to a number.

Promises: one request, no read; changes in one Region never overwrite each other; a ceiling by a
condition.
Limits: it knows nothing of a change once it is made. A request that got no answer is a guess: sent
again it may count twice (the SDK does so by itself), not sent again it may not count. About 1,000
changes a second on one item. Regions overwrite each other. With a limit and retries it may answer
"refused" to the change that filled the counter.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/WorkingWithItems.html
(Atomic counters), which advises against it where overcounting or undercounting cannot be tolerated.
"""

from dataclasses import dataclass
from typing import ClassVar

from lab.designs.design import VALUE, Claims, Outcome, SingleItem
from ledger.core.actions import Add
from ledger.core.conditions import Item
from ledger.core.requests import Program, Update


@dataclass(frozen=True, kw_only=True)
class Atomic(SingleItem):
    """`SET value = if_not_exists(value, 0) + change` is the same. sdk_attempts=1: no retries."""

    name: str = "atomic ADD"
    claims: ClassVar = Claims(limit="hard")

    def add(
        self, counter: str, change: int, key: str, at_ms: int, shard: int = 0
    ) -> Program[Outcome]:
        update = Update(
            self.item_key(counter, shard), (Add(VALUE, change),), condition=self.fitting(change)
        )
        refused: Item | None = yield update
        return "recorded" if refused is None else "refused"
