"""A simulated table with one counter, and everybody who uses it, minute by minute.

Rule 1: A scenario is data, the same for every design, and everything follows from it and a seed.
The caller is an at-least-once producer, as SQS is: ten messages a minute, each in a process of its
own.
Rule 2: What is not answered, by an error or because its process died, is delivered again a minute
later, with the same key and time, until it is answered. In every minute each Region's housekeeping
and a reader run at the same time as the messages. Items reach the other Region one by one, in any
order, within the minute.
Rule 3: Nothing here knows a design by its name.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lab.designs.design import Design
from lab.designs.simulated import Simulated, Task
from lab.measure.changes import EVENTS, Counted, Record
from ledger.core.errors import GaveUp, LedgerError, TableError
from ledger.core.requests import Now, Program, Request, Result
from ledger.core.running import through
from simulator.choices import Drawn
from simulator.faults import NONE, Faults
from simulator.world import World

EU, US = "eu-west-1", "us-east-1"
MINUTE_MS, DAY_MS = 60_000, 86_400_000
OTHERS = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """faults: as the simulator has them. dies: the process of every first delivery does, before it
    acknowledges,
    and every housekeeping after one answer more than the one before.

    late: every other message waits a minute in the queue before its first delivery.
    again_ms: every message is delivered once more, so long after its first (0: at the same time).
    others: that many more events meanwhile. regions: where callers send the events, in turn. cut:
    in the second minute they cannot reach each other. elsewhere: what is delivered once more is
    delivered in the other Region.
    """

    name: str
    faults: Faults = NONE
    dies: bool = False
    late: bool = False
    again_ms: int | None = None
    others: int = 0
    regions: tuple[str, ...] = (EU,)
    cut: bool = False
    elsewhere: bool = False


LAG = Scenario(name="Regions", regions=(EU, US), faults=Faults(slow_replication=True))
ONE = Scenario(name="at once")
SCENARIOS = (
    ONE,
    Scenario(name="no reply", faults=Faults(lost=100)),
    Scenario(name="crash", dies=True),
    LAG,
    replace(LAG, name="cut off", cut=True),
    Scenario(name="late", late=True),
    Scenario(name="twice", again_ms=0),
    Scenario(name="9 min", again_ms=9 * MINUTE_MS),
    Scenario(name="11 min", again_ms=11 * MINUTE_MS),
    Scenario(name="1 day", again_ms=DAY_MS, others=OTHERS),
    Scenario(name="8 days", again_ms=8 * DAY_MS, others=OTHERS),
    replace(LAG, name="failover", again_ms=2 * MINUTE_MS, elsewhere=True),
)

C = "stock:85123A"
START_MS = 1_800_000_000_000
A_MINUTE = 10
DELIVERIES_MAX = 20  # then the caller gives up
BUSY_MINUTES = 15
"""After the last event all housekeeping is done within these; the rest of a longer wait has
none, and nothing to do.
"""
CALM_MINUTES = 4
LAG_STEPS = 20
DEATHS = (1, 2, 10**6)
"""In turn: after how many answers a process dies.

