"""Histories of limited counters: sellers, buyers of holds and readers at gates, and the judge who watches every write.

Rule 1: the judge sees each write of a gate at its home, before any replication, and knows nothing of how a gate works
but its attributes: a token is decided once, for ever; no limit is passed, holds counted, at any write; rights are
neither lost nor made.
Rule 2: an answer is what was decided, and a refusal had a moment during its call in which there was too little; or
lanes had, each at a moment of its own.
Rule 3: at the end, when everything has arrived, each is asked again and answered the same; then everything is sold from
any Region, and not one more.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lab.histories.cast import LATE, LONG, SHORT, rest
from lab.histories.history import REGIONS, STEPS_MAX, entrance, finish, step
from ledger import tokens
from ledger.errors import LedgerError, LimitReached
from ledger.gate import items
from ledger.gate.audit import audit
from ledger.gate.bounds import set_limit
from ledger.gate.decide import Decision, add, hold
from ledger.gate.end import end
from ledger.gate.gates import Gates
from ledger.gate.group import add_group
from ledger.gate.limits import (
    DOWN,
    EXPIRED,
    REFUSED,
    RELEASED,
    SIDES,
    UP,
    Filing,
    Gate,
    Limit,
    change_of,
    hold_token,
    until_ms,
)
from ledger.gate.look_up import Known
from ledger.gate.standing import outcomes, standing
from ledger.requests import Item, Key, Now
from ledger.values import Delta, Lane
from simulator.choices import Choices
from simulator.faults import Faults, mix
from simulator.process import Log, Move, Process, Script
from simulator.world import World

COUNTER = "g"
TRIES = 12
STEPS_MS = (1, 10, 40, 400)
YEARS_MS = 500 * 86_400_000
"""By then every hold is over."""

LIMITS = (
    Limit(floor=0),
    Limit(ceiling=9, region=REGIONS[0]),
    Limit(floor=0, ceiling=9, region=REGIONS[1]),
    Limit(floor=-6, region=REGIONS[0]),
)


class WatchedWorld(World):
    """A world that tells of each write in its home Region."""

    watch: Callable[[str, Key, Item | None], None] = staticmethod(lambda region, key, item: None)

    def _write(self, region: str, key: Key, item: Item | None) -> None:
        super()._write(region, key, item)
        self.watch(region, key, item)


@dataclass(slots=True)
class Asked:
    """A change or a hold that was asked for. outcome: what a caller was told last, if it was decided."""

    delta: Delta
    is_hold: bool = False
    outcome: int | None = None


@dataclass(frozen=True, slots=True)
class Available:
    """What can be taken from some step on. over: (since when, how much) of the holds whose time is over."""

    step: int
    down: int
    up: int
    over: tuple[tuple[int, int], ...]

    def of(self, amount: int, since: int) -> int:
        """Of that side; a hold that is over is free for who began after it was granted."""
        free = sum(abs(n) for granted, n in self.over if granted < since and n * amount > 0)
        return free + (self.down if amount < 0 else self.up)


@dataclass
class Judge:
    """What the gates really hold, from their writes alone."""

    world: WatchedWorld
    lanes: tuple[Lane, ...]
    limit: Limit
    gates: dict[Lane, Gate] = field(default_factory=dict)
    decided: dict[tuple[Lane, str], int] = field(default_factory=dict)
    open: dict[tuple[Lane, str], int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    granted: dict[tuple[Lane, str], int] = field(default_factory=dict)
    """At which step each hold that is open was granted."""
    available: list[Available] = field(default_factory=list)
    owns: dict[tuple[Lane, str], list[tuple[int, int]]] = field(default_factory=dict)
    """What each lane owned of a side, from which step on."""
    writes: list[tuple[int, Key, Item | None]] = field(default_factory=list)
    """At which step what was written, at home."""
    owed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SIDES, 0))
    """How far beyond its limit the value may be, by side: because of a restore alone."""

    def see(self, region: str, key: Key, item: Item | None) -> None:
        kind, _, text = key.pk.partition("#")
        if kind not in ("gate", "past", "hold"):
            return
        lane = Lane.parse(text)
        if region != lane.region:
            self.wrong.append(f"{key} is written in {region}")
        self.writes.append((self.world.step, key, item))
        if kind == "gate":
            if item is None:
                self.wrong.append(f"{key} is deleted")
                return
            after = items.gate_of(lane, item)
            self._compare(lane, self.gates.get(lane), after)
            self.gates[lane] = after
            self._limits(lane)

    def _compare(self, lane: Lane, before: Gate | None, after: Gate) -> None:
        was, held = (before.recent, before.held) if before else ({}, {})
        for token, outcome in after.recent.items():
            if token in was:
                if was[token] != outcome:
                    self.wrong.append(f"the outcome of {token} changes")
                continue
            if (lane, token) in self.decided:
                self.wrong.append(f"{token} is decided twice: {self.decided[lane, token]}, {outcome}")
            if (lane, token) in self.open and token not in held and self._noted(lane, token) is None:
                self.wrong.append(f"{token} ends and was nowhere")
            self.decided[lane, token] = outcome
            self.open.pop((lane, token), None)
        for token, amount in after.held.items():
            if token not in held:
                if (lane, token) in self.decided or (lane, token) in self.open:
                    self.wrong.append(f"the hold {token} is granted twice")
                self.open[lane, token] = amount
                self.granted[lane, token] = self.world.step
        for token in held:
            left = token not in after.held and token not in after.recent and (lane, token) in self.open
            if left and self._noted(lane, token) is None:
                self.wrong.append(f"the hold {token} is lost")

    def _noted(self, lane: Lane, token: str) -> Item | None:
        return self.world.replicas[lane.region].item(items.hold_key(lane, token))

    def _limits(self, lane: Lane) -> None:
        value = sum(map(change_of, self.decided.values()))
        held = list(self.open.values())
        low, high = value + sum(n for n in held if n < 0), value + sum(n for n in held if n > 0)
        floor, ceiling = self.bounds
        beyond = dict(zip(SIDES, ((floor or 0) - low, high - (ceiling or 0)), strict=True))
        if any(self.limit.has(side) and beyond[side] > self.owed[side] for side in SIDES):
            self.wrong.append(f"{low} to {high} is outside {self.bounds}")
        for side, left in ((DOWN, low - (floor or 0)), (UP, (ceiling or 0) - high)):
            if not self.limit.has(side):
                continue
            own = sum(self.own(each, side) for each in self.lanes)
            if own != left:
                self.wrong.append(f"{lane}: rights {side} are {own}, and should be {left}")
            self.owns.setdefault((lane, side), []).append((self.world.step, self.own(lane, side)))
            if any(gate.rights[side] < -self.owed[side] for gate in self.gates.values()):
                self.wrong.append(f"{lane}: rights {side} below zero")
        over = [(self.granted[key], n) for key, n in self.open.items() if until_ms(key[1]) <= self.world.now_ms]
        self.available.append(Available(self.world.step, low - (floor or 0), (ceiling or 0) - high, tuple(over)))

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """The floor and the ceiling as they stand."""
        for lane, gate in self.gates.items():
            if self.limit.opens(lane):
                return gate.bounds[DOWN], gate.bounds[UP]
        return self.limit.floor, self.limit.ceiling

    def own(self, lane: Lane, side: str) -> int:
        if lane in self.gates:
            return self.gates[lane].own(side)
        return self.limit.opening(side) if self.limit.opens(lane) else 0

    def was_short_in_parts(self, amount: int, since: int) -> bool:
        """Whether the lanes, each at its own moment since that step, had too little: rights grew in one while they were
        taken in another."""
        side = DOWN if amount < 0 else UP
        least = 0
        for lane in self.lanes:
            owns = self.owns.get((lane, side), [])
            first = self.limit.opening(side) if self.limit.opens(lane) else 0
            before = [own for step, own in owns if step < since][-1:] or [first]
            least += min([*before, *(own for step, own in owns if step >= since)])
        return least < abs(amount)

    def was_short(self, amount: int, since: int) -> bool:
        """Whether there was a moment since that step at which so much could not be taken."""
        before = [each for each in self.available if each.step < since][-1:]
        opening = Available(0, self.limit.opening(DOWN), self.limit.opening(UP), ())
        during = [*(before or [opening]), *(each for each in self.available if each.step >= since)]
        return min(each.of(amount, since) for each in during) < abs(amount)


@dataclass(slots=True)
class Played:
    violations: list[str]
    steps: int
    decided: int
    faults: Faults
    counts: dict[str, int]


def play(
    choices: Choices,
    faults: Faults | None = None,
    log: Log | None = None,
    then: Callable[["Table", int, int], list[str]] | None = None,
) -> Played:
    """Play one history of a limited counter and judge it. then: what follows when all is right, told the step and the
    time at which everybody was done.
    """
    faults = mix(choices) if faults is None else faults
    regions = REGIONS[: 2 + (choices.pick(3) == 2)]
    step_ms = STEPS_MS[choices.pick(len(STEPS_MS))]
    faults = replace(faults, skew_ms=faults.skew_ms * step_ms)
    world = WatchedWorld(regions, choices, page_size=1 + choices.pick(3), lag_steps=faults.lag_steps)
    world.step_ms = step_ms
    world.now_ms = 10_000_000
    limit = LIMITS[choices.pick(len(LIMITS))]
    shards = 1 + (choices.pick(3) == 2)
    lanes = tuple(Lane(region, shard, COUNTER) for region in regions for shard in range(shards))
    filing = Filing(
        enough=(1, 2, 4, 16)[choices.pick(4)],
        beside=choices.pick(3),
        draw=1 + choices.pick(3),
        holds_kept=choices.pick(4),
        holds_left=choices.pick(2),
        slack_ms=(0, 10, 100, 3_000)[choices.pick(4)] * step_ms,
        moved_max=(3, 1_000)[choices.pick(2)],
    )
    judge = Judge(world, lanes, limit)
    world.watch = judge.see
    asked: list[Asked] = []
    wrong: list[str] = []
    processes: list[Process] = []

    enter = entrance(processes, world, faults, log)

    def gates_in(region: str) -> Gates:
        own = [lane for lane in lanes if lane.region == region]
        return Gates((*own, *(lane for lane in lanes if lane.region != region)), limit, region, filing)

    table = Table(world, choices, gates_in, regions, shards, asked, wrong, judge)
    for number in range(4 + choices.pick(9)):
        region = regions[choices.pick(len(regions))]
        pace = (LONG, LONG, SHORT, LATE)[choices.pick(4)]
        kind = choices.pick(5)
        if kind < 3:
            enter(f"seller {number}", region, table.seller(number, region, pace))
        elif kind == 3:
            enter(f"buyer {number}", region, table.buyer(number, region, pace))
        else:
            enter(f"group {number}", region, table.group(number, region, pace))
    for region in regions:
        enter(f"reader {region}", region, table.reader(region))
    if limit.region is not None and choices.pick(3) == 2:
        for twin in range(1 + choices.pick(2)):
            table.is_steady = False
            region = regions[choices.pick(len(regions))]
            enter(f"operator {twin}", region, table.operator(region))
    for _ in range(STEPS_MAX):
        if not step(world, processes, faults, log):
            break
    violations = [*judge.wrong, *wrong]
    if not violations:
        ended = world.step, world.now_ms
        try:
            violations = table.at_the_end()
            if then is not None and not violations:
                violations = then(table, *ended)
        except LedgerError as error:  # with no fault left, nothing may fail
            violations = [f"at the end: {type(error).__name__}: {error}"]
    return Played(violations, world.step, len(judge.decided), faults, table.counts)


@dataclass
class Table:
    """What the processes of a history share."""

    world: WatchedWorld
    choices: Choices
    gates_in: Callable[[str], Gates]
    regions: Sequence[str]
    shards: int
    asked: list[Asked]
    wrong: list[str]
    judge: Judge
    counts: dict[str, int] = field(default_factory=dict)
    is_steady: bool = True
    """Whether nobody sets another limit."""

    def tell(self, what: str, times: int = 1) -> None:
        """It happened."""
        self.counts[what] = self.counts.get(what, 0) + times

    def _lane(self, token: str, region: str) -> Lane:
        return Lane(region, tokens.draw(token, self.shards), COUNTER)

    def _ask(self, number: str, region: str, wall_ms: int, length_ms: int | None = None) -> Asked:
        late = (0, 0, 0, 300, 1_000, 20_000)[self.choices.pick(6)] * self.world.step_ms
        time_ms = max(0, wall_ms - (self.choices.pick(late) if late else 0))
        if length_ms is None:
            token = tokens.keyed(COUNTER, number, time_ms)
        else:
            token = hold_token(COUNTER, number, time_ms, length_ms)
        amount = (-1, -2, -3, 1, 2, 4)[self.choices.pick(6)]
        found = Asked(Delta(self._lane(token, region), token, amount), is_hold=length_ms is not None)
        self.asked.append(found)
        return found

    def _told(self, one: Asked, decision: Decision, since: int) -> None:
        """An answer came."""
        known = decision.known
        name = (
            "held"
            if known.held is not None
            else {REFUSED: "refused", RELEASED: "released", EXPIRED: "expired"}.get(known.outcome or 0, "counted")
        )
        self.tell(name)
        lane, token = one.delta.lane, one.delta.token
        if known.held is not None:
            if known.held != one.delta.change:
                self.wrong.append(f"{token} is told to hold {known.held}")
            return
        outcome = known.outcome
        if self.judge.decided.get((lane, token)) != outcome:
            self.wrong.append(f"{token} is told to be {outcome}, and is {self.judge.decided.get((lane, token))}")
        if outcome == REFUSED and not decision.before and not self.judge.was_short(one.delta.change, since):
            self.tell("refused while rights grew")
            if not self.judge.was_short_in_parts(one.delta.change, since):
                self.wrong.append(f"{token} of {one.delta.change} was refused, and there always was enough")
        one.outcome = outcome

    def seller(self, number: int, region: str, pace: Sequence[int]) -> Callable[[], Script]:
        mine: list[Asked] = []

        def script() -> Script:
            yield rest(self.choices, pace)
            for n in range(1 + self.choices.pick(8)):
                if n >= len(mine):
                    if self.asked and self.choices.pick(6) == 5:  # a twin of somebody's message
                        mine.append(self.asked[self.choices.pick(len(self.asked))])
                    else:
                        mine.append(self._ask(f"{number}/{n}", region, (yield Now()).wall_ms))
                yield from self._send(mine[n], region)
                yield rest(self.choices, SHORT)

        return script

    def _send(self, one: Asked, region: str) -> Generator[Any, Any, bool]:
        """Until it has an answer, from wherever the message comes by."""
        here = region
        for _ in range(TRIES):
            since = self.world.step
            try:
                program = (hold if one.is_hold else add)(self.gates_in(here), one.delta)
                decision = yield from program
            except LedgerError:
                if self.choices.pick(3) == 2:
                    here = self.regions[self.choices.pick(len(self.regions))]
                    yield Move(here)
                yield rest(self.choices, SHORT)
                continue
            self._told(one, decision, since)
            yield Move(region)
            return True
        yield Move(region)
        return False

    def buyer(self, number: int, region: str, pace: Sequence[int]) -> Callable[[], Script]:
        mine: list[Asked] = []
        ends: list[int | None] = []

        def script() -> Script:
            yield rest(self.choices, pace)
            for n in range(1 + self.choices.pick(12)):
                if n >= len(mine):
                    length_ms = (50, 300, 2_000, 10**6)[self.choices.pick(4)] * self.world.step_ms
                    mine.append(self._ask(f"h{number}/{n}", region, (yield Now()).wall_ms, length_ms))
                    amount = mine[n].delta.change
                    part = int(amount * self.choices.pick(3) / 2)
                    ends.append((amount, amount, part, RELEASED, None)[self.choices.pick(5)])
                one = mine[n]
                if not (yield from self._send(one, region)) or one.outcome is not None:
                    continue
                yield rest(self.choices, (*SHORT, 300) if self.choices.pick(3) else (0,))
                how = ends[n]
                if how is None:
                    continue
                for _ in range(TRIES):
                    try:
                        decision = yield from end(self.gates_in(region), one.delta, how)
                    except LedgerError:
                        yield rest(self.choices, SHORT)
                        continue
                    self._told(one, decision, self.world.step)
                    if not decision.before and decision.known.outcome != how:
                        self.wrong.append(f"{one.delta.token} ended with {decision.known.outcome}, not {how}")
                    break

        return script

    def group(self, number: int, region: str, pace: Sequence[int]) -> Callable[[], Script]:
        mine: dict[str, Asked] = {}

        def script() -> Script:
            yield rest(self.choices, pace)
            size = 2 + self.choices.pick(5)
            while len(mine) < size:
                if self.asked and self.choices.pick(6) == 5:
                    one = self.asked[self.choices.pick(len(self.asked))]
                    if one.is_hold:
                        continue
                else:
                    one = self._ask(f"g{number}/{len(mine)}", region, (yield Now()).wall_ms)
                mine[one.delta.token] = one
            for _ in range(TRIES):
                since = self.world.step
                failed = False
                for lane in dict.fromkeys(one.delta.lane for one in mine.values()):
                    some = {t: one.delta.change for t, one in mine.items() if one.delta.lane == lane}
                    told = yield from add_group(self.gates_in(region), lane, some)
                    for token, decision in told.items():
                        if isinstance(decision, LedgerError):
                            failed = True
                        else:
                            self._told(mine[token], decision, since)
                if not failed and self.choices.pick(3):
                    return
                yield rest(self.choices, SHORT)

        return script

    def operator(self, region: str) -> Callable[[], Script]:
        """Sets other limits now and then."""

        def script() -> Script:
            for _ in range(1 + self.choices.pick(3)):
                yield rest(self.choices, LONG)
                gates = self.gates_in(region)
                tighter = self.choices.pick(7) - 2
                floor = None if gates.limit.floor is None else -6 + tighter
                ceiling = None if gates.limit.ceiling is None else max(9 - tighter, floor or 0)
                for _ in range(TRIES):
                    try:
                        yield from set_limit(gates, floor, ceiling)
                        break
                    except LimitReached:
                        break
                    except LedgerError:
                        yield rest(self.choices, SHORT)

        return script

    def reader(self, region: str) -> Callable[[], Script]:
        def script() -> Script:
            for _ in range(4 + self.choices.pick(6)):
                yield rest(self.choices, LONG)
                gates = self.gates_in(region)
                try:
                    seen = yield from standing(gates, consistent=bool(self.choices.pick(2)))
                except LedgerError:
                    continue
                low, high = gates.limit.floor, gates.limit.ceiling
                outside = (low is not None and seen.value < low) or (high is not None and seen.value > high)
                if outside and seen.is_closed and self.is_steady:
                    self.wrong.append(f"a closed read in {region} is {seen.value}, outside {gates.limit}")
                if outside:
                    self.tell("open reads outside")
                lane = gates.lanes[self.choices.pick(len(gates.lanes))]
                try:
                    listed = yield from outcomes(lane, consistent=bool(self.choices.pick(2)))
                except LedgerError:
                    continue
                for token, outcome in listed.items():
                    if self.judge.decided.get((lane, token)) != outcome:
                        self.wrong.append(f"a history in {region} lists {token} as {outcome}")

        return script

    def at_the_end(self) -> list[str]:
        """Everything arrives; each is asked again; everything is sold, and not one more."""
        wrong = self.asked_again()
        self.world.now_ms += YEARS_MS
        for side in SIDES:
            wrong += self.sell_all(side)
        return [*self.judge.wrong, *wrong]

    def asked_again(self) -> list[str]:
        """Everything arrives, and each is asked again."""
        world, judge, wrong = self.world, self.judge, list[str]()
        world.quiesce()
        before = dict(judge.decided)
        for n, one in enumerate(self.asked):
            region = self.regions[n % len(self.regions)]
            program = (hold if one.is_hold else add)(self.gates_in(region), one.delta)
            decision: Decision = finish(world, region, program)
            was = before.get((one.delta.lane, one.delta.token))
            if was is not None and decision.known != Known(was):
                wrong.append(f"{one.delta.token} was {was}, and asked again it is {decision.known}")
        for lane in self.judge.lanes:
            world.quiesce()
            listed = finish(world, lane.region, outcomes(lane, consistent=True))
            truth = {token: outcome for (of, token), outcome in judge.decided.items() if of == lane}
            if listed != truth:
                wrong.append(f"the history of {lane} differs from what was decided")
        return wrong + finish(world, self.regions[0], audit(self.gates_in(self.regions[0])))

    def sell_all(self, side: str) -> list[str]:
        """What is left of a side is taken, one by one."""
        world, judge = self.world, self.judge
        if not judge.limit.has(side):
            return []
        amount = -1 if side == DOWN else 1
        first = sum(map(change_of, judge.decided.values()))
        for n in range(2_000):
            region = self.regions[self.choices.pick(len(self.regions))]
            token = tokens.keyed(COUNTER, f"end {amount} {n}", world.now_ms)
            delta = Delta(self._lane(token, region), token, amount)
            decision = finish(world, region, add(self.gates_in(region), delta))
            world.now_ms += 20
            if self.choices.pick(2):
                world.quiesce()
            if decision.known.outcome == REFUSED:
                break
        value = sum(map(change_of, judge.decided.values()))
        bound = judge.bounds[amount > 0] or 0
        is_beyond = amount * first > amount * bound
        if value != (first if is_beyond else bound):
            left = [n for n in judge.open.values() if n * amount > 0]
            return [f"at rest {value} is left, not {bound}: not all could be taken (open: {left})"]
        return []
