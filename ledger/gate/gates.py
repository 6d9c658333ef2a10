"""The gates of one counter, as a process in one Region reaches them; how a gate is made; what a
process remembers.

Rule 1: every read to decide, and every write, of a gate goes to the endpoint of its lane's Region.
Rule 2: a gate is made only where there was never one: its lane has filed nothing, no hold either,
and no copy of another gate of the counter names it. Else somebody deleted it, and a new one would
decide tokens again. The copies are those of the lane's own Region, read strongly. Lanes of one
Region that one call finds without a gate share one read.
Rule 3: no gate is made in a lane that has changes from before the limit. A process that makes the
first gate that its replica sees, or the one with the first rights, looks at all lanes of the
counter there: a change outside of gates is in no value, so the limit would hold for a part of it.
Rule 4: for a second a process remembers counters with too little left, instead of going to every
lane again for rights
that none had a moment ago: so a refusal may be of a moment up to a second before its call. The
process forgets earlier only when something comes back through it: a change, the end of a hold,
another limit.
Rule 5: until the second is over, a process sends a Region that did not answer no request, and
decides nothing.
Rule 6: the first gate of a period opens with the limit of its base, read strongly in the same
Region just before; where the base has no gate, with that of the settings. A limit that is set for
the base meanwhile is the next period's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ledger.core.checks import check_counter
from ledger.core.conditions import Absent
from ledger.core.errors import GateLost, GaveUp, InvalidInput, LedgerError, LimitMismatch, shown
from ledger.core.items import checkpoint_key
from ledger.core.limit import DOWN, SIDES, UP, Limit
from ledger.core.requests import (
    At,
    Get,
    GetMany,
    Instant,
    Item,
    Program,
    Put,
    Query,
    Request,
    Result,
    Together,
    answered,
    in_time,
)
from ledger.core.settings import Settings
from ledger.core.values import Lane
from ledger.gate import items
from ledger.gate.answer import Left
from ledger.gate.gate import Gate, name_of
from ledger.lane.directory import first_delta, with_changes
from ledger.lane.tail import at

TRIES_MAX = 60  # how often a program looks again at a gate that others write, before it gives up
REMEMBERED_MS = 1_000
COUNTERS_MAX = 10_000


@dataclass(slots=True)
class SoldOut:
    """What a process remembers, by counter and side: since when, which amount is too much, and how
    much was left. The last of several threads wins. Both clocks age it: the wall clock may step
    back, and the other one may stop while the process sleeps. So a wrong clock only makes it
    forget.
    """

    _known: dict[tuple[str, str], tuple[Instant, int, Left]] = field(default_factory=dict)
    _silent: dict[str, tuple[Instant, str]] = field(default_factory=dict)
    _held: dict[str, None] = field(default_factory=dict)
    _filed: dict[str, None] = field(default_factory=dict)

    def note(self, counter: str, side: str, need: int, began: Instant, left: Left) -> None:
        """Remember that since `began` all lanes together had less than `need`."""
        if len(self._known) >= COUNTERS_MAX:
            self._known.clear()
        self._known[counter, side] = (began, need, left._replace(remembered=True))

    def knows(self, counter: str, side: str, need: int, now: Instant) -> Left | None:
        """How much was left a moment ago, if that was too little."""
        if (known := self._known.get((counter, side))) is None:
            return None
        began, short, left = known
        return left.at(now) if need >= short and in_time(began, now, REMEMBERED_MS) else None

    def note_silent(self, region: str, error: LedgerError, now: Instant) -> None:
        self._silent[region] = (now, f"a moment ago its Region did not answer: {error}")

    def silent(self, now: Instant) -> dict[str, str]:
        """The Regions that did not answer a moment ago, each with the error.

        It leaves out this very millisecond: a clock that stands still, as in tests, would remember
        it for ever.
        """
        return {
            region: why
            for region, (noted, why) in self._silent.copy().items()
            if noted.wall_ms != now.wall_ms and in_time(noted, now, REMEMBERED_MS)
        }

    def granted(self, token: str) -> None:
        """Note that a hold is in its gate, which has room for it."""
        if len(self._held) >= COUNTERS_MAX:
            self._held.clear()
        self._held[token] = None

    def is_in_gate(self, counter: str, token: str) -> bool:
        """Whether a hold that ends now is probably still in its gate."""
        return self._held.pop(token, ...) is None and counter not in self._filed

    def ended(self, counter: str, *, filed: bool) -> None:
        """Note where a hold was when it ended: filed, or in its gate."""
        if not filed:
            self._filed.pop(counter, None)
        elif len(self._filed) < COUNTERS_MAX:
            self._filed[counter] = None

    def changed(self, counter: str, change: int) -> None:
        """Note that a change counts: the rights that it took of one side came to the other."""
        if change:
            self.forget(counter, UP if change < 0 else DOWN)

    def forget(self, counter: str, *sides: str) -> None:
        """Forget sides where some rights came back."""
        for side in sides:
            self._known.pop((counter, side), None)


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
        counter = check_counter(counter)
        limit = settings.limit_of(counter)
        if limit is None:
            return None
        here, sold_out = settings.region, sold_out or SoldOut()
        gates = cls(_here_first(settings, counter), limit, here, sold_out)
        term = settings.term_of(counter)
        if term is None or limit.region is None:
            return gates
        base = Lane(limit.region, 0, term.base)
        if not term.keep.carry:
            return replace(gates, base=base)
        before = term.before
        earlier = replace(gates, lanes=_here_first(settings, before.name))
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
            raise InvalidInput(
                f"{caller}: the counter {shown(counter, 80)} has no limit. Nothing was written. "
                f"Give it one in limits={shown(dict(settings.limits), 200)}."
            )
        return gates

    def bound(self, side: str, seen: Iterable[Gate]) -> int | None:
        """The floor or the ceiling: as the gate with the first rights has it; without that gate
        as in the settings.
        """
        set_to = next(
            (
                gate.bounds[side]
                for gate in seen
                if self.limit.opens(gate.lane.region, gate.lane.shard)
            ),
            None,
        )
        return (
            set_to
            if set_to is not None
            else self.limit.floor
            if side == DOWN
            else self.limit.ceiling
        )

    def at(self, lane: Lane, request: Request) -> Request:
        """The request at the endpoint of the lane's Region."""
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
            raise LimitMismatch(
                f"{lane}: its gate has rights of {' and '.join(gate.rights) or 'no side'}, and "
                f"these settings say {self.limit}. Nothing was written. Correct this process's "
                "settings: without the right limit it decides nothing."
            )
        return gate

    def read(self, lane: Lane, views: dict[str, View] | None = None) -> Program[Gate]:
        """The gate, read strongly, and made where there is none.

        Raises what `create` raises, and what `gate` does.
        """
        while True:
            item: Item | None = yield self.at(lane, Get(items.gate_key(lane)))
            if item is not None:
                return self.gate(lane, item)
            yield from self.create(lane, views)
            views = None  # there was a gate now: if it is gone, an older view may not show that

    def create(self, lane: Lane, views: dict[str, View] | None = None) -> Program[None]:
        """Make a gate. views: by Region, what this call saw of the counter's gates before; it adds
        to them.
        Raises GateLost, LimitMismatch (changes without a limit), DamagedItem and the TableErrors.
        """
        views = {} if views is None else views
        others = [other for other in self.lanes if other != lane]
        view = views.get(lane.region)
        unread = others if view is None else []
        keys = GetMany((checkpoint_key(lane), *map(items.gate_key, unread)))
        filed = (Query(pk, limit=1) for pk in (items.past_pk(lane), items.hold_pk(lane)))
        looks = Together((first_delta(lane), keys, *filed))
        delta, (checkpoint, *copies), *pages = answered((yield self.at(lane, looks)))
        if view is None:
            view = views[lane.region] = _view_of(unread, copies)
        known = [str(lane) for page in pages if page.items]
        if name_of(lane) in view.named:
            known.append(view.named[name_of(lane)])
        if known:
            if (yield self.at(lane, Get(items.gate_key(lane)))) is not None:
                return  # another process made it meanwhile
            raise GateLost(
                f"{lane}: its gate is gone, and {known[0]} shows that there was one. Nothing was "
                "written. Restore its items from a backup, then rebuild the counter."
            )
        is_first = not view.is_open or self.limit.opens(lane.region, lane.shard)
        beside = [lane] if delta.items or checkpoint is not None else []
        if not beside and is_first and others:
            beside = yield from self.home(lane, with_changes(others))
        if beside:
            raise LimitMismatch(
                f"{beside[0]}: it has changes that no gate decided, from before the counter had a "
                "limit. Nothing was written. Count under another name, and bring the value there "
                "with one change."
            )
        limit = (
            (yield from self.opening()) if self.limit.opens(lane.region, lane.shard) else self.limit
        )
        yield self.at(lane, Put(items.new_gate(lane, limit), Absent()))
        view.is_open = True  # this Region shows it: the next lane here is not the first

    def opening(self, *, at_home: bool = True) -> Program[Limit]:
        """The limit with which the counter opens; for a period that of its base's gate, as it is
        set now. at_home: read it in its Region; else the copy here. Raises DamagedItem,
        LimitMismatch and the TableErrors."""
        if self.base is None:
            return self.limit
        get = Get(items.gate_key(self.base))
        item: Item | None = yield self.at(self.base, get) if at_home else get
        if item is None:
            return self.limit
        bounds = self.gate(self.base, item).bounds
        return replace(self.limit, floor=bounds[DOWN], ceiling=bounds[UP])

    @property
    def first(self) -> Lane:
        """The lane with the first rights, and the limit as it is set.

        The limit must name a Region.
        """
        return next(lane for lane in self.lanes if self.limit.opens(lane.region, lane.shard))


def _here_first(settings: Settings, counter: str) -> tuple[Lane, ...]:
    return tuple(
        sorted(settings.lanes_of(counter), key=lambda lane: lane.region != settings.region)
    )


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
