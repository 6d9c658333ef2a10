"""A hold with a name: granted once under it, whatever length a call gives; then found by it.

Rule 1: the name is decided once, as any token, in the Update that grants the hold or refuses it. So
of two calls with other lengths one is granted or refused, and the other gets that answer.
Rule 2: no call writes the name alone as GRANTED. So where it says so there is a hold, in the gate
or filed, whose token differs from the name in its last two bytes, its length; a call with the same
length knows it.
Rule 3: the error of a look for the hold of a name does not deny that this very call granted it.
"""

from dataclasses import replace

from ledger.core.errors import InvalidTime, OutcomeUnknown
from ledger.core.requests import Instant, Now, Page, Program, Query, Written
from ledger.core.running import Doubt
from ledger.core.tokens import HOLD_MS_MAX, ends_of, is_named, name_of, time_ms, until_ms
from ledger.core.values import Delta, Lane
from ledger.gate import items, updates
from ledger.gate.answer import Decision, check_granted
from ledger.gate.decide import decide_change
from ledger.gate.filing import perhaps_roll, write
from ledger.gate.gate import GRANTED, Gate
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.past import SEGMENTS_OF_PAGE, find, look_up
from ledger.gate.repeated import shown_now
from ledger.lane.tail import Pages, every_item

NOTES_OF_PAGE = 100


def hold(gates: Gates, delta: Delta) -> Program[Delta]:
    """The hold that was granted under this one's name, now or before. Raises as `decide.hold`."""
    now: Instant = yield Now()
    if until_ms(delta.token) > now.wall_ms:
        decision = yield from decide_change(gates, delta, hold=True, name=name_of(delta.token))
        with Doubt() as doubt:
            if decision.outcome == GRANTED:
                doubt.note(
                    OutcomeUnknown(
                        f"{delta.lane}: a hold was granted for this key, perhaps by this call."
                    )
                )
            granted, decision = yield from _followed(gates, delta, decision)
    else:
        granted, found = yield from stands_for(gates, delta)
        if found is None:
            raise InvalidTime("The hold would be over already, because `expires` counts from `at`.")
        decision = found
    check_granted(granted, (yield from shown_now(gates, granted, decision)))
    return granted


def stands_for(gates: Gates, delta: Delta) -> Program[tuple[Delta, Decision | None]]:
    """The hold that was granted under this one's name, and its decision; else this one, with
    that of the name.
    """
    decision, _ = yield from find(gates, delta.lane, name_of(delta.token))
    if decision is None:
        return delta, None
    return (yield from _followed(gates, delta, decision))


def close(gates: Gates, delta: Delta) -> Program[tuple[Delta, Decision]]:
    """As `stands_for`, after the name was decided if it was open."""
    lane, name = delta.lane, name_of(delta.token)
    for _ in range(TRIES_MAX):
        decision, version = yield from find(gates, lane, name)
        if decision is not None:
            return (yield from _followed(gates, delta, decision))
        assert version is not None  # as of a token that nobody knows
        # Rule 4: a name that is closed grants and refuses no call.
        answer = yield from write(gates, lane, updates.close(lane, gates.limit, name, version))
        if isinstance(answer, Written):
            yield from perhaps_roll(gates, lane, answer.item, name)
    raise gave_up(lane)


def _followed(gates: Gates, delta: Delta, decision: Decision) -> Program[tuple[Delta, Decision]]:
    """From the decision of a name to the hold that it stands for."""
    if decision.outcome != GRANTED:
        return delta, decision
    for _ in range(TRIES_MAX):
        held = yield from _held(gates, delta)
        if (
            held is not None
            and (found := (yield from find(gates, delta.lane, held))[0]) is not None
        ):
            return replace(delta, token=held), found
    raise gave_up(delta.lane)


def _held(gates: Gates, delta: Delta) -> Program[str | None]:
    """The token of the hold. None: it was filed, or ended, between two requests."""
    lane, name = delta.lane, name_of(delta.token)
    gate: Gate = yield from gates.read(lane)
    here = next((token for token in (*gate.held, *gate.recent) if is_named(token, name)), None)
    if here is not None:
        return here
    if (yield from look_up(gates, lane, delta.token)) is not None:
        return delta.token
    return (yield from gates.home(lane, _filed(lane, name)))


def _filed(lane: Lane, name: str) -> Program[str | None]:
    """The token of a hold with another length than this call's, among the notes and what was
    filed.
    """
    first, last = ends_of(name)
    began_ms = time_ms(name)
    from_ms, upto_ms = (items.holds_until(ms) for ms in (began_ms, began_ms + 2 * HOLD_MS_MAX))
    notes = Pages(Query(items.hold_pk(lane), from_ms, upto_ms, NOTES_OF_PAGE))
    while notes.more:
        page: Page = yield from notes.read()
        for item in page.items:
            if is_named(token := items.hold_of(lane, item)[0], name):
                return token
    past, last_late = items.past_pk(lane), items.late_key(lane, last).sk
    for item in (yield from every_item(past, items.late_from(first), last_late, consistent=True)):
        if is_named(token := items.late_of(lane, item)[0], name):
            return token
    segments = Pages(Query(past, items.segments_from(first), items.SEGMENTS_UPTO, SEGMENTS_OF_PAGE))
    while segments.more:
        page = yield from segments.read()
        for item in page.items:
            filed = items.filed_of(lane, item)
            for token in filed.outcomes:
                if is_named(token, name):
                    return token
            if filed.low >= last:  # past.py, rule 2
                return None
    return None
