"""The programs of a ledger's calls: `Ledger` runs them, `AsyncLedger` awaits them.

Rule 1: making a program checks what the caller passes, before anything is sent, so a refusal has
written nothing.
Rule 2: with a key the token follows from the counter, the key and `at`, so that a retry names the
same item; without one this file draws it, once, and the caller keeps it.
Rule 3: the table's shape is read before the first request.
Rule 4: a counter with a limit has gates and no deltas; no other way leads to it. A function that
needs gates imports their modules itself, because a process without limits never needs that third of
the package.
Rule 5: a change that fails before anything was sent has an error of its own, with its delta.
Rule 6: a period takes only changes of its own time, and none when it is over, by name and clock
(periods/keep.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ledger.client.holds import Hold
from ledger.core import clocks, tokens
from ledger.core.checks import (
    check_at,
    check_change,
    check_counter,
    check_flag,
    check_key,
    check_length,
)
from ledger.core.errors import (
    InvalidChange,
    InvalidInput,
    InvalidKey,
    InvalidTime,
    LedgerError,
    shown,
)
from ledger.core.limit import DOWN, UP
from ledger.core.period import check_base
from ledger.core.requests import AtOnce, Program, Result
from ledger.core.running import or_error
from ledger.core.settings import Settings, check_settings
from ledger.core.values import Change, Delta, Lane, Receipt, check_changes
from ledger.lane import add as lanes
from ledger.lane.add import Outcome, failed
from ledger.lane.shape import ShapeCheck
from ledger.lane.takes import check_of_period, check_takes

if TYPE_CHECKING:
    from ledger.gate.gates import Gates
    from ledger.gate.sold_out import SoldOut


COUNTERS_MAX = 10_000  # counters whose gates a process keeps at hand


class Rules:
    """What the calls of one ledger share: settings, clock, entropy, as for Ledger, and what it
    learnt of the table.
    """

    def __init__(self, settings: Settings, clock: clocks.Clock, entropy: clocks.Entropy) -> None:
        self.settings = check_settings(settings)
        self.clock = clocks.checked(clock)
        if not callable(entropy):
            raise InvalidInput(
                f"entropy is a function that returns random bytes, not {shown(entropy)}."
            )
        self._entropy = entropy
        self.now = clocks.instants(self.clock)
        self.shape = ShapeCheck(settings, writes=True)
        self.sold_out: SoldOut | None = None
        self.gates = lru_cache(COUNTERS_MAX)(self._gates)
        """A counter's gates; None when it has no limit."""
        if settings.limits:
            from ledger.gate.sold_out import SoldOut

            self.sold_out = SoldOut()

    def randomness(self) -> bytes:
        """The random bytes of a token. Raises InvalidInput for an entropy that returns others."""
        answer: object = self._entropy(size := tokens.RANDOM_BYTES)
        if type(answer) is not bytes or len(answer) != size:
            raise InvalidInput(f"entropy({size}) returns {size} bytes, not {shown(answer)}.")
        return answer

    def _gates(self, counter: str) -> Gates | None:
        if not self.settings.limits:
            return None
        from ledger.gate.gates import Gates

        return Gates.of(self.settings, counter, self.sold_out)


def prepare(rules: Rules, change: Change) -> Delta:
    """The delta of a new request for a change. Raises InvalidInput."""
    if change.then is not None:
        raise InvalidInput(
            "A Change with `then` is a transfer. Nothing was written. Call transfer, or queue it."
        )
    counter = check_counter(change.counter)
    token = _token(rules, counter, change)
    return Delta(_lane(rules.settings, counter, change, token), token, change.change)


def prepare_many(rules: Rules, changes: Iterable[Change], pack: bool) -> list[Delta | LedgerError]:
    """The delta of each change, or the error that says why it has none.

    Raises InvalidInput for what is no Change.
    """
    deltas = [or_error(prepare, rules, change) for change in check_changes("add_many", changes)]
    check_flag("pack", pack)
    return deltas


def prepare_hold(rules: Rules, change: Change, expires: timedelta) -> Delta:
    """The delta of a hold; its token says until when it holds. Raises InvalidInput, also for a hold
    of a side without a
    limit: it would set nothing aside, and its capture would count all the same."""
    length_ms, counter = check_length(expires), check_counter(change.counter)
    token = tokens.with_length(_token(rules, counter, change, tokens.HOLD), length_ms)
    delta = Delta(_lane(rules.settings, counter, change, token), token, change.change)
    if delta.change == 0:
        raise InvalidChange("A hold is of 1 to 10**18, either way: 0 sets nothing aside.")
    limit = rules.settings.limit_of(counter)
    if limit is not None and not limit.has(DOWN if delta.change < 0 else UP):
        only = "a ceiling" if delta.change < 0 else "a floor"
        raise InvalidChange(
            f"A hold of {delta.change:+} sets nothing aside: {counter} has only {only}. Nothing "
            f"was written. To reserve {abs(delta.change)} pass {-delta.change}."
        )
    return delta


