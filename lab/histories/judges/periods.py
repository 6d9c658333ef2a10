"""The judge of histories and casts of periods: what each promises of changes, of limits, and of
what retires.

Rule 1: a change counts once, in one period, whatever becomes of its attempts; its name follows from
its time, once.
Rule 2: by the clock of who asks: before the end of a period and what may come late nobody is
refused as too late, and after it nothing counts that did not; before it is kept no longer everybody
reads it, and after it nobody.
Rule 3: as long as a period is kept, no read is damaged or counts a change twice.
Rule 4: a period opens with a limit that its base had at some moment of the call that opened it.
Rule 5: what is carried from one period is taken by the next one, and no more than may be; all that
was free, at rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from lab.histories.judges.gates import GateJudge
from lab.histories.stage.judge import Judge
from lab.histories.stage.stage import REGIONS, Stage
from lab.histories.stage.world import WatchedWorld
from ledger.client import preparing
from ledger.client.preparing import Rules
from ledger.core.checks import AHEAD_MAX_MS, to_datetime, to_ms
from ledger.core.clocks import Clock
from ledger.core.errors import (
    DamagedItem,
    GateLost,
    InvalidTime,
    LaneDamaged,
    LedgerError,
    LimitReached,
    PeriodOver,
)
from ledger.core.keep import Term
from ledger.core.limit import UP
from ledger.core.period import Period
from ledger.core.requests import Item, Key
from ledger.core.settings import Settings
from ledger.core.values import Change, Delta, Lane
from ledger.gate import items as gates
from ledger.gate.gate import Gate
from reader.rules import Rules as Reads

CEILING, CARRY = 6, 3
PLAIN, LIMITED = ("p:a", "p:b"), ("q:a", "q:b")
NUMBERS_MAX = 30
ANCHOR = datetime(1970, 12, 14, tzinfo=UTC)
"""One window begins here, of those of two days and those of five hours, and none by the epoch."""

HOURS = timedelta(hours=1)
_WINDOW = re.compile(r"(.*@)([-\d]+)(T\d\d)?\+(\d+)([hd])")


class Window(NamedTuple):
    """start, end: by the zone's clock, as UTC."""

    before: str
    start: datetime
    end: datetime


def window(name: str) -> Window | None:
    """What a name says; None of what is no window."""
    said = _WINDOW.fullmatch(name)
    if said is None:
        return None
    to, day, hour, every, unit = said.groups(default="")
    start = datetime.fromisoformat(f"{day}{hour or 'T00'}:00Z")
    length = int(every) * (HOURS if unit == "h" else 24 * HOURS)
    text = f"{start - length:%Y-%m-%d}{f'T{start - length:%H}' if unit == 'h' else ''}"
    return Window(f"{to}{text}+{every}{unit}", start, start + length)


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


@dataclass(frozen=True, slots=True)
class Tried:
    """A call that adds a change, as its process saw it: when it began and ended by its clock, and
    its error.
    """

    name: str
    one: Asked
    began_ms: int
    ended_ms: int
    error: LedgerError | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """A read, as its process saw it; answer: the value, or its error."""

    name: str
    began_ms: int
    ended_ms: int
    answer: int | LedgerError


