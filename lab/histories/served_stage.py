"""Where a small cast of the service plays: a late change whose message is served, and evaluations of thresholds.

Rule 1: whoever is still under way when everything stops was stopped. Its message goes on behind what was done, and what
was above the watermark is asked for once more; nobody else settles anything.
Rule 2: an evaluation that did not come to its end is begun again, as its message comes again. After that nobody looks
at the counter unless a record asks for it, as `ring` says.
"""

from dataclasses import replace
from typing import Any

from compactor.named import Named, Naming, settle_named
from compactor.report import Tally
from lab.histories.boards import HOME
from lab.histories.cast import COUNTER
from lab.histories.history import strays_left
from lab.histories.served_judge import wrong_crossings
from lab.histories.stage import LANE, Stage
from lab.histories.theatre import finish
from ledger import tokens
from ledger.lane.add import add
from ledger.limit import Threshold
from ledger.requests import Key, Program
from reader.balances import balances
from service.ring.records import arrived
from service.thresholds.evaluate import Evaluated, evaluate
from service.thresholds.event_bus import Publish
from simulator.world import Stamp, World


class ServedStage(Stage):
    """naming: how far the message of a late change came; None before it was served."""

    naming: Naming | None = None

    def named(self, number: int) -> None:
        """A change comes late, and its message is served."""
        late = self.asked(number)

        def program() -> Program[None]:
            yield from add(late.delta)
            late.acknowledged = True
            self.naming = Naming(Named((late.delta.token,)))
            yield from settle_named(LANE, Tally(), self.naming, fold_max=5)

        self.enter("a late change and its message", HOME, program)

    def known(self) -> object:
        return super().known(), repr(self.naming)

    def judged(self) -> list[str]:
        if self.naming is None:
            return self.at_rest()
        self.world.quiesce()
        rest = Naming(self.naming.undone)
        finish(self.world, HOME, settle_named(LANE, Tally(), rest, fold_max=5))
        finish(self.world, HOME, settle_named(LANE, Tally(), Naming(self.naming.above | rest.above), fold_max=5))
        strays = map(tokens.from_bytes, strays_left(self.world, LANE))
        return [f"the stray {token} was named twice, and is in no sum" for token in strays] or self.at_rest()


class BusWorld(World):
    """With an event bus, and what was written since somebody took it."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.events: list[dict[str, Any]] = []
        self.written: list[Key] = []

    def answer(self, region: str, request: Any) -> Any:
        if not isinstance(request, Publish):
            return super().answer(region, request)
        return self.events.append(request.detail)

    def _store(self, region: str, key: Key, item: Any, stamp: Stamp) -> None:
        super()._store(region, key, item, stamp)
        if region == HOME:
            self.written.append(key)


class ThresholdStage(Stage):
    kind = BusWorld
    world: BusWorld

    def told_of(self, *thresholds: Threshold) -> None:
        self.settings = replace(self.settings, thresholds={COUNTER: thresholds})

    def known(self) -> object:
        return super().known(), repr(self.world.events), len(self.world.written)

    def evaluation(self, name: str, *added: int) -> None:
        """Some changes are added, and what rang for them is served."""
        deltas = [self.asks(number).delta for number in added]

        def program() -> Program[None]:
            for delta in deltas:
                yield from add(delta)
            self.world.written = []
            yield from evaluate(COUNTER, self.settings, Evaluated())

        self.enter(name, HOME, program)

    def judged(self) -> list[str]:
        world, settings = self.world, self.settings
        left = not all(process.done for process in self.processes)
        while left or self._asks_for_an_evaluation():
            left, world.written = False, []
            finish(world, HOME, evaluate(COUNTER, settings, Evaluated()))
        value = finish(world, HOME, balances([COUNTER], settings, consistent=True))[COUNTER].value
        return [
            wrong
            for threshold in settings.told_here(COUNTER)
            for wrong in wrong_crossings(world, settings, COUNTER, threshold, value, world.events, set())
        ]

    def _asks_for_an_evaluation(self) -> bool:
        """Whether the records of what was written do."""
        keys = [{"pk": {"S": key.pk}, "sk": {"S": key.sk}} for key in self.world.written]
        records = [{"eventName": "MODIFY", "dynamodb": {"Keys": key}} for key in keys]
        return bool(arrived(records, self.settings).evaluated)
