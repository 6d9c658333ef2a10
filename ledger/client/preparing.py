"""What comes before a ledger's calls send anything: `Rules`, which the calls share, and the deltas
that these make of what the caller passes. So a refusal here has written nothing.

Rule 1: with a key the token follows from the counter, the key and `at`, so that a retry names the
same item. Where `at` is left out it is the time in the key (core/keys.py). Without a key this file
draws the token, once, and the caller keeps it.
Rule 2: a period takes only changes of its own time (core/keep.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from ledger.core import clocks, tokens
from ledger.core.checks import (
    check_at,
    check_counter,
    check_flag,
    check_key,
    check_length,
    check_time,
    to_ms,
)
from ledger.core.errors import (
    InvalidChange,
    InvalidInput,
    InvalidKey,
    InvalidTime,
    LedgerError,
    PeriodOver,
    shown,
)
from ledger.core.limit import DOWN, UP
from ledger.core.plan import Plan
from ledger.core.running import or_error
from ledger.core.settings import Settings, check_settings, plan_of, plans_of
from ledger.core.values import Change, CheckedChange, Delta, Lane, check_changes, delta_for
from ledger.lane.add import PACK_CHANGES
from ledger.lane.shape import ShapeCheck

if TYPE_CHECKING:
    from ledger.gate.gates import Gates
    from ledger.gate.sold_out import SoldOut

COUNTERS_MAX = 10_000  # counters whose gates a process keeps at hand


class Rules:
    """What the calls of one ledger share: settings, clock, entropy, what it learnt of the table.

    The arguments are those of Ledger. Raises InvalidInput.
    """

    def __init__(self, settings: Settings, clock: clocks.Clock, entropy: clocks.Entropy) -> None:
        self.settings = check_settings(settings)
        self.plan = plans_of(settings)
        """The plan of a counter whose name was checked."""
        self.clock = clocks.checked(clock)
        self.randomness = clocks.randomness(entropy)
        self.now = clocks.instants(self.clock)
        self.shape = ShapeCheck(settings, writes=True)
        self.sold_out: SoldOut | None = None
        self.gates = lru_cache(COUNTERS_MAX)(self._gates)
        """A counter's gates; None when it has no limit."""
        if settings.limits:
            # a process without limits never needs that third of the package
            from ledger.gate.sold_out import SoldOut

            self.sold_out = SoldOut()

    def check_takes(self, delta: Delta) -> None:
        """Raises PeriodOver, with the delta, where the delta's period takes no more changes."""
        try:
            self.plan(delta.lane.counter).check_takes(self.clock())
        except PeriodOver as error:
            error.delta = delta
            raise

    def _gates(self, counter: str) -> Gates | None:
        if not self.settings.limits:
            return None
        from ledger.gate.gates import Gates

        return Gates.of(self.settings, counter, self.sold_out)


def prepare(rules: Rules, change: Change) -> Delta:
    """The delta of a new request for a change. Raises InvalidInput."""
    if change.then is not None:
        raise InvalidInput(
            "A Change with `then` is a transfer, and only a queue takes it as a Change. Nothing "
            "was written. Call transfer, or queue it."
        )
    if change.partial:
        raise InvalidInput(
            "A Change with `partial` may count in part, and only a queue takes it as a Change. "
            "Nothing was written. Call add_up_to, which says how much counts, or queue it."
        )
    if isinstance(change, CheckedChange):
        # Rule 3: what its reader checked is not checked again, only what depends on the settings
        # and on the clock.
        plan, at_ms = rules.plan(change.counter), check_at(change.at_ms, rules.clock)
        return _delta(
            rules, plan, change, tokens.keyed(change.counter, change.idempotency_key, at_ms)
        )
    plan = rules.plan(check_counter(change.counter))
    return _delta(rules, plan, change, _token(rules, plan.counter, change))


def prepare_many(rules: Rules, changes: Iterable[Change], pack: bool) -> list[Delta | LedgerError]:
    """The delta of each change, or the error that says why it has none.

    Raises InvalidInput for what is no Change.
    """
    several = check_changes("add_many", changes)
    deltas = [or_error(prepare, rules, change) for change in several]
    if not check_flag("pack", pack) or not rules.settings.shards:
        return deltas
    return list(_sharing_packs(rules, several, deltas))


def _sharing_packs(
    rules: Rules, changes: Sequence[Change], deltas: Iterable[Delta | LedgerError]
) -> Iterator[Delta | LedgerError]:
    """Yield the deltas; those without a key share lanes, where they would spread over shards.

    A lane is that of the first delta, and takes as many as a pack. So a batch takes few packs, and
    its lanes are still drawn.
    """
    rooms: dict[tuple[str, str], tuple[Lane, int]] = {}  # the lane, and how many more it takes
    for change, delta in zip(changes, deltas, strict=True):
        if (
            isinstance(delta, LedgerError)
            or change.idempotency_key is not None  # its key has drawn
            or delta.lane.shards < 2
            or rules.plan(delta.lane.counter).limit is not None  # each lane has rights of its own
        ):
            yield delta
            continue
        lane, room = rooms.get((delta.lane.counter, delta.lane.region), (delta.lane, 0))
        if room == 0:
            lane, room = delta.lane, PACK_CHANGES
        rooms[lane.counter, lane.region] = (lane, room - 1)
        # the token still says the lane, so whoever applies the delta again finds it there
        token = tokens.on_side(delta.token, lane.shard, lane.shards)
        yield Delta(lane, token, delta.change)


