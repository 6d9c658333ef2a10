"""The program `roll`: entries of the gate are copied into a segment, then they leave it.

Rule 1: copied first, all puts acknowledged; removed after, in one Update IF `version` is the one of the gate that was
seen. Who loses leaves a harmless copy of what was decided. Nobody waits for a roll.
Rule 2: each segment, late entry and hold is named by what it says, and put only where there is none, so nobody's role
need be able to overwrite one. What is there already says the same: a late entry with the version of an earlier copy,
by which its token was decided, too.
Rule 3: what leaves keeps a fingerprint in the gate until its token is at or below `low`, which only rises; the segment
says the `low` of the gate that it was seen in.
Rule 4: what lies an hour or more above the new `low` stays, because the time of a fingerprint comes round.
Rule 5: how much, when and by whom decides nothing but cost.
"""

from collections.abc import Iterable

from ledger.errors import LedgerError
from ledger.gate import items, updates
from ledger.gate.filed import Filed
from ledger.gate.fingerprints import distance, end_ms, fingerprint, is_above
from ledger.gate.gate import Filing, Gate
from ledger.gate.gates import Gates
from ledger.requests import Instant, Now, Program, PutMany, Written
from ledger.tokens import last_of, time_ms

FILED_MAX = 250
"""Entries of one roll: an expression removes 300."""

HOLDS_FILED_MAX = 40
FAR_MS = 3_600_000
SLACK_FALLS = 128
"""Of the slack, this part goes with each roll."""


def roll(gates: Gates, gate: Gate) -> Program[bool]:
    """File what can be, of a gate as it was seen; whether it was this call that did. Raises the TableErrors."""
    now: Instant = yield Now()
    was_ms = gate.slack_ms or 0
    slack_ms = max(gates.filing.slack_ms, was_ms - was_ms // SLACK_FALLS)
    low, recent = _new_low(gate, now.wall_ms, slack_ms)
    holds = _too_many(gate, low, gates.filing)
    if not recent and not holds:
        return False
    lane, version = gate.lane, gate.version + 1
    above = {token: gate.recent[token] for token in recent if token > gate.low}
    top = max(gate.top, *above) if above else gate.top
    filed = [items.late_item(lane, token, gate.recent[token], version) for token in recent if token not in above]
    if above:
        filed.append(items.filed_item(Filed(lane, top, version, gate.low, above)))
    filed += [items.hold_item(lane, token, gate.held[token]) for token in holds]
    for answer in (yield gates.at(lane, PutMany(tuple(filed)))):
        if isinstance(answer, LedgerError):
            raise answer
    marks = gate.moved | {fingerprint(token) for token in (*recent, *holds)}
    low, moved = _kept(marks, low, gates.filing.moved_max)
    update = updates.finish_roll(gate, recent, holds, low, top, moved, slack_ms)
    return isinstance((yield gates.at(lane, update)), Written)


def _new_low(gate: Gate, now_ms: int, slack_ms: int) -> tuple[str, list[str]]:
    """Up to where must be looked up after this roll, and which decided tokens it files."""
    recent = sorted(gate.recent)[:FILED_MAX]
    newest_ms = min(now_ms, time_ms(max((*recent, *gate.held), default=gate.top)))
    low = max(gate.low, last_of(max(0, newest_ms - slack_ms)))
    return low, [token for token in recent if _is_near(token, low)]


def _too_many(gate: Gate, low: str, filing: Filing) -> list[str]:
    """The oldest holds, if there are more than a gate keeps."""
    if len(gate.held) <= filing.holds_kept:
        return []
    oldest = sorted(gate.held)[: len(gate.held) - filing.holds_left]
    return [token for token in oldest if _is_near(token, low)][:HOLDS_FILED_MAX]


def _is_near(token: str, low: str) -> bool:
    return time_ms(token) < time_ms(low) + FAR_MS


def _kept(marks: Iterable[bytes], low: str, most: int) -> tuple[str, frozenset[bytes]]:
    """The fingerprints that stay, and `low`: higher, where there would be too many."""
    kept = sorted((distance(mark, low), mark) for mark in marks if is_above(mark, low))
    if len(kept) > most:
        cut = kept[-most - 1][0]
        kept = [each for each in kept if each[0] > cut]
        low = last_of(end_ms(low, cut))
    return low, frozenset(mark for _, mark in kept)
