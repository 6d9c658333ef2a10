"""The table's stream -> marks: a new delta of a lane of this Region touches the lane's mark.

Rule 1: Whatever a record holds, it never fails the batch: what is no new delta of this Region is counted and passed by.
Rule 2: A delta that came by replication is as good as one put here. One touch a lane and batch.
Rule 3: A lane that this process touched a moment ago is spared (marks.py says why that is safe), unless a delta is
late. When touches fail, the first record whose lane is not marked is named: the event source sends it and all after it
again, and a touch may be repeated.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger import items, tokens
from ledger.errors import LedgerError
from ledger.settings import Settings
from ledger.values import Lane
from service import observe
from service.marks import TOUCH_EVERY_MS, Touch
from service.runtime import Runtime

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

TIME_S_MAX = 10**11
"""No time of a stream record is this far from 1970, in seconds."""


@dataclass(slots=True)
class Arrived:
    """What a batch says of one lane: the sequence number of its first delta there, how many came, how many late."""

    first: str
    deltas: int = 0
    late: int = 0


def arrived(record: Any, region: str) -> tuple[Lane, str, int | None] | None:
    """(lane, token, when the record was made) of a new delta of `region`; None for every other record."""
    match record:
        case {"eventName": "INSERT", "dynamodb": {"Keys": {"pk": {"S": str(pk)}, "sk": {"S": str(sk)}}} as change}:
            found, token = items.lane_of(pk), items.highest_of(sk)
        case _:
            return None
    if found is None or found[0] != "delta" or found[1].region != region or token is None:
        return None
    made = change.get("ApproximateCreationDateTime")
    known = isinstance(made, int | float) and not isinstance(made, bool) and 0 <= made < TIME_S_MAX
    return found[1], token, int(made * 1_000) if known else None


def gather(records: Iterable[Any], region: str, allowed_lateness_ms: int) -> tuple[dict[Lane, Arrived], int]:
    """What came, by lane, in the order of the stream; and how many records were none of ours."""
    lanes: dict[Lane, Arrived] = {}
    ignored = 0
    for record in records:
        delta = arrived(record, region)
        if delta is None:
            ignored += 1
            continue
        lane, token, made_ms = delta
        seen = lanes.setdefault(lane, Arrived(sequence_of(record)))
        seen.deltas += 1
        seen.late += made_ms is not None and made_ms - tokens.time_ms(token) > allowed_lateness_ms
    return lanes, ignored


def sequence_of(record: Mapping[str, Any]) -> str:
    return str(record["dynamodb"].get("SequenceNumber", ""))


class Marker:
    """Handles the batches of one process, and remembers what it touched."""

    def __init__(self, settings: Settings, runtime: Runtime, log: Logger, metrics: observe.Metered) -> None:
        self._settings, self._runtime = settings, runtime
        self._log, self._metrics = log, metrics
        self._touched_ms: dict[Lane, int] = {}

    def __call__(self, event: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
        """The partial batch response: the first record to be sent again, if any."""
        lanes, ignored = gather(event.get("Records", ()), self._settings.region, self._settings.allowed_lateness_ms)
        now_ms = self._runtime.now().wall_ms
        self._touched_ms = {k: ms for k, ms in self._touched_ms.items() if 0 <= now_ms - ms < TOUCH_EVERY_MS}
        todo = {lane: seen for lane, seen in lanes.items() if seen.late or lane not in self._touched_ms}
        answers = self._runtime.run_each(self._touch(lane, seen, now_ms) for lane, seen in todo.items())
        failed = [
            (todo[lane].first, answer)
            for lane, answer in zip(todo, answers, strict=True)
            if isinstance(answer, LedgerError)
        ]
        late = sum(seen.late for seen in lanes.values())
        observe.count(self._metrics, observe.LANES_MARKED, len(todo) - len(failed))
        observe.count(self._metrics, observe.LATE_DELTAS, late)
        observe.count(self._metrics, observe.RECORDS_IGNORED, ignored)
        if not failed:
            return {"batchItemFailures": []}
        first, error = failed[0]  # lanes are in the order of their first records
        self._log.error("a lane was not marked", extra={"lanes": len(failed), "reason": str(error), "from": first})
        if not first:
            raise error
        return {"batchItemFailures": [{"itemIdentifier": first}]}

    def _touch(self, lane: Lane, seen: Arrived, now_ms: int) -> Generator[Any, Any, None]:
        wait_ms = 0 if seen.late else self._settings.allowed_lateness_ms
        yield Touch(lane, now_ms, now_ms + wait_ms, late=seen.late > 0)
        self._touched_ms[lane] = now_ms
        if seen.late:
            self._log.info("late deltas", extra={"lane": str(lane), "late": seen.late})
