"""`AddFromQueue`: a batch of SQS messages, of one change or of many, becomes one `Ledger.add_many`.

Rule 1: A message is acknowledged only when every one of its changes is recorded, now or before, or accepted in a pack,
or refused by its limit, which is an answer and final; or when it is poison, and a copy is on the dead-letter queue.
Rule 2: Poison is what no retry changes: a message that cannot be read, a change that is refused as invalid, a key that
stands for another change. It goes to the dead-letter queue at once and whole, and its good changes count once.
Rule 3: What the table or a queue did not do is reported as failed and comes again, later each time, until it is done:
also a message of which another change is poison.
Rule 4: A change that is ahead of this clock by no more than the longest wait comes again when its time is there.
Rule 5: A batch in which all have failed is reported item by item too, and is not an error of the function: the metric
ChangesFailed counts its messages, but those that wait for their time alone.
Rule 6: Log lines name no amount, and what failed for many changes of a message at once has one line, not one a change.
Rule 7: Where there is a queue of outcomes, a message is acknowledged when its outcomes are on it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from ledger import Ledger
from ledger.calls import AHEAD_MAX_MS
from ledger.checks import to_ms
from ledger.clocks import Clock, wall_clock
from ledger.errors import (
    GateLost,
    GaveUp,
    InvalidInput,
    InvalidTime,
    LedgerError,
    LimitMismatch,
    LimitReached,
    NotQueued,
    OutOfReach,
    TableError,
    TokenConflict,
)
from ledger.message import loads_many
from service.add_from_queue.dead_letters import DeadLetters
from service.add_from_queue.outcomes import Outcomes, outcome_of
from service.add_from_queue.waits import WAIT_MAX_S, Record, Waits
from service.observe import CHANGES_FAILED, Outcome, Watch, tell_each
from service.writable import Names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from ledger import Change

    Asked = Mapping[str, Sequence[Change]]
    Decided = Mapping[str, Sequence[Outcome]]

POISON = (InvalidInput, TokenConflict)
"""What no retry changes."""

TOGETHER = (TableError, OutOfReach, GaveUp, GateLost, LimitMismatch)
"""What befalls many changes at once."""


class AddFromQueue:
    """The handler. It keeps nothing from one batch to the next. pack: as `Ledger.add_many` takes it. outcomes: where it
    is told of each change of a limited counter whether it counts. names: which counters it writes. Without dead_letters
    and waits what failed is the queue's own policy."""

    def __init__(
        self,
        ledger: Ledger,
        watch: Watch,
        *,
        pack: bool,
        outcomes: Outcomes | None = None,
        names: Names | None = None,
        dead_letters: DeadLetters | None = None,
        waits: Waits | None = None,
        clock: Clock = wall_clock,
    ) -> None:
        self._ledger = ledger
        self._watch = watch
        self._pack = pack
        self._outcomes = outcomes
        self._names = names or Names()
        self._dead_letters = dead_letters
        self._waits = waits
        self._clock = clock

    def __call__(self, event: dict[str, Any], context: LambdaContext | None = None) -> PartialItemFailureResponse:
        """The messages that failed. Raises Powertools' UnexpectedBatchTypeError for an event without Records."""
        failed: dict[str, LedgerError] = {}

        def handle(record: SQSRecord) -> None:
            if record.message_id in failed:
                raise failed[record.message_id]

        processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        records = event.get("Records")
        told = dict.fromkeys(("messages", "changes", "buried"), 0)
        if isinstance(records, list):
            asked, outcomes = self._add(records)
            failed, told["buried"] = self._finish(records, asked, outcomes)
            told |= {"messages": len(outcomes), "changes": sum(map(len, outcomes.values()))}
        response = process_partial_response(event, handle, processor, context)
        self._watch.logger.info("added a batch", extra=told | {"failed": len(response["batchItemFailures"])})
        return response

    def _finish(self, records: Sequence[Record], asked: Asked, outcomes: Decided) -> tuple[dict[str, LedgerError], int]:
        """Copy poison to the dead-letter queue, and let what is not done come again later. The messages that stay in
        the queue, with why; and how many were copied."""
        lost = self._tell_outcomes(asked, outcomes)
        stays: dict[str, LedgerError] = {}
        waits: list[tuple[Record, int | None]] = []
        buried = 0
        for record in records:
            message_id = record["messageId"]
            error, wait_s = self._left_of(asked.get(message_id, ()), outcomes[message_id])
            error = lost.get(message_id, error)
            if isinstance(error, POISON) and wait_s is None and self._buried(record, error):
                buried += 1
            elif error is not None:
                stays[message_id] = error
                waits.append((record, wait_s))
        self._watch.count(CHANGES_FAILED, sum(wait_s is None for _, wait_s in waits))
        if self._waits is not None and waits:
            for why in self._waits.postpone(waits):
                self._watch.logger.warning("a wait was not set: its message comes again sooner", extra={"why": why})
        return stays, buried

    def _left_of(self, asked: Sequence[Change], outcomes: Sequence[Outcome]) -> tuple[LedgerError | None, int | None]:
        """The error for which a message is not done: one that passes, if there is one, else its poison; and how many
        seconds it takes until a change is no longer ahead of the clock, where that is all that is missing."""
        errors = [each for each in outcomes if isinstance(each, LedgerError) and not isinstance(each, LimitReached)]
        for error in errors:
            if not isinstance(error, POISON):
                return error, None
        ahead = [
            self._ahead_s(change)
            for change, each in zip(asked, outcomes, strict=False)
            if isinstance(each, InvalidTime)
        ]
        waits = [wait_s for wait_s in ahead if 0 < wait_s <= WAIT_MAX_S]
        return (errors[0], max(waits, default=None)) if errors else (None, None)

    def _ahead_s(self, change: Change) -> int:
        """In how many seconds a change's time is one that the ledger takes."""
        assert change.at is not None
        return -((self._clock() - (to_ms(change.at) - AHEAD_MAX_MS)) // 1_000)

    def _buried(self, record: Record, error: LedgerError) -> bool:
        if self._dead_letters is None:
            return False
        why = self._dead_letters.bury(record, type(error).__name__)
        extra = {"message_id": record["messageId"], "error": type(error).__name__}
        if why is None:
            self._watch.logger.warning("poison: copied to the dead-letter queue, and acknowledged", extra=extra)
        else:
            self._watch.logger.error("poison was not copied: its message comes again", extra=extra | {"why": why})
        return why is None

    def _add(self, records: Sequence[Record]) -> tuple[Asked, Decided]:
        """The changes of each message that can be read, and for each message the outcomes of its changes, or the one
        error for which it cannot be read."""
        outcomes: dict[str, list[Outcome]] = {}
        asked: dict[str, list[Change]] = {}
        for record in records:
            try:
                asked[record["messageId"]] = loads_many(record["body"])
            except LedgerError as error:
                outcomes[record["messageId"]] = [error]
        added = self._outcomes_of([change for those in asked.values() for change in those])
        outcomes |= {message_id: list(islice(added, len(those))) for message_id, those in asked.items()}
        tell_each(self._watch, _told(outcomes))
        return asked, outcomes

    def _outcomes_of(self, changes: Sequence[Change]) -> Iterator[Outcome]:
        refused = [self._names.refusal(change.counter) for change in changes]
        taken = (change for change, error in zip(changes, refused, strict=True) if error is None)
        added = iter(self._ledger.add_many(taken, pack=self._pack))
        return (error or next(added) for error in refused)

    def _tell_outcomes(self, asked: Asked, outcomes: Decided) -> dict[str, NotQueued]:
        """Put what was decided at gates on the queue of outcomes. Returns the messages of which one may be missing."""
        if self._outcomes is None:
            return {}
        limit_of = self._ledger.settings.limit_of
        decided = {
            message_id: [
                text
                for change, outcome in zip(those, outcomes[message_id], strict=True)
                if limit_of(change.counter) is not None and (text := outcome_of(change, outcome)) is not None
            ]
            for message_id, those in asked.items()
        }
        failed = self._outcomes.send(decided)
        for message_id, why in failed.items():
            self._watch.logger.error("outcomes not queued: their message comes again", extra={"message_id": message_id})
            self._watch.logger.debug("why", extra={"message_id": message_id, "why": why})
        return {message_id: NotQueued(why) for message_id, why in failed.items()}


def _told(outcomes: Mapping[str, Sequence[Outcome]]) -> Iterator[tuple[Outcome, dict[str, object]]]:
    """What is told of a batch: of many changes of a message that failed together, the first."""
    for message_id, those in outcomes.items():
        failed: set[type[LedgerError]] = set()
        for index, outcome in enumerate(those):
            if isinstance(outcome, TOGETHER):
                if type(outcome) in failed:
                    continue
                failed.add(type(outcome))
            yield outcome, {"message_id": message_id, "index": index}
