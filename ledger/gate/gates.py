"""The gates of one counter, as a process in one Region reaches them, and how a gate is made.

Rule 1: every read to decide, and every write, of a gate goes to the endpoint of its lane's Region.
Rule 2: a gate is made only where there was never one. Else somebody deleted it, and a new one would
decide tokens again.
Rule 3: no gate is made in a lane that has changes from before the limit. A change outside of gates
is in no value, so the limit would hold for a part of the counter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ledger.core.actions import updated
from ledger.core.conditions import Absent
from ledger.core.errors import GateLost, GaveUp, InvalidInput, LimitMismatch, shown
from ledger.core.items import checkpoint_key
from ledger.core.limit import DOWN, SIDES, UP, Limit
from ledger.core.plan import Plan
from ledger.core.requests import (
    At,
    Get,
    GetMany,
    Item,
    Program,
    Put,
    Query,
    Request,
    Resent,
    Result,
    Together,
    Update,
    Written,
    holds,
)
from ledger.core.running import answered
from ledger.core.settings import Settings, plan_of
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.gate import Gate, name_of
from ledger.gate.sold_out import SoldOut
from ledger.lane.directory import first_delta, with_changes
from ledger.lane.tail import at

TRIES_MAX = 60  # how often a program looks again at a gate that others write, before it gives up


class Earlier(NamedTuple):
    """The gates of the period before; how much of what they leave is carried at most; from when
    to when.
    """

    gates: Gates
    most: int
    since_ms: int
    until_ms: int


@dataclass(slots=True)
class View:
    """What the gates of a counter show in one Region: by lane, a gate that names it; and whether
    there is any gate.
    """

    named: dict[str, str] = field(default_factory=dict)
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Gates:
    """lanes: all of the counter, those of `here` first. limit: of the settings. here: the process's
    Region.

    sold_out: what the process remembers; its calls share it. base: for a period, the lane whose
    gate has the limit with which it opens. earlier: the period before, if some of what that leaves
    is carried over.
    """

    lanes: tuple[Lane, ...]
    limit: Limit
    here: str
    sold_out: SoldOut = field(default_factory=SoldOut, compare=False)
    base: Lane | None = None
    earlier: Earlier | None = None

    @classmethod
    def of(cls, settings: Settings, counter: str, sold_out: SoldOut | None = None) -> Gates | None:
        """The gates of a counter; None when it has no limit. Raises InvalidCounter."""
        plan = settings.plan(counter)
        limit, term, here = plan.limit, plan.term, settings.region
        if limit is None:
            return None
        gates = cls(_here_first(plan, here), limit, here, sold_out or SoldOut())
        if term is None or limit.region is None:
            return gates
        base = Lane(limit.region, 0, term.base)
        if not term.keep.carry:
            return replace(gates, base=base)
        before = term.before
        earlier = replace(gates, lanes=_here_first(plan_of(settings, before.name), here))
        return replace(
            gates,
            base=base,
            earlier=Earlier(earlier, term.keep.carry, before.end_ms, before.kept_until_ms),
        )

    @classmethod
    def limited(
        cls, settings: Settings, counter: str, caller: str, sold_out: SoldOut | None = None
    ) -> Gates:
        """The gates of a counter that must have a limit.

        caller: whom the message names. Raises InvalidInput.
        """
        gates = cls.of(settings, counter, sold_out)
        if gates is None:
            prefixes = [*settings.limits]
            have = f"the prefixes {shown(prefixes, 200)}" if prefixes else "no prefix yet"
            raise InvalidInput(
                f"{caller}: the counter {shown(counter, 80)} has no limit. Nothing was written. "
                "Give it one in limits= of the Settings (LEDGER_LIMITS), by a prefix of its name; "
                f"they have {have}."
            )
        return gates

    def bound(self, side: str, seen: Iterable[Gate]) -> int | None:
        """The floor or the ceiling: as the gate with the first rights has it; without that gate
        as in the settings.
        """
        for gate in seen:
            set_to = gate.bounds[side]
            if self.limit.opens(gate.lane.region, gate.lane.shard) and set_to is not None:
                return set_to
        return self.limit.floor if side == DOWN else self.limit.ceiling

    def at(self, lane: Lane, request: Request) -> Request:
        """The request at the endpoint of the lane's Region (Rule 1)."""
        return request if lane.region == self.here else At(lane.region, request)

    def home(self, lane: Lane, program: Program[Result]) -> Program[Result]:
        """The program, with each of its requests at the lane's home."""
        return program if lane.region == self.here else at(lane.region, program)

    def gate(self, lane: Lane, item: Item) -> Gate:
        """The gate in an item.

        Raises DamagedItem, and LimitMismatch where the gate has other sides than the limit.
        """
        gate = items.gate_of(lane, item)
        if any(self.limit.has(side) != (side in gate.rights) for side in SIDES):
            sides = " and ".join(
                f"a {name}" for side, name in items.BOUNDS.items() if side in gate.rights
            )
            raise LimitMismatch(
                f"{lane}: its gate has rights of {sides or 'no side'}, and these "
                f"settings say {self.limit}. Nothing was written. Correct this process's settings: "
                "without the right limit it decides nothing."
            )
        return gate

    def read(self, lane: Lane, views: dict[str, View] | None = None) -> Program[Gate]:
        """The gate, read strongly, and made where there is none.

        Raises what `create` raises, and what `gate` does.
        """
        while True:
            item: Item | None = yield self.at(lane, Get(items.gate_key(lane)))
            if item is None:
                made = yield from self.create(lane, views)
                item = made if isinstance(made, dict) else None
            if item:  # a Put that met a gate may be told nothing of it
                return self.gate(lane, item)
            views = None  # there was a gate now: if it is gone, an older view may not show that

    def create(
        self, lane: Lane, views: dict[str, View] | None = None, first: Update | None = None
    ) -> Program[Item | Written | None]:
        """Make a gate. Raises GateLost, LimitMismatch (changes without a limit), DamagedItem and
        the TableErrors.

        views: by Region, what this call saw of the counter's gates before; it adds to them, so that
        lanes of one Region that one call finds without a gate share one read. first: an Update that
        found no gate. If its condition holds for a new gate, the gate is made as it leaves it, so
        one Put makes the gate and decides the token.

        The answer is that of `first` if it came right after: Written, or the gate that refuses it
        (without `first`, the gate). None: another process made the gate.
        """
        views = {} if views is None else views
        limit = yield from self._opening(lane, views)
        if limit is None:
            return None
        gate = new = items.new_gate(lane, limit)
        if first is not None and holds(first, new):
            gate = updated(new, first.actions)
        # Rule 4: the Put has the condition that there is no gate, so sent twice it takes effect
        # once.
        met: Item | None = yield self.at(lane, Put(gate, Absent()))
        views[lane.region].is_open = True  # the next lane here is not the first
        if met is None:
            return new if gate is new else Written(gate)
        return Resent(met) if not met or self._may_be_of(lane, gate, met) else None

    def _may_be_of(self, lane: Lane, put: Item, met: Item) -> bool:
        """Whether the gate that a Put found may come from an earlier attempt at that Put: it knows
        what that decided, or has filed something since.
        """
        ours, there = self.gate(lane, put), self.gate(lane, met)
        decided = {*ours.recent, *ours.held}
        return there.version > 0 or not decided.isdisjoint((*there.recent, *there.held))

    def _opening(self, lane: Lane, views: dict[str, View]) -> Program[Limit | None]:
        """The limit with which a gate opens. None: it is there by now. Raises as `create`."""
        # All is read in the lane's own Region, strongly: the lane's changes, what it filed, and the
        # copies of the counter's other gates there.
        others = [other for other in self.lanes if other != lane]
        view = views.get(lane.region)
        unread = others if view is None else []
        # Rule 3: whoever makes the gate with the first rights, or the first one that this Region
        # sees, looks at all lanes of the counter here.
        opens = self.limit.opens(lane.region, lane.shard)
        looked = [lane, *others] if opens else [lane]
        # A period's base has its gate in the Region of the first rights, too.
        base = [self.base] if opens and self.base is not None else []
        keys = (*map(checkpoint_key, looked), *map(items.gate_key, (*unread, *base)))
        filed = (Query(pk, limit=1) for pk in (items.past_pk(lane), items.hold_pk(lane)))
        looks = Together((*map(first_delta, looked), GetMany(keys), *filed))
        *deltas, found, past, notes = answered((yield self.at(lane, looks)))
        if view is None:
            copies = found[len(looked) : len(looked) + len(unread)]
            view = views[lane.region] = _view_of(unread, copies)
        # Rule 2: there was a gate if the lane filed something, or if a copy of another gate names
        # it.
        known = [str(lane) for page in (past, notes) if page.items]
        if name_of(lane) in view.named:
            known.append(view.named[name_of(lane)])
        if known:
            if (yield self.at(lane, Get(items.gate_key(lane)))) is not None:
                return None  # another process made it meanwhile
            raise GateLost(
                f"{lane}: its gate is gone, and {known[0]} shows that there was one. Nothing was "
                "written. Restore its items from a backup, then rebuild the counter."
            )
        beside = [
            each
            for each, checkpoint, delta in zip(looked, found[: len(looked)], deltas, strict=True)
            if delta.items or checkpoint is not None
        ]
        if not beside and not opens and not view.is_open and others:
            beside = yield from self.home(lane, with_changes(others))
        if beside:
            raise LimitMismatch(
                f"{beside[0]}: it has changes that no gate decided, from before the counter had a "
                "limit. Nothing was written. Use another name for the limited counter, and add the "
                "value there as one change."
            )
        return self._as_set(found[-1]) if base else self.limit

    def opening(self) -> Program[Limit]:
        """The limit with which the counter opens, as this Region shows it. Raises DamagedItem,
        LimitMismatch and the TableErrors.
        """
        if self.base is None:
            return self.limit
        return self._as_set((yield Get(items.gate_key(self.base))))

    def _as_set(self, base: Item | None) -> Limit:
        """The limit in the gate of a period's base, with which the period opens; where the base has
        no gate, that of the settings. A limit that is set for the base later is the next period's.
        """
        if self.base is None or base is None:
            return self.limit
        bounds = self.gate(self.base, base).bounds
        return replace(self.limit, floor=bounds[DOWN], ceiling=bounds[UP])

    @property
    def first(self) -> Lane:
        """The lane with the first rights, and the limit as it is set.

        The limit must name a Region.
        """
        return next(lane for lane in self.lanes if self.limit.opens(lane.region, lane.shard))


def _here_first(plan: Plan, here: str) -> tuple[Lane, ...]:
    return tuple(sorted(plan.lanes(), key=lambda lane: lane.region != here))


def _view_of(lanes: Iterable[Lane], copies: Iterable[Item | None]) -> View:
    view = View()
    for lane, item in zip(lanes, copies, strict=True):
        if item is not None:
            view.is_open = True
            for name in items.gate_of(lane, item).others:
                view.named.setdefault(name, str(lane))
    return view


def gave_up(lane: Lane) -> GaveUp:
    return GaveUp(
        f"{lane}: its gate changed {TRIES_MAX} times in one call. Nothing was decided. Call again."
    )
