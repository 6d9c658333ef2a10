"""The programs of a ledger's calls: `Ledger` runs them, `AsyncLedger` awaits them.

Rule 1: the table's shape is read before the first request.
Rule 2: a counter with a limit has gates and no deltas; no other way leads to it. A function that
needs gates imports their modules itself, because a process without limits never needs that third of
the package.
Rule 3: a change that fails before anything was sent has an error of its own, with its delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ledger.client.holds import Hold
from ledger.client.preparing import Rules, ours
from ledger.core.checks import check_change, check_counter
from ledger.core.errors import InvalidChange, InvalidInput, LedgerError, shown
from ledger.core.period import check_base
from ledger.core.requests import AtOnce, Program, Result
from ledger.core.running import or_error
from ledger.core.values import Delta, Lane, Receipt
from ledger.lane import add as lanes
from ledger.lane.add import Outcome, failed

if TYPE_CHECKING:
    from ledger.gate.gates import Gates


def add(rules: Rules, delta: Delta) -> Program[Receipt]:
    if not rules.shape.is_known or rules.settings.periods:
        yield from check_first(rules, delta)
    gates = rules.gates(delta.lane.counter)
    if gates is None:
        return (yield from lanes.add(delta))
    from ledger.gate import decide

    return (yield from decide.add(gates, delta))


def add_if_room(rules: Rules, delta: Delta) -> Program[Receipt | None]:
    """As `add`; but where a limit leaves no room nothing is decided, and it returns None."""
    gates = rules.gates(delta.lane.counter)
    if gates is None:
        return (yield from add(rules, delta))
    yield from check_first(rules, delta)
    from ledger.gate import decide

    return (yield from decide.add_if_room(gates, delta))


def add_up_to(rules: Rules, delta: Delta) -> Program[Receipt]:
    """Count as much as there is of a change that was prepared."""
    from ledger.gate import decide

    counter = delta.lane.counter
    rules.plan(counter).check_takes(rules.clock())  # its error has no delta, as all of this call
    return _limited(rules, counter, "add_up_to", lambda gates: decide.add_up_to(gates, delta))


def check_first(rules: Rules, delta: Delta) -> Program[None]:
    """The checks before a change's first request.

    Raises PeriodOver and those of the shape's check, with the delta.
    """
    rules.check_takes(delta)
    try:
        yield from rules.shape.program(delta.lane.counter)
    except LedgerError as error:
        error.delta = delta
        raise


def add_many(
    rules: Rules, deltas: Sequence[Delta | LedgerError], pack: bool
) -> Program[list[Outcome]]:
    """An outcome for each delta, in order; an error that stands in a delta's place is its
    outcome.
    """
    outcomes: dict[int, Any] = {i: _taken(rules, delta) for i, delta in enumerate(deltas)}
    sent = {i: delta for i, delta in outcomes.items() if isinstance(delta, Delta)}
    try:
        if sent:
            yield from rules.shape.program()
    except LedgerError as failure:
        return [
            one if isinstance(one, LedgerError) else failed(failure, one)
            for one in outcomes.values()
        ]
    first_shards = bool(rules.settings.shards) and not rules.shape.is_known
    every = rules.shape.is_strong or first_shards
    strict = (delta.lane.counter for delta in sent.values() if delta.lane.retires_s or every)
    lacking = yield from shape_errors(rules, strict)
    if lacking:
        outcomes |= {
            i: failed(error, delta)
            for i, delta in sent.items()
            if (error := lacking.get(delta.lane.counter))
        }
    # a limited lane each, and under None all that have no limit
    parts: dict[Lane | None, dict[int, Delta]] = {}
    for i, delta in sent.items():
        if delta.lane.counter in lacking:
            continue
        is_limited = rules.gates(delta.lane.counter) is not None
        parts.setdefault(delta.lane if is_limited else None, {})[i] = delta
    put = lanes.add_packed if pack else lanes.add_many
    programs = tuple(
        put([*part.values()]) if lane is None else lane_outcomes(rules, [*part.values()])
        for lane, part in parts.items()
    )
    answers: Sequence[Sequence[Outcome]] = (yield AtOnce(programs)) if programs else ()
    for part, answer in zip(parts.values(), answers, strict=True):
        outcomes |= zip(part, answer, strict=True)
    return [*outcomes.values()]


def _taken(rules: Rules, delta: Delta | LedgerError) -> Delta | LedgerError:
    if not isinstance(delta, Delta) or not delta.lane.retires_s:
        return delta
    over = or_error(rules.check_takes, delta)
    return over if over is not None else delta


def shape_errors(rules: Rules, counters: Iterable[str]) -> Program[dict[str, LedgerError]]:
    """The counters that the check of the table's shape refuses or could not check, each with its
    error.
    """
    found: dict[str, LedgerError] = {}
    for counter in dict.fromkeys(counters):
        try:
            yield from rules.shape.program(counter)
        except LedgerError as error:
            found[counter] = error
    return found


def lane_outcomes(rules: Rules, deltas: Sequence[Delta]) -> Program[Sequence[Outcome]]:
    """Add changes of one limited lane, or of lanes without a limit: a single one as `add` does,
    several in packs.
    """
    counter = deltas[0].lane.counter
    gates = rules.gates(counter)
    if gates is None and len(deltas) > 1:
        return (yield from lanes.add_packed(deltas))
    try:
        if gates is None:
            return [(yield from lanes.add(deltas[0]))]
        yield from rules.shape.program(counter)
    except LedgerError as error:  # the error of a change alone stays itself, with its cause
        return [error] if gates is None else [failed(error, delta) for delta in deltas]
    from ledger.gate import decide

    return (yield from decide.add_many(gates, deltas))


def hold(rules: Rules, delta: Delta) -> Program[None]:
    """Grant a hold that was prepared."""
    from ledger.gate import decide

    rules.check_takes(delta)
    return _limited(rules, delta.lane.counter, "hold", lambda gates: decide.hold(gates, delta))


def capture(rules: Rules, hold: Hold, amount: int | None = None) -> Program[Receipt]:
    from ledger.gate import holds

    held = _held(rules, hold, "capture")
    used = held.change if amount is None else check_change(amount)
    if 0 < used <= -held.change:  # a magnitude
        used = -used
    if used * held.change < 0 or abs(used) > abs(held.change):
        most = f"{held.change} (or to {-held.change})" if held.change < 0 else f"{held.change}"
        raise InvalidChange(
            f"A hold of {held.change} can be captured from 0 to {most}, not {shown(used)}."
        )
    return _limited(
        rules, held.lane.counter, "capture", lambda gates: holds.capture(gates, held, used)
    )


def release(rules: Rules, hold: Hold) -> Program[None]:
    from ledger.gate import holds

    held = _held(rules, hold, "release")
    return _limited(rules, held.lane.counter, "release", lambda gates: holds.release(gates, held))


def set_limit(
    rules: Rules, counter: str, *, floor: int | None = None, ceiling: int | None = None
) -> Program[None]:
    from ledger.gate import set_limit as limits

    plan = rules.plan(check_counter(counter))
    if plan.keep is not None:
        check_base(plan.counter if plan.term is None else plan.term.base)
        plan.check_window()
        plan.check_takes(rules.clock())
        for name, bound, beyond in (("floor", floor, 1), ("ceiling", ceiling, -1)):
            if plan.term is None and type(bound) is int and bound * beyond > 0:
                raise InvalidInput(
                    f"{plan.counter}: each period begins at 0, and {name}={bound} does not allow 0."
                )
    yield from _limited(
        rules, plan.counter, "set_limit", lambda gates: limits.set_limit(gates, floor, ceiling)
    )


def _held(rules: Rules, hold: Hold, caller: str) -> Delta:
    given: object = hold
    if not isinstance(given, Hold):
        raise InvalidInput(
            f"{caller} takes a Hold, as Ledger.hold and Ledger.parse_hold return it, not "
            f"{shown(given)}."
        )
    return ours(rules.settings, given.delta, is_hold=True)


def _limited(
    rules: Rules, counter: str, caller: str, program: Callable[[Gates], Program[Result]]
) -> Program[Result]:
    """The program of the gates of a counter that must have a limit, behind the check of the
    shape.
    """
    from ledger.gate.gates import Gates

    made = program(rules.gates(counter) or Gates.limited(rules.settings, counter, caller))
    rules.plan(counter).check_kept(rules.clock())

    def shape_first() -> Program[Result]:
        yield from rules.shape.program(counter)
        return (yield from made)

    return shape_first()