@dataclass(frozen=True, slots=True)
class Taken:
    """A change that no process may take was prepared."""

    counter: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Something else failed."""

    what: str
    error: LedgerError


@dataclass
class PeriodJudge(Judge):
    stage: Stage
    world: WatchedWorld
    settings: Settings
    wrong: list[str] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    judges: dict[str, GateJudge] = field(default_factory=dict)
    opened: dict[str, int | None] = field(default_factory=dict)
    ceilings: list[tuple[int, str, int | None]] = field(default_factory=list)
    """Since which step, of which base, what the ceiling is."""
    running: dict[int, int] = field(default_factory=dict)
    """The step at which each call began that goes on."""

    def own(self, region: str) -> Settings:
        return replace(self.settings, region=region)

    def rules(self, region: str, clock: Clock | None = None) -> Rules:
        """Those of a process in a Region, by its clock; without one, by the true time."""
        return Rules(self.own(region), clock or (lambda: self.world.now_ms), bytes)

    def reads(self, region: str, clock: Clock | None = None) -> Reads:
        """The same, of who reads."""
        return Reads(self.own(region), 0, True, clock or (lambda: self.world.now_ms))

    def prepared(self, rules: Rules, change: Change, *, up_to: bool = False) -> Delta:
        """A change before it is added; the judge of its gates knows what it is of then."""
        delta = (
            preparing.prepare_up_to(rules, change) if up_to else preparing.prepare(rules, change)
        )
        if self.settings.limit_of(change.counter) is not None:
            judge = self.judge(change.counter)
            judge.amounts[delta.lane, delta.token] = change.change
            if up_to:
                judge.parts.add((delta.lane, delta.token))
        return delta

    def before(self, name: str) -> Term:
        """The period before."""
        of = window(name)
        return self.term(name).before if of is None else self.term(of.before)

    def term(self, name: str) -> Term:
        term = self.settings.plan(name).term
        assert term is not None
        return term

    def names(self) -> list[str]:
        return list(dict.fromkeys(one.name for one in self.asked))

    def known(self) -> object:
        judges = [(name, list(judge.decided.items())) for name, judge in self.judges.items()]
        return self.wrong, judges, self.ceilings

    # -- what is seen of answers

    def at_answer(self, answer: object) -> None:
        match answer:
            case Tried():
                self._tried(answer)
            case Looked():
                self._looked(answer)
            case Taken(counter):
                self.wrong.append(f"{counter} takes a change")
            case Failed(what, error):
                self._damaged(what, error)

    def _tried(self, answer: Tried) -> None:
        name, one, began_ms = answer.name, answer.one, answer.began_ms
        if (of := window(name)) is not None:
            self._of_window(name, of, one)
        closes_ms = self.term(name).closes_ms
        match answer.error:
            case None:
                self.stage.counts["counted"] += 1
                one.counted = True
                if began_ms >= closes_ms:
                    self.wrong.append(f"{name}: {one.key} counts, and was asked for after its end")
            case PeriodOver():
                self.stage.counts["over"] += 1
                if max(began_ms, answer.ended_ms) < closes_ms:
                    self.wrong.append(f"{name}: {one.key} is refused as too late, before it is")
            case LimitReached():
                pass
            case InvalidTime():
                if one.at_ms <= began_ms + AHEAD_MAX_MS:
                    self.wrong.append(f"{name}: {one.key} is said not to be of this period")
            case error:
                self._damaged(f"{one.key} to {name}", error)

    # Rule 6: a window's name says its first moment and its length, and its change lies in it by the
    # zone's clock. What follows from these the judge computes by itself.
    def _of_window(self, name: str, of: Window, one: Asked) -> None:
        shown = to_datetime(one.at_ms).astimezone(ZoneInfo(one.period.zone)).replace(tzinfo=UTC)
        if not of.start <= shown < of.end or (of.start - ANCHOR) % (of.end - of.start):
            self.wrong.append(f"{name}: {one.key} of {shown} is named by no window of its time")
        end_ms = to_ms(of.end + 12 * HOURS)
        if self.term(name).end_ms != end_ms:
            self.wrong.append(f"{name} is over at {self.term(name).end_ms}, not at {end_ms}")

    def _looked(self, answer: Looked) -> None:
        name, kept_ms = answer.name, self.term(answer.name).kept_until_ms
        match answer.answer:
            case PeriodOver():
                if max(answer.began_ms, answer.ended_ms) < kept_ms:
                    self.wrong.append(f"{name} is not read any more, and it is kept")
            case LedgerError() as error:
                self._damaged(f"a read of {name}", error)
            case value:
                self.stage.counts["looks"] += 1
                if answer.began_ms >= kept_ms:
                    self.wrong.append(f"{name} is read as {value}, and it is kept no longer")
                if self.term(name).base in PLAIN:
                    self.check_value(name, value)

    # -- what is seen of writes

    def at_write(self, region: str, key: Key, item: Item | None) -> None:
        lane = gates.lane_of(key)
        if lane is not None and self.settings.plan(lane.counter).term is None:
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
        judge.at_write(region, key, item)
        if before is not None and lane is not None:
            self._moved(counter, before, judge.gates[lane])
        if (
            lane is not None
            and item is not None
            and counter not in self.opened
            and lane.region == REGIONS[0]
        ):
            self._opens(counter, gates.gate_of(lane, item).bounds[UP])

    def _moved(self, counter: str, before: Gate, after: Gate) -> None:
        """What is carried moves the ceiling, and nothing before the period is over in every
        zone.
        """
        out, into = after.carried - before.carried, after.took - before.took
        self.stage.counts["carried"] += into
        more = (after.bounds[UP] or 0) - (before.bounds[UP] or 0)
        if (out or into) and more != into - out:
            self.wrong.append(
                f"{counter} carried {out} and took {into}, and its ceiling moved by {more}"
            )
        if out and self.world.now_ms + self.stage.faults.skew_ms < self.term(counter).end_ms:
            self.wrong.append(f"{counter} carried {out} before its end")

    def _opens(self, counter: str, ceiling: int | None) -> None:
        self.opened[counter] = ceiling
        since = min(self.running.values(), default=self.world.step)
        base = self.term(counter).base
        known = [
            (0, CEILING),
            *((step, set_to) for step, of, set_to in self.ceilings if of == base),
        ]
        ends = [*(step for step, _ in known[1:]), self.world.step + 1]
        had = {set_to for (_, set_to), end in zip(known, ends, strict=True) if end >= since}
        # a late put opens with what was set when it was sent
        if ceiling not in had and not self.stage.faults.late:
            self.wrong.append(
                f"{counter} opens with {ceiling}, and its base had none such: {known[-3:]}"
            )

    def judge(self, counter: str) -> GateJudge:
        if counter not in self.judges:
            limit = self.settings.limit_of(counter)
            assert limit is not None
            judge = GateJudge(self.world, self.settings.lanes_of(counter), limit, wrong=self.wrong)
            self.judges[counter] = judge
        return self.judges[counter]

    def check_value(self, name: str, value: int) -> None:
        numbers = {one.number for one in self.asked if one.name == name}
        digits = {n: value // 4**n % 4 for n in range(NUMBERS_MAX)}
        if wrong := {n: times for n, times in digits.items() if times > (n in numbers)}:
            self.wrong.append(f"{name}: changes count that often: {wrong}")

    def _damaged(self, what: str, error: LedgerError) -> None:
        if isinstance(error, DamagedItem | LaneDamaged | GateLost):
            self.wrong.append(f"{what}: {type(error).__name__}: {error}")
