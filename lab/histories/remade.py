"""A Region's replica is lost and made again from what the others hold, and the operator who rebuilds its lanes.

Rule 1: It happens once in a history, while a commit is on its way to another Region, and some of what is on its way
still arrives.
Rule 2: A long time passes with it, whoever worked in the Region has crashed, and what had not left it is lost, so
nobody has to find it. The operator does what docs/operations.md says: no compactor works on the lanes, each is rebuilt
until that has an answer, then they go on. In some histories that is noticed late: the compactors go on first, and until
the end nobody vouches for what is read. Where a checkpoint had left the Region, and no segment of the lane, the
operator deletes it by hand: what was cleaned is lost, the rest is the tail again.
"""

from collections.abc import Callable
from functools import partial

from compactor.commit import LANDING_MAX_MS
from compactor.rebuild import rebuild
from lab.histories.cast import COUNTER, Cast, Sender, writes
from lab.histories.theatre import LONG, one_of, shelf
from ledger import items, tokens
from ledger.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError
from ledger.requests import DeleteMany, Get, Item, Key, Page, Program, Query
from ledger.values import Lane
from simulator.faults import NONE
from simulator.happening import by_itself
from simulator.process import Process, Script, Sleep

FIRST_STEPS = 1_500
"""It happens at the first such moment after at most so many steps."""

NOTICED_STEPS = 4_000
WRITERS = 4
TRIES_MAX = 200
FOR_EVER = 10**9


class Disaster:
    def __init__(self, cast: Cast) -> None:
        self._cast, self._theatre, self._world, self._record = cast, cast.theatre, cast.theatre.world, cast.record
        choices = cast.choices
        self.region = cast.any_region()
        self._first = choices.pick(4) == 3
        self._stays = one_of(choices, (None, "checkpoint", "checkpoint", "segment"))
        self._step = choices.pick(FIRST_STEPS)
        self._noticed_after = choices.pick(NOTICED_STEPS) if choices.pick(3) else None
        self._broken = self._seen = 0
        self._operates: Process | None = None

    def step(self) -> None:
        if self._operates is None and self._world.step >= self._step and self._a_commit_is_on_its_way():
            self._strike()

    def end(self) -> None:
        """At the end of the history: the operator has done it, and reads that nobody vouches for are not judged."""
        if self._operates is None:
            return
        while not self._operates.done:
            self._world.step += 1
            by_itself(self._world, NONE, lambda what, came: None)
            if self._operates.ready:
                self._operates.step()
        if self._noticed_after is not None:
            del self._record.seen[self._seen :]

    def _a_commit_is_on_its_way(self) -> bool:
        """Most often one that is not the first: the first, halved, stops its lane."""
        for region, key in self._world.deliverable():
            if key.pk.startswith(f"fold#{self.region}#") and key.sk.startswith(self._stays or "checkpoint"):
                cell = self._world.replicas[region].cell(Key(key.pk, "checkpoint"))
                if self._first or cell is not None:
                    return True
        return False

    def _strike(self) -> None:
        world, record = self._world, self._record
        for region, key in world.deliverable():
            if world.choices.pick(2) if self._stays is None else not key.sk.startswith(self._stays):
                world.deliver(region, key)
        world.remake(self.region)
        self._minutes_pass()
        lost = self._lost()
        for asked in record.asked:
            asked.acknowledged = asked.acknowledged and asked.number not in lost
        for rivals in record.rivals:
            rivals.acknowledged = rivals.acknowledged and not rivals.numbers <= lost
        record.lost |= lost
        self._excuse()
        for process in self._theatre.processes:
            if process.region == self.region and process.can_crash:
                process.crash()
        self._seen, self._broken = len(record.seen), len(record.broken)
        if self._noticed_after is None:
            self._stop_compactors()
        self._operates = self._enter(f"operator {self.region}", self._operator)
        sender = Sender(self._cast, self.region)
        for number in self._cast.numbers(WRITERS):  # so that what was halved is built upon
            self._enter(f"writer {number}", partial(writes, number, sender, LONG, []))
        if self._theatre.log is not None:
            self._theatre.log("the world", f"the replica in {self.region} is made again", "")

    def _excuse(self) -> None:
        """Between a rebuild and the next settle, a delta of the Region's lanes may be in no value."""
        for asked in self._record.asked:
            if asked.delta.lane.region == self.region:
                asked.on_time = False
                self._record.lost.add(asked.number)

    def _enter(self, name: str, script: Callable[[], Script]) -> Process:
        process = Process(name, self.region, script, self._world, self._theatre.faults, self._theatre.log)
        self._theatre.processes.append(process)
        return process

    def _lost(self) -> set[int]:
        """The changes that no item of the new replica names."""
        shelves = [shelf(self._world, lane, self.region) for lane in self._cast.settings.lanes_of(COUNTER)]
        named = {token for held, listed, _ in shelves for token in held | listed}
        return {asked.number for asked in self._record.asked if tokens.to_bytes(asked.delta.token) not in named}

    def _minutes_pass(self) -> None:
        """So long that nothing, in any Region, is still on its way or landing."""
        for region in self._world.regions:
            self._world.settle_late(region)
        self._world.now_ms += LANDING_MAX_MS

    def _operator(self) -> Script:
        if self._noticed_after is not None:
            yield Sleep(self._noticed_after)
            yield Sleep(0)  # a script runs on to its next request at once: what follows is done when it wakes
            self._stop_compactors()
            self._minutes_pass()
            del self._record.broken[self._broken :]
            self._excuse()
        for lane in self._cast.settings.lanes_of(COUNTER, self.region):
            for _ in range(TRIES_MAX):
                try:
                    yield from self._rebuild(lane)
                    break
                except LedgerError:
                    yield Sleep(30)
        self._world.settle_late(self.region)
        for process in self._compactors():
            process.asleep_until = self._world.step

    def _rebuild(self, lane: Lane) -> Program[None]:
        try:
            yield from rebuild(lane)
        except (DamagedItem, LaneDamaged) as damage:
            if not (yield from _gave_up_for_lost(lane)):
                self._record.broken.append(f"a rebuild of {lane}: {damage}")

    def _compactors(self) -> list[Process]:
        return [process for process in self._theatre.processes if process.name.startswith(f"compactor {self.region}")]

    def _stop_compactors(self) -> None:
        for process in self._compactors():
            if process.can_crash:
                process.crash()
            process.asleep_until = FOR_EVER


def _gave_up_for_lost(lane: Lane) -> Program[bool]:
    """Delete a checkpoint without any segment, and its clean note; whether the lane is one of those."""
    page: Page = yield Query(items.fold_pk(lane), items.SEGMENTS_FROM, items.SEGMENTS_UPTO, limit=1)
    if page.items:
        return False
    held: list[Item | None] = []
    for key in (items.checkpoint_key(lane), items.note_key(lane)):
        held.append((yield Get(key)))
    answers = yield DeleteMany(tuple(item for item in held if item is not None))
    if any(answer is not None for answer in answers):
        raise GaveUp(f"{lane}: again")
    return True
