"""The gates of one counter, as a process in one Region reaches them; the making of a gate; what a process remembers.

Rule 1: a gate is asked for, and written, at the endpoint of its lane's Region alone.
Rule 2: a gate is made only where there can have been none: its lane has filed nothing, no hold either, and no copy of
another gate of the counter names it. Else it was deleted, and a new one would decide again what was decided.
Rule 3: no gate is made in a lane that has changes from before the limit. Who makes the first gate that its replica
sees, and who makes the one with the first rights, looks at all lanes of the counter there: what is not in a gate is in
no value, so the limit would hold for a part of it.
Rule 4: for a second a process remembers counters of which too little was left, instead of asking every lane again for
what none had a moment ago: a refusal may be of a moment up to a second before its call. What comes back through this
process is known at once: a change, the end of a hold, another limit. Nothing else is forgotten earlier.
Rule 5: a Region that did not answer is asked for no lane until the second is over; nothing is decided meanwhile.
Rule 6: the first gate of a period opens with the limit that its base has, read strongly in the same Region just before;
where the base has no gate, with that of the settings. A limit that is set for the base meanwhile is the next period's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ledger.checks import check_counter
from ledger.conditions import Absent
from ledger.errors import GateLost, GaveUp, InvalidInput, LedgerError, LimitMismatch, shown
from ledger.gate import items
from ledger.gate.gate import Gate, Left, name_of
from ledger.items import checkpoint_key
from ledger.lane.directory import first_delta, with_changes
from ledger.lane.tail import at
from ledger.limit import DOWN, SIDES, UP, Limit
from ledger.requests import At, Get, GetMany, Instant, Item, Program, Put, Query, Request, Result, Together, answered
from ledger.settings import Settings
from ledger.values import Lane

TRIES_MAX = 60  # how often a program looks again at a gate that others write, before it gives up
REMEMBERED_MS = 1_000
COUNTERS_MAX = 10_000


@dataclass(slots=True)
class SoldOut:
    """By counter and side: since when, how much was too much, and what was left. Of several threads, whoever comes last
    is right. A clock that steps back, or ahead, only makes it forget.
    """

    _known: dict[tuple[str, str], tuple[int, int, Left]] = field(default_factory=dict)
    _silent: dict[str, tuple[int, str]] = field(default_factory=dict)
    _held: dict[str, None] = field(default_factory=dict)
    _filed: dict[str, None] = field(default_factory=dict)

    def note(self, counter: str, side: str, need: int, began: Instant, left: Left) -> None:
        """At a moment since `began` all lanes together had less than `need`."""
        if len(self._known) >= COUNTERS_MAX:
            self._known.clear()
        self._known[counter, side] = (began.wall_ms, need, left._replace(remembered=True))

    def knows(self, counter: str, side: str, need: int, now: Instant) -> Left | None:
        """What was left a moment ago, if that was too little."""
        if (known := self._known.get((counter, side))) is None:
            return None
        since_ms, short, left = known
        return left if need >= short and _is_recent(since_ms, now) else None

    def note_silent(self, region: str, error: LedgerError, now: Instant) -> None:
        self._silent[region] = (now.wall_ms, f"a moment ago its Region did not answer: {error}")

    def silent(self, now: Instant) -> dict[str, str]:
        """The Regions that did not answer a moment ago, each with what it is known by.

        None of this very millisecond: a clock that stands still, as in tests, would remember it for ever.
        """
        known = self._silent.copy().items()
        return {region: why for region, (at_ms, why) in known if at_ms != now.wall_ms and _is_recent(at_ms, now)}

    def granted(self, token: str) -> None:
        """A hold is in its gate, which has room for it."""
        if len(self._held) >= COUNTERS_MAX:
            self._held.clear()
        self._held[token] = None

    def is_in_gate(self, counter: str, token: str) -> bool:
        """Whether a hold that ends now is probably in its gate."""
        return self._held.pop(token, ...) is None and counter not in self._filed

    def ended(self, counter: str, *, filed: bool) -> None:
        """Where a hold was when it ended."""
        if not filed:
            self._filed.pop(counter, None)
        elif len(self._filed) < COUNTERS_MAX:
            self._filed[counter] = None

    def changed(self, counter: str, change: int) -> None:
        """A change counts: what it took of one side came to the other."""
        if change:
            self.forget(counter, UP if change < 0 else DOWN)

    def forget(self, counter: str, *sides: str) -> None:
        """Some of it came back."""
        for side in sides:
            self._known.pop((counter, side), None)


def _is_recent(since_ms: int, now: Instant) -> bool:
    return 0 <= now.wall_ms - since_ms <= REMEMBERED_MS


class Earlier(NamedTuple):
    """The gates of the period before; how much of what they leave is carried at most; from when to when it is."""

    gates: Gates
    most: int
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class Gates:
    """lanes: all of the counter, those of `here` first. limit: that of the settings. here: the process's Region.

    sold_out: what the process remembers; shared by its calls. base: of a period, the lane whose gate has the limit with
    which it opens. earlier: the period before, where some of what that leaves is carried over.
    """

    lanes: tuple[Lane, ...]
    limit: Limit
    here: str
    sold_out: SoldOut = field(default_factory=SoldOut, compare=False)
    base: Lane | None = None
    earlier: Earlier | None = None

    @classmethod
    def of(cls, settings: Settings, counter: str, sold_out: SoldOut | None = None) -> Gates | None:
        """Those of a counter; None when it has no limit. Raises InvalidCounter."""
        limit = settings.limit_of(check_counter(counter))
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
        return replace(gates, base=base, earlier=Earlier(earlier, term.keep.carry, before.end_ms, before.kept_until_ms))

    @classmethod
    def limited(cls, settings: Settings, counter: str, caller: str, sold_out: SoldOut | None = None) -> Gates:
        """Those of a counter that must have a limit, for the caller. Raises InvalidInput."""
        gates = cls.of(settings, counter, sold_out)
        if gates is None:
            raise InvalidInput(
                f"{caller}: the counter {shown(counter, 80)} has no limit in "
                f"limits={shown(dict(settings.limits), 200)}."
            )
        return gates

    def bound(self, side: str, seen: Iterable[Gate]) -> int | None:
        """The floor or the ceiling: as it is set, in the gate with the first rights; without one as in the settings."""
        set_to = next((gate.bounds[side] for gate in seen if self.limit.opens(gate.lane.region, gate.lane.shard)), None)
        return set_to if set_to is not None else self.limit.floor if side == DOWN else self.limit.ceiling

    def at(self, lane: Lane, request: Request) -> Request:
        """The request at the endpoint of the lane's Region."""
        return request if lane.region == self.here else At(lane.region, request)

    def home(self, lane: Lane, program: Program[Result]) -> Program[Result]:
        """The program with each of its requests at the lane's home."""
        return program if lane.region == self.here else at(lane.region, program)

    def gate(self, lane: Lane, item: Item) -> Gate:
        """Raises DamagedItem, and LimitMismatch where the gate has other sides than the limit."""
        gate = items.gate_of(lane, item)
        if any(self.limit.has(side) != (side in gate.rights) for side in SIDES):
            raise LimitMismatch(
                f"{lane}: its gate has rights of {' and '.join(gate.rights) or 'no side'}, and these settings say "
                f"{self.limit}. Nothing was written. A process without the right limit decides nothing: correct its "
                "settings."
            )
        return gate

    def read(self, lane: Lane) -> Program[Gate]:
        """The gate, strongly; made where there is none. Raises what `create` does, DamagedItem and LimitMismatch."""
        while True:
            item: Item | None = yield self.at(lane, Get(items.gate_key(lane)))
            if item is not None:
                return self.gate(lane, item)
            yield from self.create(lane)

    def create(self, lane: Lane) -> Program[None]:
        """Raises GateLost, LimitMismatch (changes that came without a limit), DamagedItem and the TableErrors."""
        others = [other for other in self.lanes if other != lane]
        keys = GetMany((checkpoint_key(lane), *map(items.gate_key, others)))
        filed = (Query(pk, limit=1) for pk in (items.past_pk(lane), items.hold_pk(lane)))
        looks = Together((first_delta(lane), keys, *filed))
        delta, (checkpoint, *copies), *pages = answered((yield self.at(lane, looks)))
        known = [str(lane) for page in pages if page.items]
        for other, item in zip(others, copies, strict=True):
            gate = items.gate_of(other, item) if item is not None else None
            if gate is not None and name_of(lane) in gate.others:
                known.append(str(other))
        if known:
            if (yield self.at(lane, Get(items.gate_key(lane)))) is not None:
                return  # another process made it meanwhile
            raise GateLost(
                f"{lane}: its gate is gone, and {known[0]} shows that there was one. Nothing was written. Restore its "
                "items from a backup, then rebuild the counter."
            )
        is_first = all(copy is None for copy in copies) or self.limit.opens(lane.region, lane.shard)
        beside = [lane] if delta.items or checkpoint is not None else []
        if not beside and is_first and others:
            beside = yield from self.home(lane, with_changes(others))
        if beside:
            raise LimitMismatch(
                f"{beside[0]}: it has changes that no gate decided, from before the counter had a limit. Nothing was "
                "written. Count it under another name, and bring its value there with one change."
            )
        limit = (yield from self.opening()) if self.limit.opens(lane.region, lane.shard) else self.limit
        yield self.at(lane, Put(items.new_gate(lane, limit), Absent()))

    def opening(self, *, at_home: bool = True) -> Program[Limit]:
        """The limit with which the counter opens: of a period that of its base's gate, as it is set now. at_home: read
        in its Region; else what has come over of it. Raises DamagedItem, LimitMismatch and the TableErrors."""
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
        """The lane with the first rights, and the limit as it is set. There is one where the limit names a Region."""
        return next(lane for lane in self.lanes if self.limit.opens(lane.region, lane.shard))


def _here_first(settings: Settings, counter: str) -> tuple[Lane, ...]:
    return tuple(sorted(settings.lanes_of(counter), key=lambda lane: lane.region != settings.region))


def gave_up(lane: Lane) -> GaveUp:
    return GaveUp(f"{lane}: its gate changed {TRIES_MAX} times in one call. Nothing was decided. The same call again.")
