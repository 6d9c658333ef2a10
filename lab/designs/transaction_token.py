"""Design 4: a transaction of one update, named by a client request token.

Promises: sent again within ten minutes it is answered as the first time and counts once, by the SDK, by the caller,
after a lost answer and after a time-out; another change under the token is refused; limits hold.
Limits: twice the write units. The token is forgotten ten minutes after the first request with it was completed, so a
redriven message or a replay a day later counts again, and it is known in its own Region only. A transaction that was
refused is not remembered. Transactions on one item conflict with each other, and no SDK sends them again. Regions
overwrite each other.
Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html (ClientRequestToken)
"""

from dataclasses import dataclass
from typing import ClassVar

from lab.designs.design import VALUE, Claims, Memory, Outcome, SingleItem
from ledger.actions import Add
from ledger.requests import Program, Transact, Update


@dataclass(frozen=True, kw_only=True)
class TransactionToken(SingleItem):
    name: str = "transaction, client token"
    claims: ClassVar = Claims(memory=Memory(ms=600_000), mismatch=True, limit="hard", reset=True)

    def add(self, counter: str, change: int, key: str, at_ms: int, shard: int = 0) -> Program[Outcome]:
        update = Update(self.item_key(counter, shard), (Add(VALUE, change),), condition=self.fitting(change))
        refused = yield Transact((update,), token=f"{counter}\0{key}")
        return "recorded" if refused is None else "refused"
