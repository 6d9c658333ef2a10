"""Where a small cast of the service plays: a late change whose message is served, and evaluations
of thresholds.

Rule 1: whoever is still under way when everything stops was stopped. Its message goes on behind
what was done, and what was above the watermark is asked for once more; nobody else settles
anything.
Rule 2: an evaluation that did not come to its end is begun again, as its message comes again. After
that nobody looks at the counter unless a record asks for it, as `ring` says.
"""

from dataclasses import replace

from compactor.commit import LANDING_MAX_MS
from compactor.known import KnownCovers
from compactor.rebuild import rebuild
from compactor.report import Tally
from compactor.settle_named import Naming, settle_named
from lab.histories.casts.lane_steps import LANE, LaneSteps
from lab.histories.casts.part import HOME, process
from lab.histories.judges.lanes import COUNTER
from lab.histories.judges.service import wrong_crossings
from lab.histories.stage.served_world import ServedWorld
from lab.histories.stage.stage import finish, strays_left
from ledger.core import items, tokens
from ledger.core.entries import Entries, packed
from ledger.core.limit import Threshold
from ledger.core.requests import Item, Program, Put
from ledger.core.values import Segment
from ledger.lane.add import add
from ledger.lane.named import Named
from reader.read import balances
from service.ring.records import arrived
from service.thresholds.evaluate import evaluate
from service.thresholds.event_bus import Evaluated
from simulator.process import Log


class LateSteps(LaneSteps):
    """naming: how far the message of a late change came; None before it was served."""

    naming: Naming | None = None

    def __init__(self, order: tuple[int, ...], log: Log | None = None) -> None:
        super().__init__(order, log)
        self.remembers = KnownCovers()

    def warmed(self, number: int) -> None:
        """Its message is served, by the process that serves the next one."""
        what = Naming(Named((self.asked(number).delta.token,)))
        self.alone(settle_named(LANE, Tally(), what, fold_max=5, known=self.remembers))

    def half(self, *numbers: int, version: int) -> None:
        """Half of a commit is there, a segment that lists them; the rest is lost."""
        deltas = [self.asked(number).delta for number in numbers]
        entries = Entries.of(packed(delta.token, delta.change) for delta in deltas)
        self.alone(_put(items.segment_item(Segment(LANE, deltas[-1].token, version, entries))))

    def rebuilt(self) -> None:
        """By an operator, who waits before."""
        self.wait(LANDING_MAX_MS)
        self.alone(rebuild(LANE))

    @process
    def named(self, region: str, number: int) -> Program[None]:
        late = self.asked(number)
        yield from add(late.delta)
        late.acknowledged = True
        self.naming = Naming(Named((late.delta.token,)))
        yield from settle_named(LANE, Tally(), self.naming, fold_max=5, known=self.remembers)

    def known(self) -> object:
        return super().known(), repr(self.naming)

    def judged(self) -> list[str]:
        if self.naming is None:
            return super().judged()
        self.world.quiesce()
        rest = Naming(self.naming.undone)
        finish(self.world, HOME, settle_named(LANE, Tally(), rest, fold_max=5))
        finish(
            self.world,
            HOME,
            settle_named(LANE, Tally(), Naming(self.naming.above | rest.above), fold_max=5),
        )
        strays = map(tokens.from_bytes, strays_left(self.world, LANE))
        return [
            f"the stray {token} was named twice, and is in no sum" for token in strays
        ] or super().judged()


def _put(item: Item) -> Program[None]:
    yield Put(item)


class ThresholdSteps(LaneSteps):
    kind = ServedWorld
    world: ServedWorld

    def __init__(self, order: tuple[int, ...], log: Log | None = None) -> None:
        super().__init__(order, log)
        self.world.shows_changes = True
        self.post = self.world.posts[HOME]

    def told_of(self, *thresholds: Threshold) -> None:
        self.settings = replace(self.settings, thresholds={COUNTER: thresholds})

    def known(self) -> object:
        return super().known(), repr(self.post.events), len(self.post.records)

    @process
    def evaluation(self, region: str, *added: int) -> Program[None]:
        """Some changes are added, and what rang for them is served."""
        for number in added:
            yield from add(self.asked(number).delta)
        self.post.records.clear()
        yield from evaluate(COUNTER, self.settings, Evaluated())

    def decides(self) -> object | None:
        # the judgement asks whether a process is left, and what the records of writes say
        return None

    def judged(self) -> list[str]:
        world, settings = self.world, self.settings
        left = not all(process.done for process in self.processes)
        while left or self._asks_for_an_evaluation():
            left = False
            self.post.records.clear()
            finish(world, HOME, evaluate(COUNTER, settings, Evaluated()))
        value = finish(world, HOME, balances([COUNTER], settings, consistent=True))[COUNTER].value
        return [
            wrong
            for threshold in settings.told_here(COUNTER)
            for wrong in wrong_crossings(
                world, settings, COUNTER, threshold, value, self.post.events, set()
            )
        ]

    def _asks_for_an_evaluation(self) -> bool:
        """Whether the records of what was written do."""
        keys = [record.key for record in self.post.records]
        shown = [{"pk": {"S": key.pk}, "sk": {"S": key.sk}} for key in keys]
        records = [{"eventName": "MODIFY", "dynamodb": {"Keys": each}} for each in shown]
        return bool(arrived(records, self.settings).evaluated)
