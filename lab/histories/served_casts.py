"""The small casts of the service: a change that came late, and those who are told of it by name."""

from compactor.named import Named, Naming, settle_named
from compactor.report import Tally
from lab.histories.boards import HOME
from lab.histories.history import finish
from lab.histories.stage import LANE, Stage, judged
from ledger import items, tokens
from ledger.lane.add import add
from ledger.requests import Program
from ledger.values import Delta


class ServedStage(Stage):
    """naming: how far the message of a late change came; None before it was served."""

    naming: Naming | None = None

    def named(self, late: Delta) -> None:
        """A change comes late, and its message is served."""
        asked = next(each for each in self.record.asked if each.delta == late)

        def program() -> Program[None]:
            yield from add(late)
            asked.acknowledged = True
            self.naming = Naming(Named((late.token,)))
            yield from settle_named(LANE, Tally(), self.naming, fold_max=5)

        self.enter("a late change and its message", HOME, program)

    def known(self) -> object:
        return super().known(), repr(self.naming)


def a_late_change_is_named_while_a_fold_is_under_way(stage: ServedStage) -> None:
    stage.delta(2, old_ms=2_000)
    stage.folded()
    stage.delta(1)
    late = stage.delta(0, old_ms=1_050, put=False, stray=True)
    stage.judge = asked_twice
    stage.fold()
    stage.named(late)


def a_message_of_a_late_change_is_stopped_and_goes_on(stage: ServedStage) -> None:
    stage.delta(2, old_ms=2_000)
    stage.folded()
    late = stage.delta(0, old_ms=2_050, put=False, stray=True)
    stage.judge = asked_twice
    stage.named(late)


def asked_twice(stage: Stage) -> list[str]:
    """Whoever is still under way was stopped: its message goes on behind what was done; what was above the watermark is
    asked for once more; and nobody else settles anything."""
    assert isinstance(stage, ServedStage)
    world, naming = stage.world, stage.naming
    if naming is None:
        return judged(stage)
    world.quiesce()
    rest = Naming(naming.undone)
    finish(world, HOME, settle_named(LANE, Tally(), rest, fold_max=5))
    finish(world, HOME, settle_named(LANE, Tally(), Naming(naming.above | rest.above), fold_max=5))
    cells = world.replicas[HOME].cells
    checkpoint = world.replicas[HOME].item(items.checkpoint_key(LANE))
    watermark = items.checkpoint_of(LANE, checkpoint).watermark if checkpoint else ""
    segments = [cell.item for sk, cell in cells.get(items.fold_pk(LANE), {}).items() if sk.startswith("segment#")]
    listed = {token for item in segments if item for token, _ in items.segment_of(LANE, item)}
    there = [items.delta_of(LANE, cell.item).token for cell in cells[items.delta_pk(LANE)].values() if cell.item]
    strays = [token for token in there if token <= watermark and tokens.to_bytes(token) not in listed]
    return [f"the stray {token} was named twice, and is in no sum" for token in strays] or judged(stage)


SERVED_CASTS = (a_late_change_is_named_while_a_fold_is_under_way, a_message_of_a_late_change_is_stopped_and_goes_on)
