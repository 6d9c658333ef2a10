"""Finding work, played: writers, mark, plan, compact and find in many orders, with crashes between any two requests.

Each history follows from its seed. Whatever happened in it, once the stream is read to its end: every lane that has
something to do has a mark (unless its mark was lost), and from the marks alone everything is folded soon, nothing
twice. With lost marks one pass of the backstop comes first.
"""

import random
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from compactor.outlook import outlook
from compactor.verify import verify
from ledger import items, tokens
from ledger.errors import LedgerError, OutcomeUnknown, Throttled
from ledger.values import Delta, Lane
from service.compact.visit import Done, handle
from service.find.scan import Findings, find
from service.mark.handler import Marker
from service.marks import LEASE_MS, QUIET_MS, Mark, Touch, mark_of
from service.plan.handler import due_marks, send_due
from service.runtime import Runtime, chunks
from service.work import Send, Work
from tests.service.support import MemoryMarks, Told, never, stored
from tests.support import KEEP_MS, A, B, Region, settings, steps, summed

SEEDS = 120
STEPS = 250
DELTAS_MAX = 29  # of a lane: 4**29 is the largest change of this form
LANES = [Lane(A, 0, name) for name in ("busy", "cold", "third")]
SKEW_MS = 2_000
VISIBLE_AFTER_MS = 120_000
MINUTES_MAX = 90
EVENTS = 6  # running processes at once


class Crash(Exception):
    """A process ended between two requests."""


