"""A counter with ten seats in two Regions that do not replicate: its gates, without a Ledger."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from compactor.verify import verify_gates
from lab.histories.stage.filing import SHIPPED, Filing, file_as
from ledger.core import tokens
from ledger.core.limit import UP, Limit
from ledger.core.requests import Request
from ledger.core.values import Delta, Lane
from ledger.gate import items
from ledger.gate.answer import Decision
from ledger.gate.decide import decide_change
from ledger.gate.gate import Gate
from ledger.gate.holds import end
from tests.world import A, B, World

COUNTER = "seats:gig"
HERE, THERE = Lane(A, 0, COUNTER), Lane(B, 0, COUNTER)
GATE = items.gate_key(HERE)
TO_THERE, FROM_HERE = (f"{B}#0", UP), (f"{A}#0", UP)
SEATS, STOCK = Limit(ceiling=10, region=A), Limit(floor=0)
EAGER = Filing(unit_bytes=1, enough=1, beside=0, draw=1, holds_beside=1, holds_left=0)
KEPT = Filing(enough=1_000, holds_beside=0)
MINUTE_MS = 60_000
BASE_MS = 1_700_000_000_000  # a slice of a fingerprint begins here, and one every 128 ms


def at(ms: int) -> str:
    """A token of so many milliseconds after `BASE_MS`."""
    return tokens.make(BASE_MS + ms, (ms % 2**40).to_bytes(tokens.RANDOM_BYTES, "big"))


class Gated(World):
    """A World at `BASE_MS` that asks gates itself."""

    def __init__(self, limit: Limit = SEATS, filing: Filing = SHIPPED, page_size: int = 3) -> None:
        super().__init__(now_ms=BASE_MS, limits={COUNTER: limit})
        file_as(filing)
        for table in self.regions.values():
            table.page_size = page_size

    def new(self, change: int, lane: Lane = HERE, length_ms: int = 0) -> Delta:
        """A change of a second after the one before; with a length: what is held."""
        key = self.key()["idempotency_key"]
        self.now_ms += 990
        if length_ms:
            return Delta(lane, tokens.hold_token(COUNTER, key, self.now_ms, length_ms), change)
        return Delta(lane, tokens.keyed(COUNTER, key, self.now_ms), change)

    def decide(self, delta: Delta, region: str | None = None) -> Decision:
        """What a change is decided to be, in its own Region or another."""
        region = region or delta.lane.region
        return self[region].run(decide_change(self.gates(COUNTER, region), delta))

    def sell(self, change: int, lane: Lane = HERE) -> int | None:
        """The outcome of a new change."""
        return self.decide(self.new(change, lane)).outcome

    def hold(self, amount: int, lane: Lane = HERE, length_ms: int = MINUTE_MS) -> Delta:
        """A hold that is granted."""
        held = self.new(amount, lane, length_ms)
        granted = self[lane.region].run(
            decide_change(self.gates(COUNTER, lane.region), held, hold=True)
        )
        assert granted == Decision(held=amount, before=False)
        return held

    def end(self, held: Delta, outcome: int) -> Decision:
        return self[held.lane.region].run(end(self.gates(COUNTER, held.lane.region), held, outcome))

    def gate(self, lane: Lane = HERE) -> Gate:
        return items.gate_of(lane, self[lane.region].items[items.gate_key(lane)])

    def put(self, lane: Lane = HERE, **changed: Any) -> Gate:
        """The gate of a lane, with something else in it."""
        made = replace(self.gate(lane), **changed)
        self[lane.region].store([items.gate_item(made)])
        return made

    def rolled(
        self, recent: Collection[int] = (), held: Collection[int] = (), **changed: Any
    ) -> Gate:
        """A gate that was rolled six times, up to a second before `BASE_MS`; what it decided and
        holds since.
        """
        self.sell(0)
        self.now_ms = BASE_MS + 1_000_000
        maps = {
            "recent": dict.fromkeys(map(at, recent), 1),
            "held": dict.fromkeys(map(at, held), 1),
        }
        usual = {"low": at(-1_000), "top": at(-500), "version": 6, "total": 5, "count": 4, **maps}
        made = self.put(**{**usual, **changed})
        self.home.asked.clear()
        return made

    def asked(self, kind: type[Request] | tuple[type[Request], ...], region: str = A) -> list[Any]:
        return [request for request in self[region].asked if isinstance(request, kind)]

    def total(self) -> int:
        return self.gate(HERE).value + self.gate(THERE).value

    def audit(self) -> list[str]:
        """What an audit finds."""
        checks = self.home.run(verify_gates(self.gates(COUNTER)))
        return [each for check in checks for each in check.differences]

    def copy(self, lane: Lane, region: str) -> None:
        """The gate of a lane has been replicated."""
        self[lane.region].copy_to(self[region], items.gate_key(lane))
