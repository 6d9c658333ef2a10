"""`roll` files what leaves a gate; `write` does so where a full gate refuses an Update. past.py
finds what was filed.

Rule 1: a roll first copies, until all puts are acknowledged; then it removes, in one Update IF the
gate's `version` is still the one that it read. A roll that loses leaves a harmless copy of what was
decided. Nobody waits for a roll.
Rule 2: the content of each segment, late entry and hold gives its name, and it is put only where
there is none, so no role needs the right to overwrite one. An item that is there already says the
same: a late entry perhaps with the version of an earlier copy, by which its token was decided, too.
Rule 3: a token that leaves keeps a fingerprint in the gate until it is at or below `low`, which
only rises; no token at or below `low` keeps one. The segment has the `low` of the gate from which
it was copied.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress

from ledger.core.errors import ItemTooLarge, LedgerError
from ledger.core.requests import (
    DeleteMany,
    Instant,
    Item,
    Now,
    Program,
    PutMany,
    Update,
    Written,
    keyed,
)
from ledger.core.running import answered
from ledger.core.tokens import last_of, time_ms, to_bytes
from ledger.core.values import Lane
from ledger.gate import items, updates
from ledger.gate.gate import Gate, distance, end_ms, fingerprint
from ledger.gate.gates import TRIES_MAX, Gates, gave_up
from ledger.gate.items import Filed

FILED_MAX = 250  # entries of one roll: an expression removes 300
HOLDS_FILED_MAX = 40
FAR_MS = 3_600_000
SLACK_FALLS = 128  # each roll takes this part of the slack away
LATE_MS_MAX = 10_000  # a later token says nothing about the others

# When a roll files, and how much, changes nothing but the cost, so processes may differ, and
# histories replace these.
UNIT_BYTES = 1_024  # a write of a gate costs one unit for each of these that it has begun
ENTRY_BYTES = 32  # about the size of a decided token or a hold
ENOUGH = 6  # decided tokens for which a gate has room before it begins another unit
BESIDE = 8  # so many decided tokens that are ahead of now may stay
HOLDS_BESIDE = 8  # holds stay while they leave room for so many decided tokens
HOLDS_LEFT = 4  # of holds that leave too little room all but so many are filed, the oldest first
DRAW = 4  # one call in so many that decide looks whether the gate is full
SLACK_MS = 250  # how far `low` stays behind what is filed, where changes have not come later
# fingerprints that a gate keeps so that its holds are above `low`, and end without a look-up
MARKS_OF_HOLDS = 64
MOVED_MAX = 1_500  # fingerprints of a gate, at most


def room(gate: Gate, size: int = 1) -> int:
    """How many decided tokens and holds fit a gate before it begins another unit. size: of a group
    that comes at once."""
    least = gate.base_bytes + ENTRY_BYTES * max(ENOUGH, size)
    return (-(-least // UNIT_BYTES) * UNIT_BYTES - gate.base_bytes) // ENTRY_BYTES


def is_full(gate: Gate, size: int = 1) -> bool:
    """Whether the gate may begin another unit before another call looks."""
    return len(gate.recent) + len(gate.held) + max(DRAW, size) > room(gate, size)


def slack_after(gate: Gate, token: str) -> int | None:
    """The new `slack` after a token at or below `low`, so that the next such tokens need no
    look-up.
    """
    if token > gate.low:
        return None
    slack_ms = SLACK_MS if gate.slack_ms is None else gate.slack_ms
    late_ms = time_ms(gate.top) - time_ms(token)
    return max(0, slack_ms + (late_ms - slack_ms) // 4) if late_ms <= LATE_MS_MAX else None


def roll(gates: Gates, gate: Gate) -> Program[Gate | None]:
    """File what a gate can spare, as it was read; the gate after that, None if this call took
    nothing out of it.
    """
    now: Instant = yield Now()
    was_ms = gate.slack_ms or 0
    slack_ms = max(SLACK_MS, was_ms - was_ms // SLACK_FALLS)
    low, newest, recent = _new_low(gate, now.wall_ms, slack_ms)
    holds = _too_many(gate, low)
    if not recent and not holds:
        return None
    lane, version = gate.lane, gate.version + 1
    listed = {token: gate.recent[token] for token in recent if gate.low < token <= newest}
    top = max(gate.top, *listed) if listed else gate.top
    filed = [
        items.late_item(lane, token, gate.recent[token], version)
        for token in recent
        if token not in listed
    ]
    if listed:
        filed.append(items.filed_item(Filed(lane, top, version, gate.low, listed)))
    filed += [items.hold_item(lane, token, gate.held[token]) for token in holds]
    answered((yield gates.at(lane, PutMany(tuple(filed)))))
    low, moved = _kept(
        gate, (*recent, *holds), low, now.wall_ms, sorted(gate.held.keys() - {*holds})
    )
    update = updates.finish_roll(gate, recent, holds, low, top, moved, slack_ms)
    after: Item | Written = yield gates.at(lane, update)
    return gates.gate(lane, after.item) if isinstance(after, Written) else None


def looks(token: str) -> bool:
    """Whether the call that decides this token looks at the gate afterwards, and files. The token's
    last bits say its shard, and how long a hold is, so other bits decide."""
    return to_bytes(token)[6] % DRAW == 0


def perhaps_roll(gates: Gates, lane: Lane, item: Item, token: str, size: int = 1) -> Program[None]:
    """Roll the gate if it is full and this token's call looks. item: the gate as it is since the
    decision. size: of the group that was decided.

    It raises no LedgerError, even where the gate is damaged: the decision stands, and an error
    would be the roll's.
    """
    with suppress(LedgerError):
        gate = gates.gate(lane, item)
        if token in gate.held and not _is_crowded(gate):
            gates.sold_out.granted(token)
        if (size > 1 or looks(token)) and is_full(gate, size):
            yield from roll(gates, gate)


def write(gates: Gates, lane: Lane, update: Update) -> Program[Item | Written]:
    """The gate's answer to an Update: Written, with an empty item where the Update does not show
    it. It files a gate that is too large first. Raises ItemTooLarge where nothing can be filed,
    GaveUp and what `Gates.read` raises."""
    for _ in range(TRIES_MAX):
        try:
            answer: Item | Written | None = yield gates.at(lane, update)
        except ItemTooLarge:
            gate = yield from gates.read(lane)
            if (
                not (yield from roll(gates, gate))
                and (yield from gates.read(lane)).version == gate.version
            ):
                raise
        else:
            return Written({}) if answer is None else answer
    raise gave_up(lane)


def forget(gates: Gates, lane: Lane, notes: Collection[str]) -> Program[None]:
    """Delete the notes of holds that ended.

    If a note stays, a later call finds its token decided, and deletes it.
    """
    if notes:
        keys = tuple(keyed(items.hold_key(lane, token)) for token in notes)
        yield gates.at(lane, DeleteMany(keys))


def _new_low(gate: Gate, now_ms: int, slack_ms: int) -> tuple[str, str, list[str]]:
    """The `low` after this roll; the last token that is not ahead of now; the decided tokens to
    file.
    """
    recent = sorted(gate.recent)[:FILED_MAX]
    newest_ms = min(now_ms, time_ms(max((*recent, *gate.held), default=gate.top)))
    low, newest = max(gate.low, last_of(max(0, newest_ms - slack_ms))), last_of(newest_ms)
    # A segment that listed a token ahead of now would be in the way of the look-ups of all earlier
    # tokens. So a few such tokens stay until their time has come; if they are many, each is filed
    # as a late entry.
    if sum(token > newest for token in recent) <= BESIDE:
        recent = [token for token in recent if token <= newest]
    return low, newest, [token for token in recent if _is_near(token, low)]


def _too_many(gate: Gate, low: str) -> list[str]:
    """The oldest holds, to file, if all leave too little room."""
    if not _is_crowded(gate):
        return []
    oldest = sorted(gate.held)[: len(gate.held) - HOLDS_LEFT]
    return [token for token in oldest if _is_near(token, low)][:HOLDS_FILED_MAX]


def _is_crowded(gate: Gate) -> bool:
    return len(gate.held) > max(0, room(gate) - HOLDS_BESIDE)


def _is_near(token: str, low: str) -> bool:
    """Whether a token may leave a gate with this new `low`. One that is FAR_MS or more above it
    stays: the time in a fingerprint comes round after some hours.
    """
    return time_ms(token) < time_ms(low) + FAR_MS


def _kept(
    gate: Gate, gone: Collection[str], low: str, now_ms: int, held: Iterable[str]
) -> tuple[str, frozenset[bytes]]:
    """`low`, and the fingerprints of filed tokens above it. `low` is below the holds that stay
    where that keeps few fingerprints, and higher where there would be too many, but not above
    now."""
    ends = {mark: end_ms(gate.low, distance(mark, gate.low)) for mark in gate.moved}
    for token in gone:  # a late token may have the fingerprint of one that is not late
        mark = fingerprint(token)
        ends[mark] = max(end_ms(token, 0), ends.get(mark, 0))
    low = _below(held, max(gone, default=low), ends.values(), gate.low, low)
    first_ms = _first_above(low)
    above = sorted(end for end in ends.values() if end >= first_ms)
    # `low` never passes now, else every new change would need a look-up: rather the gate keeps more
    # fingerprints than MOVED_MAX.
    if len(above) > MOVED_MAX:
        low = max(low, last_of(min(above[-MOVED_MAX - 1], now_ms)))
        first_ms = _first_above(low)
    return low, frozenset(mark for mark, end in ends.items() if end >= first_ms)


def _below(held: Iterable[str], newest: str, ends: Collection[int], least: str, low: str) -> str:
    """A `low` below the oldest hold from which on few fingerprints are kept: a hold above `low` is
    filed with the others when it ends, and alone if it is not above. newest: the last filed token,
    which must be near."""
    for token in held:
        below = max(least, last_of(time_ms(token) - 1))
        first_ms = _first_above(below)
        if (
            below < low
            and _is_near(newest, below)
            and sum(end >= first_ms for end in ends) <= MARKS_OF_HOLDS
        ):
            return below
    return low


def _first_above(low: str) -> int:
    """The first millisecond with a token that may be above `low`."""
    return time_ms(low) + (low == last_of(time_ms(low)))
