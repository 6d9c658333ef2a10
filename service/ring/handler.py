"""A batch of the table's stream, with what became of it as metrics and log lines.

Rule 1: The first record of the first lane that failed is named: the event source sends it and all after it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.settings import Settings
from service.observe import LANES_LOGGED, Watch
from service.ring.records import arrived
from service.ring.ring import EVERY_S, Memory, Rung, ring
from service.runtime import Runtime


class Ringer:
    """Handles the batches of one process, and remembers what it did."""

    def __init__(self, settings: Settings, runtime: Runtime, watch: Watch, every_s: int = EVERY_S) -> None:
        self._settings, self._runtime, self._watch, self._every_s = settings, runtime, watch, every_s
        self._memory = Memory()

    def __call__(self, event: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
        """The partial batch response: the first record to be sent again, if any."""
        batch = arrived(event.get("Records", ()), self._settings)
        done = Rung()
        self._runtime.run(ring(batch, done, self._memory, self._settings, self._every_s))
        self._watch.publish(
            {
                "LanesRung": done.rung,
                "RingsSpared": done.skipped,
                "LateDeltas": done.late,
                "LanesListed": done.listed,
                "RecordsIgnored": batch.ignored,
            }
        )
        if done.late:
            late = [str(lane) for lane, seen in batch.lanes.items() if seen.late]
            shown = {"late": done.late, "lanes": late[:LANES_LOGGED]}
            self._watch.logger.info("late changes", extra=shown)
        if not done.failed:
            return {"batchItemFailures": []}
        error, (_, sequence) = next(iter(done.failed.values())), batch.first_of(done.failed)
        shown = {"lanes": len(done.failed), "reason": str(error), "from": sequence}
        self._watch.logger.error("lanes were not rung for: their records come again", extra=shown)
        if not sequence:
            raise error
        return {"batchItemFailures": [{"itemIdentifier": sequence}]}
