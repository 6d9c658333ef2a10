"""A counter with ten seats in two Regions that do not replicate: its gates, without a Ledger."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from lab.histories.filing import SHIPPED, Filing, file_as
from ledger import tokens
from ledger.gate import items
from ledger.gate.answers import Decision
from ledger.gate.decide import decide_change, decide_hold, end
from ledger.gate.gate import Gate
from ledger.gate.past import Known
from ledger.gate.recount import audit
from ledger.limit import UP, Limit
from ledger.requests import Put, Request
from ledger.values import Delta, Lane
from tests.world import A, B, World

COUNTER = "seats:gig"
HERE, THERE = Lane(A, 0, COUNTER), Lane(B, 0, COUNTER)
GATE = items.gate_key(HERE)
TO_THERE, FROM_HERE = (f"{B}#0", UP), (f"{A}#0", UP)
SEATS, STOCK = Limit(ceiling=10, region=A), Limit(floor=0)
EAGER = Filing(enough=1, beside=0, draw=1, holds_kept=0, holds_left=0)
KEPT = Filing(enough=1_000, holds_kept=100)
MINUTE_MS = 60_000
BASE_MS = 1_700_000_000_000  # a slice of a fingerprint begins here, and one every 128 ms


def seats(limit: Limit = SEATS, filing: Filing = SHIPPED, page_size: int = 3) -> World:
    file_as(filing)
    world = World(limits={COUNTER: limit}, now_ms=BASE_MS)
    for table in world.regions.values():
        table.page_size = page_size
    return world


def at(ms: int) -> str:
    """A token of so many milliseconds after `BASE_MS`."""
    return tokens.make(BASE_MS + ms, (ms % 2**40).to_bytes(tokens.RANDOM_BYTES, "big"))


def new(world: World, change: int, lane: Lane = HERE, length_ms: int = 0) -> Delta:
    """A change of a second after the one before; with a length: what is held."""
    key = world.key()["idempotency_key"]
    world.now_ms += 990
    if length_ms:
        return Delta(lane, tokens.hold_token(COUNTER, key, world.now_ms, length_ms), change)
    return Delta(lane, tokens.keyed(COUNTER, key, world.now_ms), change)


def decide(world: World, delta: Delta, region: str | None = None) -> Decision:
    """What a change is decided to be, in its own Region or another."""
    region = region or delta.lane.region
    return world[region].run(decide_change(world.gates(COUNTER, region), delta))


def add(world: World, change: int, lane: Lane = HERE) -> int | None:
    """The outcome of a new change."""
    return decide(world, new(world, change, lane)).known.outcome


def hold(world: World, amount: int, lane: Lane = HERE, length_ms: int = MINUTE_MS) -> Delta:
    """A hold that is granted."""
    held = new(world, amount, lane, length_ms)
    granted = world[lane.region].run(decide_hold(world.gates(COUNTER, lane.region), held))
    assert granted == Decision(Known(held=amount), before=False)
    return held


def ended(world: World, held: Delta, outcome: int) -> Decision:
    return world[held.lane.region].run(end(world.gates(COUNTER, held.lane.region), held, outcome))


def gate(world: World, lane: Lane = HERE) -> Gate:
    return items.gate_of(lane, world[lane.region].items[items.gate_key(lane)])


def put(world: World, lane: Lane = HERE, **changed: Any) -> Gate:
    """The gate of a lane, with something else in it."""
    made = replace(gate(world, lane), **changed)
    world[lane.region].store([items.gate_item(made)])
    return made


def seen(world: World, recent: Collection[int] = (), held: Collection[int] = (), **changed: Any) -> Gate:
    """A gate that was rolled six times, up to a second before `BASE_MS`; what it decided and holds since."""
    add(world, 0)
    world.now_ms = BASE_MS + 1_000_000
    maps = {"recent": dict.fromkeys(map(at, recent), 1), "held": dict.fromkeys(map(at, held), 1)}
    made = put(world, **{"low": at(-1_000), "top": at(-500), "version": 6, "total": 5, "count": 4, **maps, **changed})
    world.home.asked.clear()
    return made


def asked(world: World, kind: type[Request] | tuple[type[Request], ...], region: str = A) -> list[Any]:
    return [request for request in world[region].asked if isinstance(request, kind)]


def value(world: World) -> int:
    return gate(world, HERE).value + gate(world, THERE).value


def wrong(world: World) -> list[str]:
    """What an audit finds."""
    return world.home.run(audit(world.gates(COUNTER)))


def copied(world: World, lane: Lane, region: str) -> None:
    """The gate of a lane has been replicated."""
    world[region].answer(Put(world[lane.region].items[items.gate_key(lane)]))
