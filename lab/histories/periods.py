"""Histories of counters with periods: two zones' clocks, retries over midnight and a year later, items that retire.

Rule 1: a change counts once, in one period, whatever becomes of its attempts; its name follows from its time, once.
Rule 2: by the clock of who asks: before the end of a period and what may come late nobody is refused as too late, and
after it nothing counts that did not; before it is kept no longer everybody reads it, and after it nobody.
Rule 3: as long as a period is kept, no read is damaged or counts a change twice; when all has retired nothing of it is
left, and all else is.
Rule 4: a period opens with a limit that its base had at some moment of the call that opened it.
Rule 5: what is carried from one period is taken by the next one, and no more than may be; all that was free, at rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

from compactor.report import Tally
from compactor.verify import verify_gates
from compactor.visit import visit
from lab.histories.limited_judge import Judge, WatchedWorld
from lab.histories.theatre import LONG, REGIONS, SHORT, Played, Theatre, finish, in_steps_of, one_of, rest
from ledger import programs
from ledger.checks import AHEAD_MAX_MS, to_datetime
from ledger.errors import (
    DamagedItem,
    GateLost,
    InvalidCounter,
    InvalidTime,
    LaneDamaged,
    LedgerError,
    LimitReached,
    PeriodOver,
)
from ledger.gate import items as gates
from ledger.gate.gate import Gate
from ledger.gate.gates import Gates
from ledger.limit import UP, Limit
from ledger.periods.keep import Keep, Term
from ledger.periods.period import Period
from ledger.programs import Rules
from ledger.requests import Item, Key, Now
from ledger.settings import Settings
from ledger.values import Change, Lane
from reader.calls import Calls
from simulator.choices import Choices
from simulator.faults import Faults, mix
from simulator.process import Log, Process, Script, Sleep

STEP_MS = 600_000
HOUR, DAY = 6, 144  # in steps
CEILING, CARRY = 6, 3
PLAIN, LIMITED = ("p:a", "p:b"), ("q:a", "q:b")
ZONES = ("UTC", "Pacific/Kiritimati", "Etc/GMT+12")
BEYOND = (HOUR, 8 * HOUR, 20 * HOUR, 2 * DAY, 4 * DAY, 36 * DAY)
"""How long a retry waits: within the period, over its end, over what may come late, and until it has retired."""
NUMBERS_MAX = 30


@dataclass
class Asked:
    """A change of a plain counter is 4**number. counted: somebody was told that it counts."""

    base: str
    number: int
    change: int
    at_ms: int
    region: str
    period: Period
    counted: bool = False

    @property
    def name(self) -> str:
        return self.period.name(self.base, to_datetime(self.at_ms))

    @property
    def key(self) -> str:
        return f"change {self.number}"


@dataclass
class Producer:
    region: str
    period: Period
    process: Process | None = None
    mine: list[Asked] = field(default_factory=list)


@dataclass
class Stage:
    theatre: Theatre
    world: WatchedWorld
    settings: Settings
    wrong: list[str] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    judges: dict[str, Judge] = field(default_factory=dict)
    opened: dict[str, int | None] = field(default_factory=dict)
    ceilings: list[tuple[int, str, int | None]] = field(default_factory=list)
    """Since which step, of which base, what the ceiling is."""
    running: dict[int, int] = field(default_factory=dict)
    """The step at which each call began that goes on."""
    counts: Counter[str] = field(default_factory=Counter)
    bases: tuple[str, ...] = (*PLAIN, *LIMITED, *LIMITED)

    @property
    def is_short(self) -> bool:
        """Whether all is about the days of one limited counter, which many are short of."""
        return self.bases == LIMITED[:1]

    @property
    def choices(self) -> Choices:
        return self.world.choices

    def own(self, region: str) -> Settings:
        return replace(self.settings, region=region)

    def term(self, name: str) -> Term:
        term = self.settings.term_of(name)
        assert term is not None
        return term

    def clock(self, process: Process | None) -> int:
        return self.world.now_ms + (process.skew_ms if process is not None else 0)

    def names(self) -> list[str]:
        return list(dict.fromkeys(one.name for one in self.asked))

    # -- what is seen of writes ----------------------------------------------------------------------------------------

    def see(self, region: str, key: Key, item: Item | None) -> None:
        lane = gates.lane_of(key)
        if lane is not None and self.settings.term_of(lane.counter) is None:
            ceiling = gates.gate_of(lane, item).bounds[UP] if item is not None else None
            self.ceilings.append((self.world.step, lane.counter, ceiling))
            return
        kind, _, text = key.pk.partition("#")
        if kind not in ("gate", "past", "hold"):
            return
        counter = Lane.parse(text).counter
        if self.world.now_ms >= self.term(counter).retires_s * 1_000:
            return  # a write that was on its way for weeks: nobody sees it, and it retires again
        judge = self.judge(counter)
        before = judge.gates.get(lane) if lane is not None else None
        judge.see(region, key, item)
        if before is not None and lane is not None:
            self._moved(counter, before, judge.gates[lane])
        if lane is not None and item is not None and counter not in self.opened and lane.region == REGIONS[0]:
            self._opens(counter, gates.gate_of(lane, item).bounds[UP])

    def _moved(self, counter: str, before: Gate, after: Gate) -> None:
        """What is carried moves the ceiling, and nothing before the period is over in every zone."""
        out, into = after.carried - before.carried, after.took - before.took
        more = (after.bounds[UP] or 0) - (before.bounds[UP] or 0)
        if (out or into) and more != into - out:
            self.wrong.append(f"{counter} carried {out} and took {into}, and its ceiling moved by {more}")
        if out and self.world.now_ms + self.theatre.faults.skew_ms < self.term(counter).end_ms:
            self.wrong.append(f"{counter} carried {out} before its end")

    def _opens(self, counter: str, ceiling: int | None) -> None:
        self.opened[counter] = ceiling
        since = min(self.running.values(), default=self.world.step)
        base = self.term(counter).base
        known = [(0, CEILING), *((step, set_to) for step, of, set_to in self.ceilings if of == base)]
        ends = [*(step for step, _ in known[1:]), self.world.step + 1]
        had = {set_to for (_, set_to), end in zip(known, ends, strict=True) if end >= since}
        if ceiling not in had and not self.theatre.faults.late:  # a late put opens with what was set when it was sent
            self.wrong.append(f"{counter} opens with {ceiling}, and its base had none such: {known[-3:]}")

    def judge(self, counter: str) -> Judge:
        if counter not in self.judges:
            limit = self.settings.limit_of(counter)
            assert limit is not None
            judge = Judge(self.world, self.settings.lanes_of(counter), limit, wrong=self.wrong)
            self.judges[counter] = judge
        return self.judges[counter]

    # -- who adds ------------------------------------------------------------------------------------------------------

    def enter_all(self) -> None:
        choices = self.choices
        for number in range(2 + choices.pick(4) + 2 * self.is_short):
            region = one_of(choices, REGIONS[:2])
            period = Period(one_of(choices, ("hour", "day", "day")), one_of(choices, ZONES))
            period = Period("day") if len(self.bases) == 1 else period
            producer = Producer(region, period)
            producer.process = self.theatre.enter(f"producer {number}", region, partial(self.produces, producer))
        for region in REGIONS[:2]:
            self._enter(f"reader {region}", region, self.reads)
            self._enter(f"compactor {region}", region, self.visits)
        for twin in range(choices.pick(3)):
            region = one_of(choices, REGIONS[:2])
            self._enter(f"operator {twin}", region, self.sets_limits)

    def _enter(self, name: str, region: str, script: Callable[[str, list[Process]], Script]) -> None:
        own: list[Process] = []
        own.append(self.theatre.enter(name, region, lambda: script(region, own)))

    def produces(self, producer: Producer) -> Script:
        rules = Rules(self.own(producer.region), lambda: self.clock(producer.process), lambda size: bytes(size))
        for n in range(1 + self.choices.pick(4) + 3 * self.is_short):
            if n >= len(producer.mine) and len(self.asked) < NUMBERS_MAX:
                yield Sleep(one_of(self.choices, (0, HOUR, DAY // 2)))
                yield Now()
                producer.mine.append(self._one(producer))
            for one in producer.mine[n : n + 1]:
                yield from self._until_answered(rules, producer, one)
        for one in producer.mine:  # messages come again, some of them very late
            yield Sleep(one_of(self.choices, BEYOND))
            yield from self._attempt(rules, producer, one)

    def _one(self, producer: Producer) -> Asked:
        base = one_of(self.choices, self.bases)
        number = len(self.asked)
        change = 4**number if base in PLAIN else 1 + self.choices.pick(3)
        at_ms = self.clock(producer.process) - self.choices.pick(3) * STEP_MS
        self.asked.append(Asked(base, number, change, at_ms, producer.region, producer.period))
        return self.asked[-1]

    def _until_answered(self, rules: Rules, producer: Producer, one: Asked) -> Generator[Any, Any, None]:
        for _ in range(6):
            if (yield from self._attempt(rules, producer, one)):
                return
            yield rest(self.choices, (*SHORT, HOUR, DAY))

    def _attempt(self, rules: Rules, producer: Producer, one: Asked) -> Generator[Any, Any, bool]:
        """One call, as it comes; whether that is an answer."""
        yield Now()  # a process that slept reads its clock after that
        name, began_ms = self.named(one, self.clock(producer.process)), self.clock(producer.process)
        change = Change(name, one.change, one.key, to_datetime(one.at_ms), one.region)
        self._refused(rules, change)
        closes_ms = self.term(name).closes_ms
        call = self._begun()
        try:
            delta = programs.prepare(rules, change)
            if one.base in LIMITED:
                self.judge(name).amounts[delta.lane, delta.token] = one.change
            yield from programs.add(rules, delta)
        except PeriodOver:
            self.counts["over"] += 1
            if self.clock(producer.process) < closes_ms and began_ms < closes_ms:
                self.wrong.append(f"{name}: {one.key} is refused as too late, before it is")
            return True
        except LimitReached:
            return True
        except InvalidTime:
            if one.at_ms <= began_ms + AHEAD_MAX_MS:
                self.wrong.append(f"{name}: {one.key} is said not to be of this period")
            return True
        except LedgerError as error:
            self._damaged(f"{one.key} to {name}", error)
            return False
        finally:
            self.running.pop(call, None)
        self.counts["counted"] += 1
        if began_ms >= closes_ms:
            self.wrong.append(f"{name}: {one.key} counts, and was asked for after its end")
        one.counted = True
        return True

    def _begun(self) -> int:
        call = len(self.running) + self.world.step * 1_000
        self.running[call] = self.world.step
        return call

    def named(self, one: Asked, now_ms: int) -> str:
        return one.period.name(one.base, to_datetime(one.at_ms))

    def _refused(self, rules: Rules, change: Change) -> None:
        """What no process takes: a base, and a change that is not of the period."""
        term = self.term(change.counter)
        far = replace(change, counter=f"{term.base}@1972-01")
        for wrong, error in ((replace(change, counter=term.base), InvalidCounter), (far, InvalidTime)):
            with suppress(error, InvalidTime):
                programs.prepare(rules, wrong)
                if change.at is not None:
                    self.wrong.append(f"{wrong.counter} takes a change")

    # -- who reads, compacts and sets limits -----------------------------------------------------------------------

    def reads(self, region: str, own: list[Process]) -> Script:
        calls = Calls(self.own(region), 0, True, lambda: self.clock(own[0]))
        for _ in range(6 + self.choices.pick(8)):
            yield self._later()
            for name in self.names():
                yield from self._read(calls, name, own[0])

    def _later(self) -> Sleep:
        """Some time, or until the table has begun to delete the oldest period."""
        names = self.names()
        if names and self.choices.pick(6) == 5:
            retires_ms = min(self.term(name).retires_s for name in names) * 1_000
            return Sleep(max(0, (retires_ms - self.world.now_ms) // STEP_MS + self.choices.pick(2 * HOUR)))
        return rest(self.choices, (*SHORT, 5 * HOUR, 10 * HOUR, DAY, *LONG))

    def _read(self, calls: Calls, name: str, process: Process | None) -> Generator[Any, Any, None]:
        yield Now()
        kept_ms, began_ms = self.term(name).kept_until_ms, self.clock(process)
        try:
            balance = (yield from calls.balances([name]))[name]
        except PeriodOver:
            if max(began_ms, self.clock(process)) < kept_ms:
                self.wrong.append(f"{name} is not read any more, and it is kept")
            return
        except LedgerError as error:
            self._damaged(f"a read of {name}", error)
            return
        self.counts["reads"] += 1
        if began_ms >= kept_ms:
            self.wrong.append(f"{name} is read as {balance.value}, and it is kept no longer")
        if self.term(name).base in PLAIN:
            self._check_value(name, balance.value)

    def _check_value(self, name: str, value: int) -> None:
        numbers = {one.number for one in self.asked if one.name == name}
        digits = {n: value // 4**n % 4 for n in range(NUMBERS_MAX)}
        if wrong := {n: times for n, times in digits.items() if times > (n in numbers)}:
            self.wrong.append(f"{name}: changes count that often: {wrong}")

    def _damaged(self, what: str, error: LedgerError) -> None:
        if isinstance(error, DamagedItem | LaneDamaged | GateLost):
            self.wrong.append(f"{what}: {type(error).__name__}: {error}")

    def visits(self, region: str, own: list[Process]) -> Script:
        for _ in range(8 + self.choices.pick(10)):
            yield self._later()
            for name in [name for name in self.names() if self.term(name).base in PLAIN]:
                for lane in self.settings.lanes_of(name, region):
                    try:
                        yield from visit(lane, Tally(), self.own(region))
                    except LedgerError as error:
                        self._damaged(f"a visit to {lane}", error)

    def sets_limits(self, region: str, own: list[Process]) -> Script:
        rules = Rules(self.own(region), lambda: self.clock(own[0]), lambda size: bytes(size))
        for _ in range(1 + self.choices.pick(3) + 12 * self.is_short):
            yield rest(self.choices, (*SHORT, HOUR) if self.is_short else LONG)
            yield Now()
            names = [name for name in self.names() if self.term(name).base in LIMITED]
            counter = one_of(self.choices, (*LIMITED, *names))
            call = self._begun()
            try:
                yield from programs.set_limit(rules, counter, ceiling=2 + self.choices.pick(9))
            except LedgerError as error:
                self._damaged(f"a limit of {counter}", error)
            finally:
                self.running.pop(call, None)

    # -- the end -------------------------------------------------------------------------------------------------------

    def end(self) -> None:
        world = self.world
        world.quiesce()
        now_ms = world.now_ms
        kept = [name for name in self.names() if now_ms < self.term(name).kept_until_ms]
        for region in REGIONS[:2]:
            calls = Calls(self.own(region), 0, True, lambda: now_ms)
            for name in kept:
                self._is_right(region, name, calls)
        for name in kept:
            term = self.term(name)
            if term.base in LIMITED and term.before.end_ms <= now_ms < min(term.before.kept_until_ms, term.end_ms):
                self.short(name)
        self._retires()

    def _is_right(self, region: str, name: str, calls: Calls) -> None:
        world = self.world
        if self.term(name).base in PLAIN:
            for lane in self.settings.lanes_of(name):
                finish(world, lane.region, visit(lane, Tally(), self.own(lane.region)))
            world.quiesce()
            value = finish(world, region, calls.balances([name]))[name].value
            self._check_value(name, value)
            counted = [one for one in self.asked if one.name == name and one.counted]
            if missing := [one.key for one in counted if not value // 4**one.number % 4]:
                self.wrong.append(f"{name} in {region} lacks {missing}")
            return
        made = Gates.limited(self.own(region), name, "the end")
        for check in finish(world, region, verify_gates(made)):
            self.wrong += check.differences

    def short(self, name: str) -> None:
        """Somebody is short of more than there is: all that the period before has left has come by then."""
        world, before = self.world, self.term(name).before
        rules = Rules(self.own(REGIONS[0]), lambda: world.now_ms, lambda size: bytes(size))
        delta = programs.prepare(rules, Change(name, 10**6, "short", to_datetime(world.now_ms)))
        self.judge(name).amounts[delta.lane, delta.token] = delta.change
        with suppress(LimitReached):
            finish(world, REGIONS[0], programs.add(rules, delta))
        old, new = self._first(before.name), self._first(name)
        carried = old.carried if old is not None else 0
        is_over = world.now_ms >= before.end_ms
        left = self.judge(before.name).left()[UP] if old is not None and is_over else 0
        self.counts["carried"] += carried
        if new.took != carried or carried > CARRY or (carried < CARRY and left > 0):
            self.wrong.append(f"{name} took {new.took}; {before.name} carried {carried}, and {left} are left there")

    def _first(self, name: str) -> Any:
        lane = Lane(REGIONS[0], 0, name)
        item = self.world.replicas[REGIONS[0]].item(gates.gate_key(lane))
        return gates.gate_of(lane, item) if item is not None else None

    def _retires(self) -> None:
        """All of it goes, and nothing else."""
        world = self.world
        others = [key for key in self._keys() if not self._is_of_period(key)]
        world.now_ms = max((self.term(name).retires_s for name in self.names()), default=0) * 1_000 + 10**9
        for _ in range(3):
            for region, key in world.expired():
                world.expire(region, key)
            world.quiesce()
        left = self._keys()
        if of_periods := [key for key in left if self._is_of_period(key)]:
            self.wrong.append(f"{len(of_periods)} items never retire, such as {of_periods[0]}")
        if gone := [key for key in others if key not in left]:
            self.wrong.append(f"{gone[0]} is gone, and is of no period")

    def _keys(self) -> list[Key]:
        cells = self.world.replicas[REGIONS[0]].cells
        return [Key(pk, sk) for pk, of in cells.items() for sk, cell in of.items() if cell.item is not None]

    def _is_of_period(self, key: Key) -> bool:
        return "@" in key.pk or "@" in key.sk


def play(choices: Choices, faults: Faults | None = None, log: Log | None = None) -> Played:
    faults = mix(choices) if faults is None else faults
    faults = replace(in_steps_of(STEP_MS, faults), remade=False, pause=0)
    world = WatchedWorld(REGIONS[:2], choices, page_size=1 + choices.pick(3), lag_steps=faults.lag_steps)
    world.step_ms, world.now_ms = STEP_MS, 50_000 * STEP_MS
    late, keep = one_of(choices, ((0, 0), (6, 12), (24, 96)))
    kept = Keep(late=timedelta(hours=late), keep=timedelta(hours=keep))
    settings = Settings(
        table="counters",
        region=REGIONS[0],
        regions=REGIONS[:2],
        limits={"q:": Limit(ceiling=CEILING, region=REGIONS[0])},
        periods={"p:": kept, "q:": replace(kept, carry=CARRY)},
        allowed_lateness_ms=30 * STEP_MS,
        read_time_max_ms=300 * STEP_MS,
        keep_ms=600 * STEP_MS,
        fold_min=1 + choices.pick(2),
        unshared_limits=True,
    )
    stage = Stage(Theatre(world, faults, log), world, settings)
    stage.bases = one_of(choices, (stage.bases, PLAIN[:1], LIMITED[:1]))
    world.watch = stage.see
    stage.enter_all()
    over_ms = world.now_ms + one_of(choices, (10, 16, 22, 60, 400)) * DAY // 8 * STEP_MS
    stage.theatre.play(lambda: world.now_ms >= over_ms)
    if not stage.wrong:
        stage.end()
    return Played(stage.wrong, world.step, stage.counts)
