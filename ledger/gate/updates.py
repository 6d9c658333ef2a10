"""The Updates of a gate, each one conditional request: pure, from values to requests.

Rule 1: `decide`, `refuse`, `hold` and a group ask that the token is *open*: in neither map, and either fresh (above
`low`, with no fingerprint of its own in `moved`) or looked up, and nothing was filed since (`version` is as seen).
Rule 2: a right is taken only where there is enough of it; a side that is not limited has none, and every Update checks
that, so a process with another limit changes nothing.
Rule 3: sent twice, as an SDK may, each does what it does once: its own effect breaks its condition.
"""

from collections.abc import Collection, Iterable, Mapping

from ledger.actions import Action, Add, Remove, Set
from ledger.conditions import Absent, All, AtLeast, Condition, Contains, Either, Equals, Not
from ledger.decoding import number
from ledger.gate import items
from ledger.gate.gate import EXPIRED, REFUSED, Cell, Gate, change_of, counts, fingerprint, shares
from ledger.limit import DOWN, UP, Limit
from ledger.requests import Update
from ledger.values import Lane

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
    """Each token stands for its change. seen: the version at which those that are not fresh were looked up. shows:
    whether the gate is asked for, as it is then."""
    net = sum(changes.values())
    more = [] if slack_ms is None else [Set("slack", number(slack_ms))]
    return _update(lane, limit, {RECENT: changes}, _open(changes, seen), down=net, up=-net, more=more, shows=shows)


def hold(lane: Lane, limit: Limit, token: str, amount: int, seen: int | None = None) -> Update:
    """Set aside the right that the amount takes. The opposite one comes with its capture."""
    down, up = shares([amount])
    return _update(lane, limit, {HELD: {token: amount}}, _open([token], seen), down=-down, up=-up)


def refuse(lane: Lane, limit: Limit, token: str, amount: int, seen: int | None = None) -> Update:
    """The token stands for a refusal, if there is still too little."""
    down, up = shares([amount])
    taken = {DOWN: down, UP: up}
    short = [Not(AtLeast(side, number(n))) for side, n in taken.items() if limit.has(side) and n]
    return _update(lane, limit, {RECENT: {token: REFUSED}}, [*_open([token], seen), Either(short)])


def end(
    lane: Lane, limit: Limit, amounts: Mapping[str, int], outcome: int = EXPIRED, filed: int | None = None
) -> Update:
    """Holds end: all whose time is over, or one otherwise. What it used counts, the rest goes back. filed: the version
    at which they were found to be filed."""
    used = change_of(outcome)
    back_down, back_up = shares(amounts.values())
    if filed is None:
        conditions: list[Condition] = [Equals((HELD, token), number(n)) for token, n in amounts.items()]
    else:
        conditions = [Absent((name, token)) for token in amounts for name in (RECENT, HELD)]
        conditions.append(_version_is(filed))
    gone = [Remove((HELD, token)) for token in amounts] if filed is None else []
    ended = dict.fromkeys(amounts, outcome)
    return _update(lane, limit, {RECENT: ended}, conditions, down=back_down + used, up=back_up - used, more=gone)


def give(giver: Gate, to: Cell, amount: int) -> Update:
    """Rights leave for another lane, if none left for it since the gate was seen."""
    cell = items.cell_name("given", to)
    was = _was(cell, giver.given.get(to))
    actions = (Add(to[1], -amount), Add(cell, amount))
    return Update(items.gate_key(giver.lane), actions, All((AtLeast(to[1], number(amount)), was)), shows=True)


def take_over(gate: Gate, giver: Cell, given: int) -> Update:
    """What another lane has given, ever, has arrived here."""
    name, got = items.cell_name("got", giver), gate.got.get(giver)
    was = _was(name, got)
    actions = (Add(giver[1], given - (got or 0)), Set(name, number(given)))
    return Update(items.gate_key(gate.lane), actions, All((Not(Absent(giver[1])), was)), shows=True)


def set_limit(gate: Gate, limit: Limit, wanted: Mapping[str, int | None]) -> Update:
    """The limit is another one, on the same sides. What it takes away must be here, as rights."""
    actions = [Set(items.BOUNDS[side], number(amount)) for side, amount in wanted.items() if amount is not None]
    taken = gate.taken_by(wanted)
    epoch = Set("epoch", number(gate.epoch + 1))
    unchanged = [Equals("epoch", number(gate.epoch))]
    down, up = -taken.get(DOWN, 0), -taken.get(UP, 0)
    return _update(gate.lane, limit, {}, unchanged, down=down, up=up, more=[*actions, epoch])


def carry_out(gate: Gate, amount: int) -> Update:
    """Rights, and as much of the ceiling, leave for the next period."""
    return _carry(gate, -amount, Set("carried", number(gate.carried + amount)))


def carry_in(gate: Gate, carried: int) -> Update:
    """What the period before has carried, ever, has arrived here."""
    return _carry(gate, carried - gate.took, Set("took", number(carried)))


def _carry(gate: Gate, more: int, cell: Action) -> Update:
    """The ceiling moves with the rights, so what is due follows from it as ever. It is another limit, so who carried
    or set one since the gate was seen is noticed."""
    ceiling = Set(items.BOUNDS[UP], number((gate.bounds[UP] or 0) + more))
    actions = (Add(UP, more), ceiling, cell, Set("epoch", number(gate.epoch + 1)))
    enough = AtLeast(UP, number(-more)) if more < 0 else Not(Absent(UP))
    return Update(items.gate_key(gate.lane), actions, All((enough, Equals("epoch", number(gate.epoch)))), shows=True)


def finish_roll(
    gate: Gate, filed: Iterable[str], holds: Iterable[str], low: str, top: str, moved: frozenset[bytes], slack_ms: int
) -> Update:
    """What was copied leaves the gate, if nothing was filed since it was seen."""
    gone = {token: gate.recent[token] for token in filed}
    total = gate.total + sum(map(change_of, gone.values()))
    count = gate.count + sum(map(counts, gone.values()))
    actions: list[Action] = [Remove((RECENT, token)) for token in gone]
    actions += [Remove((HELD, token)) for token in holds]
    actions += [Set("total", number(total)), Set("count", number(count)), Set("version", number(gate.version + 1))]
    actions += [Set("low", {"S": low}), Set("top", {"S": top}), Set("slack", number(slack_ms))]
    actions.append(Set("moved", {"BS": sorted(moved)}) if moved else Remove("moved"))
    return Update(items.gate_key(gate.lane), tuple(actions), _version_is(gate.version), shows=True)


def _open(names: Collection[str], seen: int | None) -> list[Condition]:
    conditions: list[Condition] = []
    for token in names:
        conditions += [Absent((RECENT, token)), Absent((HELD, token))]
        if seen is None:
            conditions.append(Not(Contains("moved", {"B": fingerprint(token)})))
    return [*conditions, _is_above_low(min(names)) if seen is None else _version_is(seen)]


def _is_above_low(token: str) -> Condition:
    return Not(AtLeast("low", {"S": token}))


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
    """Entries of the two maps, and rights that are moved, if the gate has them, and so is there."""
    checks = [*conditions]
    actions: list[Action] = [Set((name, token), number(n)) for name, of in entries.items() for token, n in of.items()]
    for side, change in ((DOWN, down), (UP, up)):
        if not limit.has(side):
            checks.append(Absent(side))
            continue
        checks.append(AtLeast(side, number(-change)) if change < 0 else Not(Absent(side)))
        if change:
            actions.append(Add(side, change))
    return Update(items.gate_key(lane), (*actions, *more), All(checks), shows)
