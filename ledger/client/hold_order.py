"""In which order `hold_all` goes through its counters, and which of them are held for it already.

Rule 1: where this process remembers that one of them was sold out, it reads all first, in one
request, and begins with those that are short: a refusal there comes before the call takes anything
from the others. Only gates decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ledger.core import tokens
from ledger.core.errors import LedgerError
from ledger.core.limit import DOWN, UP
from ledger.core.ranges import CHANGE_MAX
from ledger.core.requests import Instant, Now, Program
from ledger.core.values import Delta
from ledger.gate.copies import Copies, read_copies
from ledger.gate.gate import REFUSED, Gate
from ledger.gate.gates import Gates


@dataclass(frozen=True, slots=True)
class Part:
    """The hold to make in one of the counters."""

    gates: Gates
    delta: Delta

    @property
    def counter(self) -> str:
        return self.delta.lane.counter

    @property
    def side(self) -> str:
        """The side whose rights it takes."""
        return DOWN if self.delta.change < 0 else UP


def in_order(
    parts: Sequence[Part], *, is_named: bool
) -> Program[tuple[Sequence[Part], dict[str, Part]]]:
    """The parts of a call in their order, and those that are held for this very call, by counter,
    where it reads them first. is_named: others may make the same call.
    """
    now: Instant = yield Now()
    if not any(_remembers(part, now) for part in parts):
        return parts, {}
    try:
        found = yield from read_copies([part.gates for part in parts], consistent=is_named)
    except LedgerError:
        return parts, {}  # without the read, then
    seen = dict(zip(parts, found, strict=True))
    held = {part.counter: here for part in parts if is_named and (here := _held(part, seen[part]))}
    return sorted(
        parts, key=lambda part: part.counter in held or not _is_short(part, seen[part])
    ), held


def _remembers(part: Part, now: Instant) -> bool:
    """Whether this process remembers that some amount was too much a moment ago."""
    return part.gates.sold_out.knows(part.counter, part.side, CHANGE_MAX, now) is not None


def _held(part: Part, seen: Copies) -> Part | None:
    """The part as it is held for the call, perhaps with another length."""
    name = tokens.name_of(part.delta.token)
    tokens_held = (
        token for gate in seen.gates for token in gate.held if tokens.is_named(token, name)
    )
    token = next(tokens_held, None)
    return None if token is None else replace(part, delta=replace(part.delta, token=token))


def _is_short(part: Part, seen: Copies) -> bool:
    """Whether all lanes together have too little.

    It does not count what holds that are over could give back.
    """
    gates, name = part.gates, tokens.name_of(part.delta.token)
    if any(gate.recent.get(name) == REFUSED for gate in seen.gates):
        return True
    there = {gate.lane: gate for gate in seen.gates}
    left = sum(
        (there.get(lane) or Gate.new(lane, gates.limit)).own(part.side) for lane in gates.lanes
    )
    return gates.limit.has(part.side) and left < abs(part.delta.change)
