"""A batch of the table's stream, with what became of it as metrics and log lines.

Rule 1: The first record of the first lane that failed is named: the event source sends it and all after it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ledger.settings import Settings
from service import observe
from service.ring.records import arrived
from service.ring.ring import EVERY_S, Memory, Rung, ring
from service.runtime import Runtime

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger


class Ringer:
    """Handles the batches of one process, and remembers what it did."""

    def __init__(
        self, settings: Settings, runtime: Runtime, log: Logger, metrics: observe.Metered, every_s: int = EVERY_S
    ) -> None:
        self._settings, self._runtime, self._every_s = settings, runtime, every_s
        self._log, self._metrics = log, metrics
        self._memory = Memory()

    def __call__(self, event: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
        """The partial batch response: the first record to be sent again, if any."""
        batch = arrived(event.get("Records", ()), self._settings)
        done = Rung()
        self._runtime.run(ring(batch, done, self._memory, self._settings, self._every_s))
        counts = {
            observe.LANES_RUNG: done.rung,
            observe.RINGS_SPARED: done.spared,
            observe.LATE_DELTAS: done.late,
            observe.LANES_LISTED: done.listed,
            observe.RECORDS_IGNORED: batch.ignored,
        }
        for name, value in counts.items():
            observe.count(self._metrics, name, value)
        if done.late:
            late = [str(lane) for lane, seen in batch.lanes.items() if seen.late]
            self._log.info("late changes", extra={"late": done.late, "lanes": late[: observe.LANES_LOGGED]})
        if not done.failed:
            return {"batchItemFailures": []}
        error, sequence = next(iter(done.failed.values())), batch.first_of(done.failed).sequence
        told = {"lanes": len(done.failed), "reason": str(error), "from": sequence}
        self._log.error("lanes were not rung for: their records come again", extra=told)
        if not sequence:
            raise error
        return {"batchItemFailures": [{"itemIdentifier": sequence}]}