def ours(settings: Settings, delta: Delta, *, is_hold: bool = False) -> Delta:
    """The delta, in a lane that knows how many shards the counter has. Raises InvalidInput.

    is_hold: it is a hold, which may also be in the lane of its name.
    """
    given: object = delta
    if not isinstance(given, Delta):
        raise InvalidInput(
            f"apply takes a Delta: prepare's, a receipt's or an error's, not {shown(given)}."
        )
    lane = delta.lane
    expected = settings.lane_for(lane.counter, delta.token, lane.region)
    if is_hold and lane != expected:
        expected = settings.lane_for(lane.counter, tokens.name_of(delta.token), lane.region)
    if lane != expected or lane.region not in settings.regions:
        raise InvalidInput(
            f"No reader looks at the lane {lane}: regions={settings.regions!r}, and this token's "
            f"shard is {expected.shard}. Nothing was written. Use the settings with which the "
            "delta was prepared."
        )
    check_of_period(settings, lane.counter, tokens.time_ms(delta.token))
    return replace(delta, lane=expected)


def _token(rules: Rules, counter: str, change: Change, kind: str = "") -> str:
    key, at = change.idempotency_key, change.at
    if key is None and at is None:
        now_ms = rules.clock()
        if not 0 <= now_ms <= tokens.TIME_MS_MAX:
            raise InvalidTime(
                f"The clock says {now_ms} ms since 1970; a change's time is from 1970 to the year "
                "10889."
            )
        return tokens.make(now_ms, rules.randomness())
    if key is None:
        raise InvalidKey(
            "at came without idempotency_key. Nothing was written. Give both or neither."
        )
    if at is None:
        raise InvalidKey(
            "idempotency_key came without at. Nothing was written. Give both, and the same ones "
            "on every retry."
        )
    # the name of a step may be longer than a key, and was made of checked parts
    name = key if isinstance(key, tokens.Step) else check_key(key)
    return tokens.keyed(counter, name, check_at(at, rules.clock), kind)


def _lane(settings: Settings, counter: str, change: Change, token: str) -> Lane:
    region = settings.region if change.region is None else change.region
    if type(region) is not str or region not in settings.regions:
        raise InvalidInput(f"region={shown(region)} is not one of regions={settings.regions!r}.")
    if settings.periods:
        check_of_period(settings, counter, tokens.time_ms(token))
    return settings.lane_for(counter, token, region)


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


def check_first(rules: Rules, delta: Delta) -> Program[None]:
    """The checks before a change's first request.

    Raises PeriodOver and those of the shape's check, with the delta.
    """
    check_takes(rules.settings, delta, rules.clock())
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
        is_limited = rules.settings.limit_of(delta.lane.counter) is not None
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
    over = or_error(check_takes, rules.settings, delta, rules.clock())
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

    check_takes(rules.settings, delta, rules.clock())
    return _limited(rules, delta.lane.counter, "hold", lambda gates: decide.hold(gates, delta))


def prepare_named_hold(rules: Rules, change: Change, expires: timedelta) -> Delta:
    """As `prepare_hold`, in the lane of the hold's name, which is the same for every length."""
    delta = prepare_hold(rules, change, expires)
    lane = delta.lane
    return replace(
        delta, lane=rules.settings.lane_for(lane.counter, tokens.name_of(delta.token), lane.region)
    )


def capture(rules: Rules, hold: Hold, amount: int | None = None) -> Program[Receipt]:
    from ledger.gate import holds

    held = _held(rules, hold, "capture")
    used = held.change if amount is None else check_change(amount)
    if 0 < used <= -held.change:  # a magnitude
        used = -used
    if used * held.change < 0 or abs(used) > abs(held.change):
        most = f"{held.change} (or to {-held.change})" if held.change < 0 else f"{held.change}"
        raise InvalidChange(
            f"A hold of {held.change} is captured from 0 to {most}, not {shown(used)}."
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

    counter = check_counter(counter)
    if rules.settings.keep_of(counter) is not None:
        term = rules.settings.term_of(counter)
        check_base(counter if term is None else term.base)
        if term is not None:
            term.check_takes(rules.clock())
        for name, bound, beyond in (("floor", floor, 1), ("ceiling", ceiling, -1)):
            if term is None and type(bound) is int and bound * beyond > 0:
                raise InvalidInput(
                    f"{counter}: each period begins at 0, and {name}={bound} leaves that out."
                )
    yield from _limited(
        rules, counter, "set_limit", lambda gates: limits.set_limit(gates, floor, ceiling)
    )


def _held(rules: Rules, hold: Hold, caller: str) -> Delta:
    given: object = hold
    if not isinstance(given, Hold):
        raise InvalidInput(
            f"{caller} takes a Hold, as Ledger.hold and Ledger.parse_hold give it, not "
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

    made = program(Gates.limited(rules.settings, counter, caller, rules.sold_out))
    rules.settings.check_kept(counter, rules.clock())

    def shape_first() -> Program[Result]:
        yield from rules.shape.program(counter)
        return (yield from made)

    return shape_first()