def prepare_hold(rules: Rules, change: Change, expires: timedelta) -> Delta:
    """The delta of a hold; its token says until when it holds.

    Raises InvalidInput, also for a hold of a side without a limit: it would set nothing aside, and
    its capture would count all the same.
    """
    length_ms, plan = check_length(expires), rules.plan(check_counter(change.counter))
    token = tokens.with_length(_token(rules, plan.counter, change, tokens.HOLD), length_ms)
    delta = _delta(rules, plan, change, token)
    if delta.change == 0:
        raise InvalidChange(
            "A hold has an amount of 1 to 10**18, or as much below 0: 0 sets nothing aside."
        )
    if plan.limit is not None and not plan.limit.has(DOWN if delta.change < 0 else UP):
        only = "a ceiling" if delta.change < 0 else "a floor"
        raise InvalidChange(
            f"A hold of {delta.change:+} sets nothing aside: {plan.counter} has only {only}. "
            f"Nothing was written. To reserve {abs(delta.change)} pass {-delta.change}."
        )
    return delta


def prepare_up_to(rules: Rules, change: Change) -> Delta:
    """The delta of a change of which a part may count.

    Raises InvalidInput, also for a side without a limit, of which all would count.
    """
    plan = rules.plan(check_counter(change.counter))
    check_key(change.idempotency_key)  # without one nobody could ask again how much counts
    delta = _delta(rules, plan, change, _token(rules, plan.counter, change, tokens.UP_TO))
    if delta.change == 0:
        raise InvalidChange(
            "add_up_to takes a change of 1 to 10**18, or as much below 0: of 0 no part can count."
        )
    if plan.limit is not None and not plan.limit.has(DOWN if delta.change < 0 else UP):
        lacking = "floor" if delta.change < 0 else "ceiling"
        raise InvalidChange(
            f"add_up_to of {delta.change:+}: {plan.counter} has no {lacking}, so all of it would "
            "count. Nothing was written. Call add."
        )
    return delta


def prepare_named_hold(rules: Rules, change: Change, expires: timedelta) -> Delta:
    """As `prepare_hold`, in the lane of the hold's name, which is the same for every length."""
    delta = prepare_hold(rules, change, expires)
    name = tokens.name_of(delta.token)
    return replace(delta, lane=rules.plan(delta.lane.counter).lane_for(name, delta.lane.region))


def ours(settings: Settings, delta: Delta, *, is_hold: bool = False) -> Delta:
    """The delta, in a lane that knows how many shards the counter has. Raises InvalidInput.

    is_hold: it is a hold, which may also be in the lane of its name.
    """
    given: object = delta
    if not isinstance(given, Delta):
        raise InvalidInput(
            "apply takes a Delta, as prepare returns it, or as a receipt or an error carries it, "
            f"not {shown(given)}."
        )
    lane = delta.lane
    plan = plan_of(settings, lane.counter)
    expected = plan.lane_for(delta.token, lane.region)
    if is_hold and lane != expected:
        expected = plan.lane_for(tokens.name_of(delta.token), lane.region)
    if lane != expected or lane.region not in settings.regions:
        raise InvalidInput(
            f"No reader looks at the lane {lane}: the settings have regions={settings.regions!r}, "
            f"and by them this token's shard is {expected.shard}. Nothing was written. Use the "
            "settings with which you prepared the delta."
        )
    plan.check_good_for(delta.token)
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
    # the name of a step may be longer than a key, and was made of checked parts
    name = key if isinstance(key, tokens.Step) else check_key(key)
    at_ms = _own_time_ms(rules, name) if at is None else check_at(check_time("at", at), rules.clock)
    return tokens.keyed(counter, name, at_ms, kind)


def _own_time_ms(rules: Rules, key: str) -> int:
    """The time that a key brings, for a change without `at`. Raises InvalidKey, InvalidTime."""
    from ledger.core.keys import needs_at, time_in

    own = time_in(key)
    if own is None:
        raise InvalidKey(
            "idempotency_key came without at. Nothing was written. Give both, and the same two on "
            f"every retry. {needs_at(key)}"
        )
    try:
        return check_at(to_ms(own), rules.clock)
    except InvalidTime as error:
        why = f"{error.why} That is the key's own time: give `at`, or another key."
        raise InvalidTime(why) from None


def _delta(rules: Rules, plan: Plan, change: Change, token: str) -> Delta:
    settings = rules.settings
    region = settings.region if change.region is None else change.region
    if type(region) is not str or region not in settings.regions:
        raise InvalidInput(f"region={shown(region)} is not one of regions={settings.regions!r}.")
    plan.check_good_for(token)
    lane = plan.lane_for(token, region)
    if isinstance(change, CheckedChange):
        return delta_for(change, lane, token)
    return Delta(lane, token, change.change)