class Shaky(Region):
    """The home Region, its marks too; now and then a request fails, before or after it was done."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.marks = MemoryMarks(self)
        self.sent: list[Work] = []
        self.fails: Callable[[Any], str] = lambda _: "no"

    def answer(self, request: Any, /) -> Any:
        self.asked.clear()
        how = self.fails(request)
        if how == "before":
            raise Throttled("too fast")
        if how == "crash":
            raise Crash
        answer = self._answer(request)
        if how == "after":
            raise OutcomeUnknown("the answer was lost")
        return answer

    def _answer(self, request: Any) -> Any:
        if isinstance(request, Send):
            self.sent += request.messages
            return ()
        if type(request).__module__ == Touch.__module__:
            return self.marks.answer(request)
        return super().answer(request)


class History:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.settings = settings(fold_min=self.random.randint(1, 3), fold_max=4, clean=self.random.random() < 0.5)
        self.lanes = LANES[: self.random.randint(1, len(LANES))]
        self.quick = self.random.random() < 0.5  # much happens within seconds
        away, self.home = Region(), Shaky(page_size=self.random.randint(2, 9))
        self.away = away
        self.home.peers, away.peers = {B: away}, {A: self.home}
        self.told = Told()
        self.runtime = Runtime(self.home, self.home, clock=lambda: self.home.now_ms, workers=1)
        self.written: dict[Lane, int] = dict.fromkeys(self.lanes, 0)
        self.stream: list[Any] = []
        self.markers = [self.marker() for _ in range(2)]
        self.messages: list[tuple[int, Work]] = []  # from when on it is visible
        self.running: list[Iterator[object]] = []
        self.lost = False
        self.commits = 0

    def marker(self) -> Marker:
        return Marker(self.settings, self.runtime, self.told, self.told)  # type: ignore[arg-type]

    # -- what may happen ----------------------------------------------------------------------------------------------

    def write(self) -> None:
        lane = self.random.choice(self.lanes)
        ago_ms = self.random.choice((0, 0, 0, 500, 9_000, 700_000, -200_000))
        for _ in range(self.random.choice((1, 1, 1, 2, 12))):
            n = self.written[lane]
            if n < DELTAS_MAX:
                self.written[lane] += 1
                at_ms = max(0, self.home.now_ms - ago_ms)
                delta = Delta(lane, tokens.make(at_ms, n.to_bytes(tokens.RANDOM_BYTES, "big")), 4**n)
                if self.random.random() < 0.2:
                    self.away.put(delta)  # a fail-over
                else:
                    self.arrive(delta)

    def arrive(self, delta: Delta) -> None:
        if items.delta_key(delta) not in self.home.items:
            self.home.put(delta)
            record = stored(items.delta_item(delta), sequence=len(self.stream) + 1, made_ms=self.home.now_ms)
            self.stream.append(record)

    def replicate(self) -> None:
        for key, item in tuple(self.away.items.items()):
            if key.pk.startswith("delta#"):
                found = items.lane_of(key.pk)
                assert found is not None
                self.arrive(items.delta_of(found[1], item))
                self.away.drop(key)
        self.home.copy_to(self.away, *(key for key in self.home.items if key.pk.startswith("fold#")))

    def mark(self) -> None:
        if not self.stream:
            return
        n = self.random.randrange(2)
        batch = self.stream[: self.random.randint(1, 6)]
        try:
            answer = self.markers[n]({"Records": batch})
        except Crash:
            self.markers[n] = self.marker()
            return
        failed = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
        done = next((i for i, each in enumerate(batch) if each["dynamodb"]["SequenceNumber"] in failed), len(batch))
        self.stream = self.stream[done:]

    def start(self, program: Generator[Any, Any, Any]) -> None:
        if len(self.running) < EVENTS:
            self.running.append(self.skewed(program))

    def skewed(self, program: Generator[Any, Any, Any]) -> Iterator[object]:
        """Its steps, by a clock of its own."""
        skew_ms = self.random.randint(-SKEW_MS, SKEW_MS)
        stepping = steps(program, self.home, checkpoint_first=self.random.random() < 0.5, time_goes=True)
        while True:
            self.home.now_ms += skew_ms
            try:
                stepped = next(stepping, StopIteration)
            finally:
                self.home.now_ms -= skew_ms
            if stepped is StopIteration:
                return
            yield stepped

    def plan(self) -> None:
        self.start(self._plan())

    def _plan(self) -> Generator[Any, Any, None]:
        marks = yield from due_marks(A)
        for chunk in chunks(marks, 2):
            yield from send_due(chunk, never)
            self.deliver()

    def deliver(self) -> None:
        self.messages += [(self.home.now_ms, work) for work in self.home.sent]
        self.home.sent.clear()

    def work(self) -> None:
        """Takes a message; it is there again later, unless the visit comes to its end."""
        for i, (visible_ms, work) in enumerate(self.messages):
            if visible_ms <= self.home.now_ms and len(self.running) < EVENTS:
                self.messages[i] = (self.home.now_ms + VISIBLE_AFTER_MS, work)
                self.start(self._work(work))
                return

    def _work(self, work: Work) -> Generator[Any, Any, None]:
        done = Done()
        try:
            yield from handle(work, done, self.settings, lambda: self.random.random() < 0.02, commits_max=2)
        finally:
            self.commits += done.commits
        self.messages = [each for each in self.messages if each[1] is not work]

    def find(self) -> None:
        self.start(find(Findings(), self.settings, lambda: self.random.random() < 0.3, never))

    def step(self) -> None:
        if self.running:
            process = self.random.choice(self.running)
            try:
                next(process)
            except (StopIteration, LedgerError, Crash):
                self.running.remove(process)

    def crash(self) -> None:
        if self.running:
            self.running.remove(self.random.choice(self.running))

    def lose_a_mark(self) -> None:
        marks = [key for key in self.home.items if key.pk.startswith("mark#") and not key.pk.endswith("find")]
        if marks:
            self.home.drop(self.random.choice(marks))
            self.lost = True

    def lose_a_message(self) -> None:
        if self.messages:
            self.messages.pop(self.random.randrange(len(self.messages)))

    def time_goes(self) -> None:
        slow = (300, 15_000, 60_000, 60_000, 400_000, KEEP_MS)
        self.land()  # a transaction that was decided becomes visible, whoever crashed
        self.home.now_ms += self.random.choice((100, 300, 1_000, 4_000, 11_000, 60_000) if self.quick else slow)

    def land(self) -> None:
        self.home.store(self.home.landing)
        self.home.landing = []

    # -- the play -----------------------------------------------------------------------------------------------------

    def play(self, *, marks_are_lost: bool) -> None:
        pace = self.random.choice((20, 60, 140))
        acts = {self.write: 6, self.replicate: 4, self.mark: 12, self.plan: 8, self.work: 12, self.step: pace}
        acts |= {self.crash: 2, self.lose_a_message: 1, self.time_goes: 12}
        acts |= {self.lose_a_mark: 2, self.find: 1} if marks_are_lost else {}
        weathers = ((1, 0, 0, 0), (97, 1, 1, 1), (80, 10, 5, 5))
        touches, others = self.random.choice(weathers), self.random.choice(weathers)

        def fails(request: Any) -> str:
            how = self.random.choices(("no", "before", "after", "crash"), touches if type(request) is Touch else others)
            return how[0]

        self.home.fails = fails
        last_write = self.random.randint(STEPS // 8, STEPS)
        for step in range(STEPS):
            if step == last_write:
                del acts[self.write]
            for act in self.random.choices(list(acts), list(acts.values()), k=4):
                act()
            self.home.now_ms += self.random.randint(0, 100)
        self.home.fails = lambda _: "no"

    def calm_down(self) -> None:
        """Everything that is on its way arrives; no process is at work any more."""
        self.running.clear()
        self.land()
        self.replicate()
        while self.stream:
            self.mark()

    def minute(self) -> None:
        """A minute without mishap; the queue gives back what was taken."""
        self.home.now_ms += 60_000
        self.home.run(self._plan())
        for _, work in tuple(self.messages):
            self.home.run(self._work(work))
        self.replicate()

    def marks(self) -> dict[Lane, Mark]:
        found = (mark_of(item) for key, item in self.home.items.items() if key.pk.startswith("mark#"))
        return {mark.lane: mark for mark in found if mark is not None}

    def in_need(self) -> set[Lane]:
        """Lanes with a tail to fold, now or later, or with deltas to settle or to clean."""
        return {
            lane
            for lane in self.lanes
            if self.ready_ms(lane) is not None
            or (self.settings.clean and self.home.run(outlook(lane, self.settings)).below)
        }

    def ready_ms(self, lane: Lane) -> int | None:
        """When the lane has something to fold or to settle; None: it has not."""
        if self.home.run(verify(lane)).strays:
            return self.home.now_ms
        return self.home.run(outlook(lane, self.settings)).fold_ms

    def check_marks(self) -> None:
        """Every lane that has something to do has a mark, and a fold or a settle is due as soon as it can be."""
        marks = self.marks()
        assert self.in_need() <= marks.keys()
        for lane in self.lanes:
            ready_ms = self.ready_ms(lane)
            if ready_ms is not None:
                soon_ms = self.home.now_ms + QUIET_MS + SKEW_MS
                assert marks[lane].wake_ms <= max(soon_ms, ready_ms)
                assert (marks[lane].held_ms or 0) <= self.home.now_ms + LEASE_MS + SKEW_MS

    def judge(self) -> None:
        """From the marks alone all comes to rest, and then no mark is left."""
        for _ in range(MINUTES_MAX):
            if not self.in_need() and not self.marks():
                break
            self.minute()
        assert not self.in_need()
        assert not self.marks()
        for lane in self.lanes:
            check = self.home.run(verify(lane))
            assert check.value is not None
            assert summed(check.value) == set(range(self.written[lane]))
            assert (check.differences, check.strays) == ((), 0)
            assert check.pending < self.settings.fold_min


@pytest.mark.parametrize("part", range(4))
def test_with_no_mark_lost_every_delta_is_folded_from_the_marks_alone(part: int) -> None:
    commits = 0
    for seed in range(part, SEEDS, 4):
        history = History(seed)
        try:
            history.play(marks_are_lost=False)
            history.calm_down()
            history.check_marks()
            history.judge()
        except BaseException as failure:
            failure.add_note(f"seed {seed}")
            raise
        commits += history.commits
    assert commits > SEEDS  # the histories are about something


@pytest.mark.parametrize("part", range(2))
def test_with_marks_lost_one_pass_of_the_backstop_finds_them(part: int) -> None:
    losses = 0
    for seed in range(part, SEEDS // 2, 2):
        history = History(seed)
        try:
            history.play(marks_are_lost=True)
            history.calm_down()
            losses += not history.in_need() <= history.marks().keys()
            history.home.now_ms += KEEP_MS
            findings = Findings()
            history.home.store([{"pk": {"S": f"mark#{A}#find"}, "sk": {"S": "cursor"}}])
            while not findings.ended:
                history.home.run(find(findings, history.settings, never, never))
            history.check_marks()
            history.judge()
        except BaseException as failure:
            failure.add_note(f"seed {seed}")
            raise
    assert losses
