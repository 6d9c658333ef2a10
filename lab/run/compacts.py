"""A compactor process: runs over and over, with a clock a little askew, until it is killed.

Rule 1: It records a run after its end, so the record lacks what a killed run did.
Rule 2: A problem that a fault cannot cause (a damaged lane, a change that differs from its segment)
is recorded as broken.
"""

import random
import time
from pathlib import Path

from compactor import Compactor, Report
from lab.run.plan import SKEW_MAX_MS, Plan
from lab.run.record import Recorder
from ledger.core.errors import DamagedItem, LaneDamaged, LedgerError, TableError

PAUSE_S = (0.3, 4.0)
FIGURES = ("lanes", "folded", "settled", "cleaned", "commits", "gave_up")


def main(plan: Plan, region: str, twin: int, generation: int) -> None:
    name = f"compactor {region} {twin} generation {generation}"
    rng = random.Random(f"{plan.seed} {name}")
    skew_ms = rng.randint(-SKEW_MAX_MS, SKEW_MAX_MS)
    compactor = Compactor(plan.settings(region, region), clock=plan.clock(skew_ms))
    with Recorder(Path(plan.folder) / f"compactor-{region}-{twin}.jsonl") as recorder:
        while True:  # until it is killed
            try:
                record(recorder, name, compactor.run())
            except LedgerError as error:  # of the scan; it starts again next time
                kind = "info" if isinstance(error, TableError) else "broken"
                recorder.write(name, kind, "compact", [], error=f"{type(error).__name__}: {error}")
            time.sleep(rng.uniform(*PAUSE_S))


def record(recorder: Recorder, name: str, report: Report) -> None:
    """Records a run in one line, and each thing that must not happen in another."""
    figures = {figure: getattr(report, figure) for figure in FIGURES}
    recorder.write(name, "ok", "compact", [], **figures)
    for token in report.conflicts:
        recorder.write(
            name, "broken", "compact", [], error=f"the delta {token} differs from its segment"
        )
    for lane, error in report.problems.items():
        if isinstance(error, DamagedItem | LaneDamaged) or not isinstance(error, TableError):
            recorder.write(
                name, "broken", "compact", [], error=f"{lane}: {type(error).__name__}: {error}"
            )
