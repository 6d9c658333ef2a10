"""The Updates of a gate, each a conditional request: pure, from values to requests.

Rule 1: `decide` (also of a group), `refuse` and `hold` have the condition that the token is *open*:
in neither map, and either fresh (above `low`, with no fingerprint of its own in `moved`) or looked
up, and nothing was filed since (`version` is as read).
Rule 2: an Update takes rights only where there are enough; a side without a limit has none, and
every Update checks that, so a process with another limit changes nothing.
Rule 3: an SDK may send an Update twice, and it takes effect once: its own effect breaks its
condition.
"""

from collections.abc import Collection, Iterable, Mapping

from ledger.core.actions import Action, Add, Remove, Set
from ledger.core.conditions import Absent, All, AtLeast, Condition, Contains, Either, Equals, Not
from ledger.core.decoding import number
from ledger.core.limit import DOWN, UP, Limit
from ledger.core.requests import Update
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.gate import (
    CLOSED,
    EXPIRED,
    GRANTED,
    REFUSED,
    Cell,
    Gate,
    change_of,
    counts,
    fingerprint,
    shares,
)

RECENT, HELD = "recent", "held"

GROUP_MAX = 40  # tokens that one Update decides: an expression has 300 operators
EXPIRED_MAX = 60  # holds that one Update ends, for the same reason


def decide(
    lane: Lane,
    limit: Limit,
    changes: Mapping[str, int],
    seen: int | None = None,
    slack_ms: int | None = None,
    *,
    shows: bool = True,
) -> Update:
    """Each token stands for its change. seen: the version at which those that are not fresh were
    looked up. shows: whether the answer shows the gate after the Update."""
    net = sum(changes.values())
    more = [] if slack_ms is None else [Set("slack", number(slack_ms))]
    return _update(
        lane,
        limit,
        {RECENT: changes},
        _open(changes, seen),
        down=net,
        up=-net,
        more=more,
        shows=shows,
    )


def hold(
    lane: Lane,
    limit: Limit,
    token: str,
    amount: int,
    seen: int | None = None,
    *,
    name: str | None = None,
) -> Update:
    """Set aside the rights that the amount takes. The opposite ones come with its capture. name:
    what is decided in the hold's place, so that a call with another length meets it."""
    down, up = shares([amount])
    entries = {HELD: {token: amount}}
    if name is not None:
        entries[RECENT] = {name: GRANTED}
    return _update(lane, limit, entries, _open([name or token], seen), down=-down, up=-up)


def close(lane: Lane, limit: Limit, name: str, seen: int) -> Update:
    """No hold is granted under this name any more, nor refused.

    seen: the version at which it was looked up.
    """
    return _update(lane, limit, {RECENT: {name: CLOSED}}, _open([name], seen))


def refuse(lane: Lane, limit: Limit, token: str, amount: int, seen: int | None = None) -> Update:
    """The token stands for a refusal, if the rights are still too few."""
    down, up = shares([amount])
    taken = {DOWN: down, UP: up}
    short = [Not(AtLeast(side, number(n))) for side, n in taken.items() if limit.has(side) and n]
    return _update(lane, limit, {RECENT: {token: REFUSED}}, [*_open([token], seen), Either(short)])


def end(
    lane: Lane,
    limit: Limit,
    amounts: Mapping[str, int],
    outcome: int = EXPIRED,
    filed: int | None = None,
) -> Update:
    """End holds: several whose time is over, or one with another outcome. The used part counts, the
    rest goes back.
    filed: the version at which they were found filed."""
    used = change_of(outcome)
    back_down, back_up = shares(amounts.values())
    if filed is None:
        conditions: list[Condition] = [
            Equals((HELD, token), number(n)) for token, n in amounts.items()
        ]
    else:
        conditions = [Absent((name, token)) for token in amounts for name in (RECENT, HELD)]
        conditions.append(_version_is(filed))
    gone = [Remove((HELD, token)) for token in amounts] if filed is None else []
    ended = dict.fromkeys(amounts, outcome)
    return _update(
        lane,
        limit,
        {RECENT: ended},
        conditions,
        down=back_down + used,
        up=back_up - used,
        more=gone,
    )


def give(giver: Gate, to: Cell, amount: int) -> Update:
    """Rights leave for another lane, if none left for it since the gate was read."""
    cell = items.cell_name("given", to)
    was = _was(cell, giver.given.get(to))
    actions = (Add(to[1], -amount), Add(cell, amount))
    return Update(
        items.gate_key(giver.lane), actions, All((AtLeast(to[1], number(amount)), was)), shows=True
    )


