"""The program `hold_all` holds one amount in several limited counters, in all of them or in none.

Rule 1: it makes a hold in one after the other, in the caller's order. No order and no crash passes
a limit; with the narrowest first, most refusals come before the call takes anything from others.
Rule 2: others may make the same call if its caller gave it a name. Its holds are theirs, too, so
only a refusal, which is theirs as well, releases them. Undecided holds end with their time, or a
repeated call goes on from them.
Rule 3: the answer of a name is for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from ledger.client import named_holds as named
from ledger.client import preparing, programs
from ledger.client.hold_order import Part, in_order
from ledger.client.preparing import Rules
from ledger.core import tokens
from ledger.core.again import again
from ledger.core.checks import check_counter, check_key, to_datetime
from ledger.core.errors import (
    NOT_WRITTEN,
    HoldEnded,
    InvalidInput,
    InvalidTime,
    LedgerError,
    LimitReached,
    shown,
)
from ledger.core.keys import at_of
from ledger.core.requests import Program
from ledger.core.values import Change, Delta
from ledger.gate import holds
from ledger.gate.answer import Decision, ended, refused
from ledger.gate.gate import REFUSED
from ledger.gate.gates import Gates
from ledger.gate.repeated import shown_now


@dataclass(frozen=True, slots=True)
class HoldAll:
    """A call of `hold_all`. is_named: its caller gave it a key."""

    parts: tuple[Part, ...]
    is_named: bool

    @property
    def deltas(self) -> list[Delta]:
        """The holds to make. A call with a name may get those of another length."""
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
    elif idempotency_key is not None:
        at = at_of(idempotency_key, at)
        idempotency_key = name_of(idempotency_key, names)
    changes = [Change(name, amount, idempotency_key, at, region) for name in names]
    prepared = preparing.prepare_named_hold if is_named else preparing.prepare_hold
    deltas = [prepared(rules, change, expires) for change in changes]
    return HoldAll(tuple(map(Part, gates, deltas)), is_named)


def name_of(key: str, counters: Iterable[str]) -> tokens.Step:
    """The name of a call with that key: it holds the key and the counters, in whatever order they
    come.

    It holds neither the call's length, which may be a setting of a process, nor its amount: a call
    of another length gets the hold of the first (named_holds.py), one of another amount a
    TokenConflict. A step of another call, in the key's place, is of a kind of its own.
    """
    kind, text = (
        ("hold_all/step", key) if isinstance(key, tokens.Step) else ("hold_all", check_key(key))
    )
    return tokens.step(kind, text, *sorted(counters))


def _names(counters: object) -> list[str]:
    if not isinstance(counters, Iterable) or isinstance(counters, str | bytes):
        raise InvalidInput(
            f"hold_all takes several names, not {shown(counters)}. Nothing was written. For one "
            "counter call hold."
        )
    names = list(map(check_counter, counters))
    if not names:
        raise InvalidInput("hold_all takes the names of one counter or more, and got none.")
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise InvalidInput(
            f"hold_all takes each counter once, and {shown(twice[0], 80)} is named twice."
        )
    return names


def hold_all(rules: Rules, call: HoldAll) -> Program[tuple[Delta, ...]]:
    """Grant all holds, unless they were granted before: the holds, in the order of the call. Raises
    LimitReached, whose `counter` refused, and what `hold` raises. Notes of an error name the holds
    that it left."""
    for delta in call.deltas:
        rules.check_takes(delta)
    yield from rules.shape.program(*(part.counter for part in call.parts))
    todo, granted = yield from in_order(call.parts, is_named=call.is_named)
    for part in todo:
        try:
            granted[part.counter] = replace(
                part, delta=(yield from again(partial(_granted, rules, call, part)))
            )
        except LimitReached as error:
            # Else the caller's next try meets its own hold. For a call with a name these are also
            # the holds that an earlier attempt left, as far as the read shows them.
            yield from _let_go(granted.values(), error)
            raise
        except (HoldEnded, InvalidTime) as error:
            if call.is_named and getattr(error, "state", "") != "captured":
                held = yield from _final(call, error)
                if held:
                    return held
            yield from _leave(call, granted.values(), error)
            raise
        except LedgerError as error:
            yield from _leave(call, granted.values(), error)
            raise
    return tuple(granted[part.counter].delta for part in call.parts)


def _granted(rules: Rules, call: HoldAll, part: Part) -> Program[Delta]:
    if not call.is_named:
        yield from programs.hold(rules, part.delta)
        return part.delta
    rules.check_takes(part.delta)
    return (yield from named.hold(part.gates, part.delta))


def _final(call: HoldAll, error: LedgerError) -> Program[tuple[Delta, ...]]:
    """Make an answer final (Rule 3): raises the refusal of an earlier attempt, if there was one, or
    how the call has ended. The holds, where an attempt that lasts longer was granted all meanwhile;
    none, where the error stays as it is.
    """
    # A refusal comes before all else. If there is none, nobody may be refused or granted after
    # this: it closes the names that are open. It closes none where nothing was decided, so a time
    # that was wrong can be corrected.
    found = yield from again(partial(_found, call, named.stands_for))
    if not found and isinstance(error, InvalidTime):
        return ()
    if not any(decision.outcome == REFUSED for _, decision in found):
        found = yield from again(partial(_found, call, named.close))
    yield from _raise_refusal(found, error)
    if not isinstance(error, InvalidTime):
        return ()
    for part, decision in found:
        if decision.held is None:
            raise ended(part.delta, decision.outcome) from error
    return tuple(part.delta for part, _ in found)


def _found(
    call: HoldAll, look: Callable[[Gates, Delta], Program[tuple[Delta, Decision | None]]]
) -> Program[list[tuple[Part, Decision]]]:
    """What the parts that are decided stand for, each with the hold that was granted for it."""
    found: list[tuple[Part, Decision]] = []
    for part in call.parts:
        delta, decision = yield from look(part.gates, part.delta)
        if decision is not None:
            found.append((replace(part, delta=delta), decision))
    return found


def _raise_refusal(found: Sequence[tuple[Part, Decision]], error: LedgerError) -> Program[None]:
    """Raise the refusal among them, if there is one, after the release of all that is held."""
    for part, decision in found:
        if decision.outcome == REFUSED:
            refusal = refused(part.delta, (yield from shown_now(part.gates, part.delta, decision)))
            yield from _let_go(
                [part for part, decision in found if decision.held is not None], refusal
            )
            raise refusal from error


def _leave(call: HoldAll, granted: Iterable[Part], error: LedgerError) -> Program[None]:
    """Let go what an undecided call was granted, unless it has a name: then a note says what
    stays held.
    """
    if not call.is_named:
        yield from _let_go(granted, error)
    elif names := ", ".join(part.counter for part in granted):
        error.leaves(
            f"{names}: {call.parts[0].delta.change} each stay held until `expires` is over. Repeat "
            "the call with the same key and `at`: it goes on from there."
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
            why = str(left).replace(NOT_WRITTEN, "")  # it says so of the release alone
            error.leaves(f"{held}, because its release failed: {why}")
