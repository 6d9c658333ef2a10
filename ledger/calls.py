"""What a ledger's calls ask of the table: `Ledger` sends it, `AsyncLedger` awaits it.

Rule 1: what a caller passes is checked when the program is made, before anything is sent, so every refusal says that
nothing was written.
Rule 2: with a key the token follows from the counter, the key and `at`, so that a retry names the same item; without
one it is drawn here, once, and is the caller's to keep.
Rule 3: the table's shape is asked for before the first request.
Rule 4: a counter with a limit has gates and no deltas; no other way leads to it.
Rule 5: a change that fails before anything was sent has its own error, with its delta.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypedDict

from ledger import clocks, tokens
from ledger.checks import check_change, check_counter, check_key, check_time, to_datetime
from ledger.clocks import Clock
from ledger.dynamo.send import AtOnce
from ledger.errors import InvalidChange, InvalidInput, InvalidKey, InvalidTime, LedgerError, shown
from ledger.gate import bounds, decide
from ledger.gate.gates import Gates, SoldOut
from ledger.gate.hold import Hold
from ledger.lane import add as deltas_of
from ledger.lane.add import Outcome, add_packed, failed
from ledger.lane.shape import ShapeCheck
from ledger.requests import Program, Request, Result
from ledger.settings import Settings, check_settings
from ledger.tokens import HOLD, HOLD_MS_MAX, with_length
from ledger.values import Change, Delta, Lane, Receipt, check_changes

AHEAD_MAX_MS = 300_000
"""How far ahead of the clock `at` may be: five minutes."""


def prepared(asked: Change, settings: Settings, clock: Clock, entropy: Callable[[int], bytes]) -> Delta:
    """The delta of a change that is asked for now. Raises InvalidInput."""
    token = _token(asked, clock, entropy, "")
    return Delta(_lane(asked, token, settings), token, asked.change)


def prepared_hold(
    asked: Change, expires: timedelta, settings: Settings, clock: Clock, entropy: Callable[[int], bytes]
) -> Delta:
    """The delta that a hold sets aside, whose token says until when. Raises InvalidInput."""
    length_ms = _length_ms(expires)
    token = with_length(_token(asked, clock, entropy, HOLD), length_ms)
    delta = Delta(_lane(asked, token, settings), token, asked.change)
    if delta.change == 0:
        raise InvalidChange("A hold is of 1 to 10**18, either way: 0 sets nothing aside.")
    return delta


def _token(asked: Change, clock: Clock, entropy: Callable[[int], bytes], kind: str) -> str:
    counter, key, at = check_counter(asked.counter), asked.idempotency_key, asked.at
    if key is None and at is None:
        return tokens.make(_in_range(clock()), entropy(tokens.RANDOM_BYTES))
    return tokens.keyed(counter, _checked_key(key, at), _checked_time(at, clock), kind)


def _lane(asked: Change, token: str, settings: Settings) -> Lane:
    region = asked.region
    if region is None:
        region = settings.region
    elif type(region) is not str or region not in settings.regions:
        raise InvalidInput(f"region={shown(region)} is not one of regions={settings.regions!r}.")
    return settings.lane_for(asked.counter, token, region)


def _length_ms(expires: object) -> int:
    if not isinstance(expires, timedelta):
        raise InvalidTime(f"expires is a timedelta, how long the hold holds from `at` on, not {shown(expires)}.")
    length_ms, more = divmod(expires, timedelta(milliseconds=1))
    length_ms += bool(more)  # rounded up
    if not 0 < length_ms <= HOLD_MS_MAX:
        raise InvalidTime(f"expires={shown(expires)} is not above 0 and at most {HOLD_MS_MAX // 86_400_000} days.")
    return length_ms


def _checked_key(key: str | None, at: datetime | None) -> str:
    if key is None:
        raise InvalidKey("at came without idempotency_key; they go together.")
    if at is None:
        raise InvalidKey("idempotency_key came without at; they go together, and both must be the same on a retry.")
    return check_key(key)


def _checked_time(at: datetime | None, clock: Clock) -> int:
    at_ms, now_ms = check_time("at", at), clock()
    if at_ms > now_ms + AHEAD_MAX_MS:
        raise InvalidTime(f"at={_text(at_ms)} is more than five minutes ahead of this clock's {_text(now_ms)}.")
    if at_ms < 0:
        raise InvalidTime(f"at={_text(at_ms)} is before 1970.")
    return at_ms


def _in_range(now_ms: int) -> int:
    if not 0 <= now_ms <= tokens.TIME_MS_MAX:
        raise InvalidTime(f"The clock says {now_ms} ms since 1970; a change's time is from 1970 to the year 10889.")
    return now_ms


def _text(time_ms: int) -> str:
    return to_datetime(time_ms).isoformat()


class Named(TypedDict, total=False):
    """What gives a change its name, as for Ledger."""

    idempotency_key: str | None
    at: datetime | None
    region: str | None


class Calls:
    """clock, entropy: as for Ledger."""

    def __init__(self, settings: Settings, clock: clocks.Clock, entropy: clocks.Entropy) -> None:
        self.settings = check_settings(settings)
        self._clock = clocks.checked(clock)
        self._entropy = clocks.checked_entropy(entropy)
        self.now = clocks.instants(self._clock)
        self.shape = ShapeCheck(settings, writes=True)
        self._sold_out = SoldOut()

    # -- changes -------------------------------------------------------------------------------------------------------

    def prepare(self, asked: Change) -> Delta:
        return prepared(asked, self.settings, self._clock, self._entropy)

    def ours(self, delta: Delta) -> Delta:
        """The delta in a lane that knows how many shards this table has. Raises InvalidInput."""
        given: object = delta
        if not isinstance(given, Delta):
            raise InvalidInput(f"apply takes a Delta: prepare's, a receipt's or an error's, not {shown(given)}.")
        lane = delta.lane
        expected = self.settings.lane_for(lane.counter, delta.token, lane.region)
        if lane != expected or lane.region not in self.settings.regions:
            raise InvalidInput(
                f"No reader looks at the lane {lane}: regions={self.settings.regions!r}, and this token's shard is "
                f"{expected.shard}. The settings must be those with which the delta was prepared."
            )
        return replace(delta, lane=expected)

    def add(self, delta: Delta) -> Program[Receipt]:
        if not self.shape.is_known:
            yield from self.check_shape(delta)
        gates = Gates.of(self.settings, delta.lane.counter, self._sold_out)
        return (yield from (deltas_of.add(delta) if gates is None else decide.add(gates, delta)))

    def check_shape(self, delta: Delta) -> Program[None]:
        """Raises what the check raises, with the delta."""
        try:
            yield from self.shape.program(delta.lane.counter)
        except LedgerError as error:
            error.delta = delta
            raise

    def lane_outcomes(self, deltas: Sequence[Delta]) -> Program[Sequence[Outcome]]:
        """Changes of one lane: to its gate, or one change as `add` does and several in packs."""
        counter = deltas[0].lane.counter
        gates = Gates.of(self.settings, counter, self._sold_out)
        if gates is not None:
            try:
                yield from self.shape.program(counter)
            except LedgerError as error:
                return [failed(error, delta) for delta in deltas]
            return (yield from decide.add_many(gates, deltas))
        if len(deltas) > 1:
            return (yield from add_packed(deltas))
        try:
            return [(yield from deltas_of.add(deltas[0]))]
        except LedgerError as error:
            return [error]

    # -- batches -------------------------------------------------------------------------------------------------------

    def prepare_many(self, changes: Iterable[Change], pack: bool) -> list[Delta | LedgerError]:
        """The delta of each change, or why it has none. Raises InvalidInput for what is no Change."""
        deltas: list[Delta | LedgerError] = []
        for change in check_changes("add_many", changes):
            try:
                deltas.append(self.prepare(change))
            except LedgerError as error:
                deltas.append(error)
        if type(pack) is not bool:
            raise InvalidInput(f"pack={shown(pack)} is not True or False.")
        return deltas

    def add_many(
        self, deltas: Sequence[Delta | LedgerError], *, pack: bool
    ) -> Generator[Request | AtOnce, Any, list[Outcome]]:
        """An outcome for each, in order; an error that stands in a delta's place is its outcome."""
        outcomes: dict[int, Outcome] = {i: error for i, error in enumerate(deltas) if isinstance(error, LedgerError)}
        sent = {i: delta for i, delta in enumerate(deltas) if isinstance(delta, Delta)}
        try:
            if sent:
                yield from self.shape.program()
        except LedgerError as failure:
            return [each if isinstance(each, LedgerError) else failed(failure, each) for each in deltas]
        parts: dict[Lane | None, dict[int, Delta]] = {}
        for i, delta in sent.items():
            is_limited = self.settings.limit_of(delta.lane.counter) is not None
            parts.setdefault(delta.lane if is_limited else None, {})[i] = delta
        programs = tuple(self._part(lane, [*part.values()], pack) for lane, part in parts.items())
        answers: Sequence[Sequence[Outcome]] = (yield AtOnce(programs)) if programs else ()
        for part, answer in zip(parts.values(), answers, strict=True):
            outcomes |= zip(part, answer, strict=True)
        return [outcomes[i] for i in range(len(deltas))]

    def _part(self, lane: Lane | None, deltas: Sequence[Delta], pack: bool) -> Program[Sequence[Outcome]]:
        """The changes of one limited lane, or all that have no limit."""
        if lane is not None:
            return self.lane_outcomes(deltas)
        return add_packed(deltas) if pack else deltas_of.add_many(deltas)

    # -- limits --------------------------------------------------------------------------------------------------------

    def hold(self, asked: Change, expires: timedelta) -> tuple[Delta, Program[None]]:
        """What is held, and the program that returns when it is granted."""
        delta = prepared_hold(asked, expires, self.settings, self._clock, self._entropy)
        return delta, self._first(decide.hold(self._limited(asked.counter, "hold"), delta), asked.counter)

    def capture(self, hold: Hold, amount: int | None = None) -> Program[Receipt]:
        held = self._held(hold, "capture")
        used = held.change if amount is None else check_change(amount)
        if 0 < used <= -held.change:  # a magnitude
            used = -used
        if used * held.change < 0 or abs(used) > abs(held.change):
            most = f"{held.change} (or to {-held.change})" if held.change < 0 else f"{held.change}"
            raise InvalidChange(f"A hold of {held.change} is captured from 0 to {most}, not {shown(used)}.")
        counter = held.lane.counter
        return self._first(decide.capture(self._limited(counter, "capture"), held, used), counter)

    def release(self, hold: Hold) -> Program[None]:
        held = self._held(hold, "release")
        counter = held.lane.counter
        return self._first(decide.release(self._limited(counter, "release"), held), counter)

    def set_limit(self, counter: str, *, floor: int | None = None, ceiling: int | None = None) -> Program[None]:
        yield from self._first(bounds.set_limit(self._limited(counter, "set_limit"), floor, ceiling), counter)

    def _limited(self, counter: str, caller: str) -> Gates:
        return Gates.limited(self.settings, counter, caller, self._sold_out)

    def _held(self, hold: Hold, caller: str) -> Delta:
        given: object = hold
        if not isinstance(given, Hold):
            raise InvalidInput(
                f"{caller} takes a Hold, as Ledger.hold and Ledger.parse_hold give it, not {shown(given)}."
            )
        return self.ours(given.delta)

    def _first(self, program: Program[Result], counter: str) -> Program[Result]:
        """The program, once the shape is known to fit."""
        yield from self.shape.program(counter)
        return (yield from program)
