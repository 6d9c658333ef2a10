"""The program `hold_all` holds one amount in several limited counters, in all of them or in none.

Rule 1: it makes a hold in one after the other, in the caller's order. No order and no crash passes a limit; with the
narrowest first, most refusals come before the call takes anything from others.
Rule 2: where this process remembers a refusal of one of them, it reads all first, in one request, and begins with the
one that is short: a refusal there comes before the call takes anything from the others. Only gates decide.
Rule 3: it releases the granted holds before it raises the refusal, else the caller's next try meets its own hold. For a
call with a name these are also the holds that an earlier attempt left, as far as the read shows them.
Rule 4: others may make the same call if its caller gave it a name. Its holds are theirs, too, so only a refusal, which
is theirs as well, releases them. Undecided holds end with their time, or a repeated call goes on from them.
Rule 5: an undecided request is sent again, TRIES_MAX times at most; then its error is raised.
Rule 6: an answer is for ever. A repeated call that was refused finds its holds released, and looks up who refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from ledger import programs
from ledger.checks import check_counter, to_datetime
from ledger.errors import Again, HoldEnded, InvalidInput, LedgerError, LimitReached, shown
from ledger.gate import holds
from ledger.gate.answer import refused
from ledger.gate.gate import REFUSED, Gate
from ledger.gate.gates import Gates
from ledger.gate.past import find
from ledger.gate.recount import Standing, standings
from ledger.limit import DOWN, UP
from ledger.periods.takes import check_takes
from ledger.programs import Rules
from ledger.ranges import CHANGE_MAX
from ledger.requests import Instant, Now, Program, Result
from ledger.values import Change, Delta

TRIES_MAX = 5


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


@dataclass(frozen=True, slots=True)
class HoldAll:
    """A call of `hold_all`. is_named: its caller gave it a key."""

    parts: tuple[Part, ...]
    is_named: bool

    @property
    def deltas(self) -> list[Delta]:
        return [part.delta for part in self.parts]


def prepare(
    rules: Rules,
    counters: Iterable[str],
    amount: int,
    expires: timedelta,
    idempotency_key: str | None = None,
    at: datetime | None = None,
    region: str | None = None,
) -> HoldAll:
    """A new call, in which each hold has the call's key. Raises InvalidInput."""
    names = _names(counters)
    gates = [Gates.limited(rules.settings, name, "hold_all", rules.sold_out) for name in names]
    is_named = idempotency_key is not None or at is not None
    if not is_named:
        idempotency_key, at = rules.randomness().hex(), to_datetime(rules.clock())
    changes = [Change(name, amount, idempotency_key, at, region) for name in names]
    deltas = [programs.prepare_hold(rules, change, expires) for change in changes]
    return HoldAll(tuple(map(Part, gates, deltas)), is_named)


def _names(counters: object) -> list[str]:
    if not isinstance(counters, Iterable) or isinstance(counters, str | bytes):
        raise InvalidInput(f"hold_all takes several names, not {shown(counters)}. Nothing was written. hold takes one.")
    names = list(map(check_counter, counters))
    if not names:
        raise InvalidInput("hold_all takes the names of one counter or more, and got none.")
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise InvalidInput(f"hold_all takes each counter once, and {shown(twice[0], 80)} is named twice.")
    return names


def hold_all(rules: Rules, call: HoldAll) -> Program[None]:
    """Grant all holds, unless they were granted before. Raises LimitReached, whose `counter` refused, and what `hold`
    raises. Notes of an error name the holds that it left."""
    for delta in call.deltas:
        check_takes(rules.settings, delta, rules.clock())
    todo, granted = yield from _in_order(call)
    for part in todo:
        try:
            yield from again(partial(programs.hold, rules, part.delta))
            granted[part.counter] = part
        except LimitReached as error:
            yield from _let_go(granted.values(), error)
            raise
        except HoldEnded as ended:
            if ended.state == "released":
                refusal, held = yield from again(partial(_before, call))
                if refusal is not None:
                    yield from _let_go(held, refusal)
                    raise refusal from ended
            yield from _leave(call, granted.values(), ended)
            raise
        except LedgerError as error:
            yield from _leave(call, granted.values(), error)
            raise


def again(program: Callable[[], Program[Result]]) -> Program[Result]:
    """Run a program until the table decides. Raises what the program raises."""
    for _ in range(TRIES_MAX - 1):
        with suppress(Again):
            return (yield from program())
    return (yield from program())


def _in_order(call: HoldAll) -> Program[tuple[Sequence[Part], dict[str, Part]]]:
    """The order of the parts, and those that are held for this very call, by counter, where it reads them first."""
    now: Instant = yield Now()
    parts = call.parts
    if not any(_remembers(part, now) for part in parts):
        return parts, {}
    try:
        found = yield from standings([part.gates for part in parts], consistent=call.is_named)
    except LedgerError:
        return parts, {}  # without the read, then
    seen = dict(zip(parts, found, strict=True))
    held = {part.counter: part for part in parts if _is_held(part, seen[part])}
    return sorted(parts, key=lambda part: part.counter in held or not _is_short(part, seen[part])), held


def _remembers(part: Part, now: Instant) -> bool:
    """Whether this process remembers that some amount was too much a moment ago."""
    return part.gates.sold_out.knows(part.counter, part.side, CHANGE_MAX, now) is not None


def _is_held(part: Part, seen: Standing) -> bool:
    return any(part.delta.token in gate.held for gate in seen.gates)


def _is_short(part: Part, seen: Standing) -> bool:
    """Whether all lanes together have too little. It does not count what holds that are over could give back."""
    gates, token = part.gates, part.delta.token
    if any(gate.recent.get(token) == REFUSED for gate in seen.gates):
        return True
    there = {gate.lane: gate for gate in seen.gates}
    left = sum((there.get(lane) or Gate.new(lane, gates.limit)).own(part.side) for lane in gates.lanes)
    return gates.limit.has(part.side) and left < abs(part.delta.change)


def _before(call: HoldAll) -> Program[tuple[LimitReached | None, list[Part]]]:
    """The refusal of an earlier attempt at the call, if there was one, and the parts that are held for the call."""
    refusal, held = None, []
    for part in call.parts:
        decision, _ = yield from find(part.gates, part.delta.lane, part.delta.token)
        if decision is not None and decision.held is not None:
            held.append(part)
        elif decision is not None and decision.outcome == REFUSED:
            refusal = refused(part.delta, decision)
    return refusal, held


def _leave(call: HoldAll, granted: Iterable[Part], error: LedgerError) -> Program[None]:
    """Let go what an undecided call was granted, unless it has a name: then a note says what stays held."""
    if not call.is_named:
        yield from _let_go(granted, error)
    elif names := ", ".join(part.counter for part in granted):
        error.add_note(
            f"{names}: {call.parts[0].delta.change} each stay held until the time of the call is over. Repeat the "
            "call with the same key and `at`: it goes on from there."
        )


def _let_go(granted: Iterable[Part], error: LedgerError) -> Program[None]:
    """Release what was granted before the error; a note of the error says where that failed."""
    for part in granted:
        try:
            yield from again(partial(holds.release, part.gates, part.delta))
        except HoldEnded:
            pass
        except LedgerError as left:
            held = f"{part.counter}: {part.delta.change} is held until the time of the call is over"
            error.add_note(f"{held}, because its release failed: {left}")
