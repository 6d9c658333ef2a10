"""A Region's replica is lost and made again from what the others hold, and the operator who
rebuilds its lanes.

Rule 1: It ends a history, while a commit is on its way to another Region, and some of what is on
its way still arrives.
Rule 2: Everybody has crashed, a long time has passed, and what had not left the Region is lost, so
nobody has to find it. The operator does what docs/operations/runbooks.md says: each lane is
rebuilt, with no compactor at work; then they go on. In some histories that is noticed late:
compactors and writers go on first. Where a checkpoint had left the Region, and no segment of the
lane, the operator deletes it by hand: what was cleaned is lost, the rest is the tail again.
"""

from contextlib import suppress
from dataclasses import replace

from compactor.commit import LANDING_MAX_MS
from compactor.rebuild import rebuild
from compactor.report import Tally
from compactor.visit import visit
from lab.histories.judges.lanes import COUNTER
from lab.histories.parts.cast import Cast
from lab.histories.parts.writers import Sender
from lab.histories.stage.stage import finish, one_of, shelf
from ledger.core import items, tokens
from ledger.core.errors import DamagedItem, GaveUp, LaneDamaged, LedgerError
from ledger.core.requests import DeleteMany, Get, Item, Key, Page, Program, Query
from ledger.core.values import Lane
from ledger.lane.add import add

FIRST_STEPS = 1_500
"""It happens at the first such moment after at most so many steps."""

ROUNDS_MAX = 3


class Disaster:
    def __init__(self, cast: Cast) -> None:
        self._cast, self._world, self._record = cast, cast.stage.world, cast.record
        choices = cast.choices
        self.region = cast.any_region()
        self._lanes = cast.settings.lanes_of(COUNTER, self.region)
        self._first = choices.pick(4) == 3
        self._stays = one_of(choices, (None, "checkpoint", "checkpoint", "segment"))
        self._step = choices.pick(FIRST_STEPS)
        self._rounds = choices.pick(1 + ROUNDS_MAX)

    def is_due(self) -> bool:
        """Most often while a commit is on its way that is not the first: the first, halved,
        stops its lane.
        """
        if self._world.step < self._step:
            return False
        for region, key in self._world.deliverable():
            if key.pk.startswith(f"fold#{self.region}#") and key.sk.startswith(
                self._stays or "checkpoint"
            ):
                cell = self._world.replicas[region].cell(Key(key.pk, "checkpoint"))
                if self._first or cell is not None:
                    return True
        return False

    def strike(self) -> None:
        world, record = self._world, self._record
        for region, key in world.deliverable():
            if world.choices.pick(2) if self._stays is None else not key.sk.startswith(self._stays):
                world.deliver(region, key)
        world.remake(self.region)
        world.settle_late()
        world.now_ms += LANDING_MAX_MS
        lost = self._lost()
        for asked in record.asked:
            asked.acknowledged = asked.acknowledged and asked.number not in lost
        for rivals in record.rivals:
            rivals.acknowledged = rivals.acknowledged and not rivals.numbers <= lost
        record.lost |= lost
        if self._cast.stage.log is not None:
            self._cast.stage.log("the world", f"the replica in {self.region} is made again", "")
        # else each of two may be listed: a person decides then
        for _ in range(0 if record.rivals else self._rounds):
            self._goes_on()
        # between a rebuild and the next settle one of these lanes may be in no value
        for asked in record.asked:
            if asked.delta.lane.region == self.region:
                asked.on_time = False
                record.lost.add(asked.number)
        for lane in self._lanes:
            self._rebuild(lane)

    def _lost(self) -> set[int]:
        """The changes that no item of the new replica names."""
        shelves = [
            shelf(self._world, lane, self.region) for lane in self._cast.settings.lanes_of(COUNTER)
        ]
        named = {token for held, listed, _ in shelves for token in held | listed}
        return {
            asked.number
            for asked in self._record.asked
            if tokens.to_bytes(asked.delta.token) not in named
        }

    def _goes_on(self) -> None:
        """Nobody has noticed: a change is added, so that what was halved is built upon, and each
        lane is visited.
        """
        world, own = self._world, self._cast.own(self.region)
        # more than the commit that was halved
        own = replace(own, fold_min=1, fold_max=2 * own.fold_max)
        for number in self._cast.numbers(1):
            asked = Sender(self._cast, self.region).ask(number, world.now_ms)
            finish(world, self.region, add(asked.delta))
            asked.acknowledged = True
        world.now_ms += own.keep_ms
        for lane in self._lanes:
            with suppress(GaveUp, LedgerError):  # a damaged lane
                finish(world, self.region, visit(lane, Tally(), own))
        world.now_ms += LANDING_MAX_MS

    def _rebuild(self, lane: Lane) -> None:
        """The operator's work, until it has an answer."""
        try:
            with suppress(GaveUp):
                finish(self._world, self.region, rebuild(lane))
                return
            self._world.now_ms += LANDING_MAX_MS  # the clock of who committed was ahead
            finish(self._world, self.region, rebuild(lane))
        except (DamagedItem, LaneDamaged) as damage:
            if not finish(self._world, self.region, _gave_up_for_lost(lane)):
                self._record.broken.append(f"a rebuild of {lane}: {damage}")


def _gave_up_for_lost(lane: Lane) -> Program[bool]:
    """Delete a checkpoint without any segment, and its clean note; whether the lane is one of
    those.
    """
    page: Page = yield Query(items.fold_pk(lane), items.SEGMENTS_FROM, items.SEGMENTS_UPTO, limit=1)
    if page.items:
        return False
    held: list[Item | None] = []
    for key in (items.checkpoint_key(lane), items.note_key(lane)):
        held.append((yield Get(key)))
    yield DeleteMany(tuple(item for item in held if item is not None))
    return True
