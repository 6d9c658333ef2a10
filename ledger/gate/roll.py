"""The programs `roll`, which copies entries of the gate into a segment and then takes them out of it, and `write`.

Rule 1: copied first, all puts acknowledged; removed after, in one Update IF `version` is the one of the gate that was
seen. Who loses leaves a harmless copy of what was decided. Nobody waits for a roll.
Rule 2: each segment, late entry and hold is named by what it says, and put only where there is none, so nobody's role
need be able to overwrite one. What is there already says the same: a late entry with the version of an earlier copy,
by which its token was decided, too.
Rule 3: what leaves keeps a fingerprint in the gate until its token is at or below `low`, which only rises; the segment
says the `low` of the gate that it was seen in. Nothing at or below `low` keeps one.
Rule 4: what lies an hour or more above the new `low` stays, because the time of a fingerprint comes round.
Rule 5: `low` never passes now, or the changes of now would have to be looked up; rather more fingerprints stay.
Rule 6: what lies ahead of now never stands in a segment, because everything earlier would be looked up through all
that follow. A few such entries stay until their time has come; of more each is filed alone, as what is late.
Rule 7: a write that a full gate refuses files first, whatever it writes.
Rule 8: how much, when and by whom decides nothing but cost.
"""

from collections.abc import Iterable
from contextlib import suppress

from ledger.errors import ItemTooLarge, LedgerError
from ledger.gate import items, updates
from ledger.gate.filed import Filed
from ledger.gate.fingerprints import distance, end_ms, fingerprint
from ledger.gate.gate import Filing, Gate
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.requests import Instant, Item, Now, Program, PutMany, Update, Written
from ledger.tokens import draw, last_of, time_ms
from ledger.values import Lane

FILED_MAX = 250
"""Entries of one roll: an expression removes 300."""

HOLDS_FILED_MAX = 40
FAR_MS = 3_600_000
SLACK_FALLS = 128
"""Of the slack, this part goes with each roll."""


def roll(gates: Gates, gate: Gate) -> Program[Gate | None]:
    """File what can be, of a gate as it was seen; the gate after that, None if this call took nothing out of it.
    Raises the TableErrors."""
    now: Instant = yield Now()
    was_ms = gate.slack_ms or 0
    slack_ms = max(gates.filing.slack_ms, was_ms - was_ms // SLACK_FALLS)
    low, newest, recent = _new_low(gate, now.wall_ms, slack_ms, gates.filing)
    holds = _too_many(gate, low, gates.filing)
    if not recent and not holds:
        return None
    lane, version = gate.lane, gate.version + 1
    listed = {token: gate.recent[token] for token in recent if gate.low < token <= newest}
    top = max(gate.top, *listed) if listed else gate.top
    filed = [items.late_item(lane, token, gate.recent[token], version) for token in recent if token not in listed]
    if listed:
        filed.append(items.filed_item(Filed(lane, top, version, gate.low, listed)))
    filed += [items.hold_item(lane, token, gate.held[token]) for token in holds]
    for answer in (yield gates.at(lane, PutMany(tuple(filed)))):
        if isinstance(answer, LedgerError):
            raise answer
    low, moved = _kept(gate, (*recent, *holds), low, gates.filing.moved_max, now.wall_ms)
    update = updates.finish_roll(gate, recent, holds, low, top, moved, slack_ms)
    after: Item | Written = yield gates.at(lane, update)
    return gates.gate(lane, after.item) if isinstance(after, Written) else None


def perhaps_roll(gates: Gates, lane: Lane, item: Item, token: str, size: int = 1) -> Program[None]:
    """Begin a roll if there is enough to file and it is this token's turn. item: the gate as it is since the decision.
    size: of the group that was decided.

    Raises nothing, also where the gate is damaged: the decision stands, and an error that says what was written would
    be of the roll. Others try again, and reads tell of damage.
    """
    with suppress(LedgerError):
        gate = gates.gate(lane, item)
        full = gate.fullness(gates.filing, size)
        if full >= 2 or (full >= 1 and draw(token, gates.filing.draw) == 0):
            yield from roll(gates, gate)


def write(gates: Gates, lane: Lane, update: Update) -> Program[Item | Written]:
    """What the gate answers to an Update; a gate that is full is filed first. Raises ItemTooLarge where nothing can be
    filed, what `Gates.read` raises, and GaveUp."""
    for _ in range(TRIES_MAX):
        try:
            answer: Item | Written = yield gates.at(lane, update)
        except ItemTooLarge:
            gate = yield from gates.read(lane)
            if not (yield from roll(gates, gate)) and (yield from gates.read(lane)).version == gate.version:
                raise
        else:
            return answer
    raise gave_up(lane)


def _new_low(gate: Gate, now_ms: int, slack_ms: int, filing: Filing) -> tuple[str, str, list[str]]:
    """Up to where must be looked up after this roll; the last token that is not ahead of now; which decided tokens are
    filed."""
    recent = sorted(gate.recent)[:FILED_MAX]
    newest_ms = min(now_ms, time_ms(max((*recent, *gate.held), default=gate.top)))
    low, newest = max(gate.low, last_of(max(0, newest_ms - slack_ms))), last_of(newest_ms)
    if sum(token > newest for token in recent) <= filing.beside:
        recent = [token for token in recent if token <= newest]
    return low, newest, [token for token in recent if _is_near(token, low)]


def _too_many(gate: Gate, low: str, filing: Filing) -> list[str]:
    """The oldest holds, if there are more than a gate keeps."""
    if len(gate.held) <= filing.holds_kept:
        return []
    oldest = sorted(gate.held)[: len(gate.held) - filing.holds_left]
    return [token for token in oldest if _is_near(token, low)][:HOLDS_FILED_MAX]


def _is_near(token: str, low: str) -> bool:
    return time_ms(token) < time_ms(low) + FAR_MS


def _kept(gate: Gate, gone: Iterable[str], low: str, most: int, now_ms: int) -> tuple[str, frozenset[bytes]]:
    """`low`, higher where there would be too many fingerprints, but not above now; and those of what lies above it."""
    ends = {mark: end_ms(gate.low, distance(mark, gate.low)) for mark in gate.moved}
    for token in gone:  # one that is late may have the fingerprint of one that is not
        mark = fingerprint(token)
        ends[mark] = max(end_ms(token, 0), ends.get(mark, 0))
    first_ms = _first_above(low)
    above = sorted(end for end in ends.values() if end >= first_ms)
    if len(above) > most:
        low = max(low, last_of(min(above[-most - 1], now_ms)))
        first_ms = _first_above(low)
    return low, frozenset(mark for mark, end in ends.items() if end >= first_ms)


def _first_above(low: str) -> int:
    """The first millisecond of which a token may be above `low`."""
    return time_ms(low) + (low == last_of(time_ms(low)))
