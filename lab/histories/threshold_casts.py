"""The small casts of thresholds: an evaluation while a change comes, which brings another one.

Rule 1: An evaluation that did not come to its end is begun again, as its message comes again. After that nobody looks
at the counter unless a record asks for it, as `ring` says.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lab.histories.boards import HOME
from lab.histories.cast import COUNTER
from lab.histories.history import finish
from lab.histories.served_thresholds import grown, kept, sent
from lab.histories.stage import Stage
from ledger.lane.add import add
from ledger.limit import Threshold
from ledger.requests import Key, Program
from ledger.settings import Settings
from ledger.values import Delta
from reader.balances import balances
from service.ring.records import arrived
from service.thresholds.evaluate import Evaluated, evaluate
from service.thresholds.event_bus import Publish
from simulator.process import Log
from simulator.world import Stamp, World

BELOW, ABOVE = Threshold(below=5), Threshold(above=4)


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

    def __init__(self, order: tuple[int, ...], log: Log | None = None) -> None:
        super().__init__(order, log)
        self.judge = told_at_the_end

    def told_of(self, *thresholds: Threshold) -> None:
        self.settings = replace(self.settings, thresholds={COUNTER: thresholds})

    def known(self) -> object:
        return super().known(), repr(self.world.events), len(self.world.written)

    def evaluation(self, name: str, *deltas: Delta) -> None:
        """Some changes are added, and what rang for them is served."""

        def program() -> Program[None]:
            for delta in deltas:
                yield from add(delta)
            self.world.written = []
            yield from evaluate(COUNTER, self.settings, Evaluated())

        self.enter(name, HOME, program)


def told_at_the_end(stage: Stage) -> list[str]:
    assert isinstance(stage, ThresholdStage)
    world, settings = stage.world, stage.settings
    left = not all(process.done for process in stage.processes)
    while left or _asked(settings, world.written):
        left, world.written = False, []
        finish(world, HOME, evaluate(COUNTER, settings, Evaluated()))
    value = finish(world, HOME, balances([COUNTER], settings, consistent=True))[COUNTER].value
    wrong: list[str] = []
    for threshold in settings.told_here(COUNTER):
        events = [each for each in world.events if each["threshold"] == threshold.name]
        wrong += kept(world, settings, COUNTER, threshold, value, events)
        wrong += [*sent(threshold, events), *grown(events, set())]
    return wrong


def _asked(settings: Settings, keys: Sequence[Key]) -> bool:
    """Whether the records of these writes ask for an evaluation."""
    records = [
        {"eventName": "MODIFY", "dynamodb": {"Keys": {"pk": {"S": key.pk}, "sk": {"S": key.sk}}}} for key in keys
    ]
    return bool(arrived(records, settings).evaluated)


def an_evaluation_while_a_change_comes(stage: ThresholdStage) -> None:
    """To below: what the first one read holds no more."""
    stage.told_of(BELOW)
    stage.delta(0)
    stage.evaluation("an evaluation")
    stage.evaluation("a change and its evaluation", stage.delta(1, put=False))


def an_evaluation_while_a_change_comes_that_crosses(stage: ThresholdStage) -> None:
    stage.told_of(ABOVE)
    stage.delta(0)
    stage.evaluation("an evaluation")
    stage.evaluation("a change and its evaluation", stage.delta(1, put=False))


def an_evaluation_and_a_change_whose_updates_are_sent_twice(stage: ThresholdStage) -> None:
    stage.resends = True
    stage.told_of(BELOW)
    stage.delta(0)
    stage.evaluation("an evaluation")
    stage.evaluation("a change and its evaluation", stage.delta(1, put=False))


def a_stray_is_settled_beside_an_evaluation(stage: ThresholdStage) -> None:
    stage.told_of(Threshold(above=16))
    stage.delta(2, old_ms=2_000)
    stage.folded()
    stage.delta(0, old_ms=2_500, stray=True)
    stage.evaluation("an evaluation")
    stage.settle()


THRESHOLD_CASTS = (
    a_stray_is_settled_beside_an_evaluation,
    an_evaluation_while_a_change_comes,
    an_evaluation_while_a_change_comes_that_crosses,
    an_evaluation_and_a_change_whose_updates_are_sent_twice,
)