The last is at its end, before the message is acknowledged.
"""


class Died(Exception):
    """The process of a delivery is no more."""


@dataclass(frozen=True, slots=True)
class Message:
    """asked_in: the Region whose producer made it. region: where it is delivered."""

    number: int
    asked_in: str
    region: str
    at_ms: int


class OneCounter:
    """One counter in its table, from START_MS on. `units`: all changes are 1."""

    def __init__(self, design: Design, scenario: Scenario, seed: int, units: bool) -> None:
        self.world = World(scenario.regions, Drawn(seed), page_size=100, lag_steps=LAG_STEPS)
        self.world.now_ms = START_MS
        self.record = Record(units)
        self._simulated = Simulated(self.world)
        self._scenario, self._faults, self._dies = scenario, scenario.faults, scenario.dies
        self._visits = 0
        self._in = {region: design.of(region, scenario.regions) for region in scenario.regions}
        self._deliveries: Counter[int] = Counter()
        self._unanswered: list[Message] = []

    def play(self, events: int) -> None:
        """Ask for so many events, and for the scenario's others, until all is answered, done and
        everywhere.
        """
        again_ms = self._scenario.again_ms
        messages = self._produce(range(events), twice=again_ms == 0)
        if again_ms:
            self._produce(range(events, events + self._scenario.others))
            self._wait_until(START_MS + again_ms)
            for some in messages:
                self._minute([self._once_more(message) for message in some])
        while self._unanswered:
            self._minute()
        self._faults, self._dies = NONE, False
        for _ in range(CALM_MINUTES):
            self._minute()

    def values(self) -> list[int]:
        """What each Region reads."""
        return [self._simulated.run(design.value(C), region) for region, design in self._in.items()]

    def _produce(self, numbers: Sequence[int], twice: bool = False) -> list[list[Message]]:
        """Make messages, A_MINUTE of them a minute, and deliver them, at the same time `twice`."""
        made: list[list[Message]] = []
        regions = self._scenario.regions
        for start in range(0, len(numbers), A_MINUTE):
            if self._scenario.cut and start:
                self.world.cut.add(US)
            homes = [
                (number, regions[number % len(regions)])
                for number in numbers[start : start + A_MINUTE]
            ]
            made.append([Message(number, home, home, self.world.now_ms) for number, home in homes])
            now = made[-1][::2] if self._scenario.late else made[-1]
            self._minute([*now, *map(self._once_more, made[-1] if twice else ())])
            self._unanswered += [message for message in made[-1] if message not in now]
        self.world.cut.clear()
        return made

    def _once_more(self, message: Message) -> Message:
        """The same message, as it is delivered a second time."""
        others = [region for region in self._scenario.regions if region != message.region]
        return replace(message, region=others[0]) if self._scenario.elsewhere else message

    def _wait_until(self, ms: int) -> None:
        for _ in range(BUSY_MINUTES):
            if self.world.now_ms < ms:
                self._minute()
        if self.world.now_ms < ms - MINUTE_MS:
            self._pass(ms - MINUTE_MS - self.world.now_ms)
            self._minute()

    def _minute(self, messages: Sequence[Message] = ()) -> None:
        """Deliver these and what was not answered the minute before, and do what is done every
        minute.
        """
        due, self._unanswered = [*messages, *self._unanswered], []
        tasks = [self._task(message.region, partial(self._deliver, message)) for message in due]
        for region in self._in:
            tasks += [
                self._task(region, partial(some, region)) for some in (self._housekeep, self._read)
            ]
        for end in self._simulated.play(tasks, self._faults):
            if isinstance(end, LedgerError):
                raise end
        self._pass(MINUTE_MS)

    def _pass(self, ms: int) -> None:
        self.world.now_ms += ms
        self.world.step += LAG_STEPS + 1  # no read lags by a minute
        if not self.world.cut:
            self.world.quiesce()  # nor does replication

    def _task(self, region: str, make: Callable[[], Program[None]]) -> Task:
        return Task(region, make, self._in[region].sdk_attempts)

    def _deliver(self, message: Message) -> Program[None]:
        number = message.number
        self.record.asked.add(number)
        self._deliveries[number] += 1
        program = self._in[message.asked_in].add(
            C, self.record.change(number), f"event-{number}", message.at_ms
        )
        if self._dies and self._deliveries[number] == 1:
            program = dying(program, DEATHS[number % len(DEATHS)])
        try:
            yield from program
        except (LedgerError, Died):
            if self._deliveries[number] < DELIVERIES_MAX:
                self._unanswered.append(message)
        else:
            self.record.answered(number, message.region)

    def _housekeep(self, region: str) -> Program[None]:
        program = self._in[region].housekeep(C, region)
        if self._dies:
            self._visits += 1
            program = dying(program, self._visits)
        # the next one does what this one could not
        with contextlib.suppress(TableError, GaveUp, Died):
            yield from program

    def _read(self, region: str) -> Program[None]:
        for consistent in (True, False, True):
            must = frozenset(self.record.acknowledged.get(region, ()) if consistent else ())
            self.record.saw((yield from self._in[region].value(C, consistent=consistent)), must)


def accuracy(design: Design, seeds: Sequence[int]) -> dict[str, Counted]:
    """What becomes of the events in each scenario, in all seeds."""
    return {
        each.name: sum((count(design, each, seed) for seed in seeds), Counted())
        for each in SCENARIOS
    }


def count(design: Design, scenario: Scenario, seed: int) -> Counted:
    """What becomes of EVENTS events of one counter, and of the scenario's others."""
    counter = OneCounter(design, scenario, seed, units=design.claims.units)
    counter.play(EVENTS)
    return counter.record.ended(counter.values())


def dying(program: Program[Result], answers: int) -> Program[Result]:
    """Run a program until a table gave it so many answers or it is at its end; then it raises
    Died.
    """
    given = 0

    def step(request: Request) -> Program[Any]:
        nonlocal given
        if given == answers:
            raise Died
        given += not isinstance(request, Now)
        return (yield request)

    yield from through(program, step)
    raise Died