def take_over(gate: Gate, giver: Cell, given: int) -> Update:
    """The rights that another lane has given, ever, arrive here."""
    name, got = items.cell_name("got", giver), gate.got.get(giver)
    was = _was(name, got)
    actions = (Add(giver[1], given - (got or 0)), Set(name, number(given)))
    return Update(items.gate_key(gate.lane), actions, All((Not(Absent(giver[1])), was)), shows=True)


def set_limit(gate: Gate, limit: Limit, wanted: Mapping[str, int | None]) -> Update:
    """Set another limit, on the same sides. The rights that it takes away must be here. What a
    period has passed on is beside the limit, so the gate notes how much that is."""
    actions = [
        Set(items.BOUNDS[side], number(amount))
        for side, amount in wanted.items()
        if amount is not None
    ]
    taken = gate.taken_by(wanted)
    if gate.passed_on:
        actions.append(Set("carried_before", number(gate.carried)))
    epoch = Set("epoch", number(gate.epoch + 1))
    unchanged = [Equals("epoch", number(gate.epoch))]
    down, up = -taken.get(DOWN, 0), -taken.get(UP, 0)
    return _update(gate.lane, limit, {}, unchanged, down=down, up=up, more=[*actions, epoch])


def carry_out(gate: Gate, amount: int) -> Update:
    """Rights, and as much of the ceiling, leave for the next period."""
    return _carry(gate, -amount, Set("carried", number(gate.carried + amount)))


def carry_in(gate: Gate, carried: int) -> Update:
    """The rights that the period before has carried, ever, arrive here."""
    return _carry(gate, carried - gate.took, Set("took", number(carried)))


def _carry(gate: Gate, more: int, cell: Action) -> Update:
    """The ceiling moves with the rights, so the rights that are due follow from it as always. It is
    another limit, so the condition fails if somebody carried or set one since the gate was read."""
    ceiling = Set(items.BOUNDS[UP], number((gate.bounds[UP] or 0) + more))
    actions = (Add(UP, more), ceiling, cell, Set("epoch", number(gate.epoch + 1)))
    enough = AtLeast(UP, number(-more)) if more < 0 else Not(Absent(UP))
    return Update(
        items.gate_key(gate.lane),
        actions,
        All((enough, Equals("epoch", number(gate.epoch)))),
        shows=True,
    )


def finish_roll(
    gate: Gate,
    filed: Iterable[str],
    holds: Iterable[str],
    low: str,
    top: str,
    moved: frozenset[bytes],
    slack_ms: int,
) -> Update:
    """Copied tokens leave the gate, if nothing was filed since it was read."""
    gone = {token: gate.recent[token] for token in filed}
    total = gate.total + sum(map(change_of, gone.values()))
    count = gate.count + sum(map(counts, gone.values()))
    actions: list[Action] = [Remove((RECENT, token)) for token in gone]
    actions += [Remove((HELD, token)) for token in holds]
    actions += [
        Set("total", number(total)),
        Set("count", number(count)),
        Set("version", number(gate.version + 1)),
    ]
    actions += [Set("low", {"S": low}), Set("top", {"S": top}), Set("slack", number(slack_ms))]
    actions.append(Set("moved", {"BS": sorted(moved)}) if moved else Remove("moved"))
    return Update(items.gate_key(gate.lane), tuple(actions), _version_is(gate.version), shows=True)


def _open(names: Collection[str], seen: int | None) -> list[Condition]:
    conditions: list[Condition] = []
    for token in names:
        conditions += [Absent((RECENT, token)), Absent((HELD, token))]
        if seen is None:
            conditions.append(Not(Contains("moved", {"B": fingerprint(token)})))
    is_above_low = Not(AtLeast("low", {"S": min(names)}))
    return [*conditions, is_above_low if seen is None else _version_is(seen)]


def _was(cell: str, amount: int | None) -> Condition:
    return Absent(cell) if amount is None else Equals(cell, number(amount))


def _version_is(version: int) -> Condition:
    return Equals("version", number(version))


def _update(
    lane: Lane,
    limit: Limit,
    entries: Mapping[str, Mapping[str, int]],
    conditions: Iterable[Condition],
    *,
    down: int = 0,
    up: int = 0,
    more: Iterable[Action] = (),
    shows: bool = True,
) -> Update:
    """Write entries of the two maps, and move rights, if the gate has the limited sides; so
    there must be one.
    """
    checks = [*conditions]
    actions: list[Action] = [
        Set((name, token), number(n)) for name, of in entries.items() for token, n in of.items()
    ]
    for side, change in ((DOWN, down), (UP, up)):
        if not limit.has(side):
            checks.append(Absent(side))
            continue
        checks.append(AtLeast(side, number(-change)) if change < 0 else Not(Absent(side)))
        if change:
            actions.append(Add(side, change))
    return Update(items.gate_key(lane), (*actions, *more), All(checks), shows)
