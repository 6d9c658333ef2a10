"""`AddFromQueue`: a batch of SQS messages, of one change or of many, becomes one `Ledger.add_many`.

Rule 1: A message leaves the queue only when every one of its changes is recorded, now or before, or accepted in a pack,
or refused by its limit, which is an answer and final.
Rule 2: Every other one is reported as failed, so that SQS keeps it, tries it again, and in the end moves it to the
dead-letter queue.
Rule 3: Poison is not told apart there, because deleting it here would lose it.
Rule 4: A batch in which all have failed is reported item by item too, and is not an error of the function.
Rule 5: Log lines name no amount, and what failed for many changes of a message at once has one line, not one a change.
Rule 6: Where there is a queue of outcomes, a message is acknowledged when its outcomes are on it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from ledger import Ledger
from ledger.errors import (
    GateLost,
    GaveUp,
    LedgerError,
    LimitMismatch,
    LimitReached,
    NotQueued,
    OutOfReach,
    TableError,
)
from ledger.message import loads_many
from service.add_from_queue.outcomes import Outcomes, outcome_of
from service.observe import Outcome, Watch, tell_each

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from ledger import Change


TOGETHER = (TableError, OutOfReach, GaveUp, GateLost, LimitMismatch)
"""What befalls many changes at once."""


class AddFromQueue:
    """The handler. It keeps nothing from one batch to the next. pack: as `Ledger.add_many` takes it. outcomes: where it
    is told of each change of a limited counter whether it counts."""

    def __init__(self, ledger: Ledger, watch: Watch, *, pack: bool, outcomes: Outcomes | None = None) -> None:
        self._ledger = ledger
        self._watch = watch
        self._pack = pack
        self._outcomes = outcomes

    def __call__(self, event: dict[str, Any], context: LambdaContext | None = None) -> PartialItemFailureResponse:
        """The messages that failed. Raises Powertools' UnexpectedBatchTypeError for an event without Records."""
        outcomes: dict[str, list[Outcome]] = {}
        lost: dict[str, NotQueued] = {}

        def handle(record: SQSRecord) -> None:
            if record.message_id in lost:
                raise lost[record.message_id]
            for outcome in outcomes[record.message_id]:
                if isinstance(outcome, LedgerError) and not isinstance(outcome, LimitReached):
                    raise outcome

        processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        records = event.get("Records")
        if isinstance(records, list):
            outcomes, lost = self._add(records)
        response = process_partial_response(event, handle, processor, context)
        told = {"messages": len(outcomes), "changes": sum(map(len, outcomes.values()))}
        self._watch.logger.info("added a batch", extra=told | {"failed": len(response["batchItemFailures"])})
        return response

    def _add(self, records: list[dict[str, Any]]) -> tuple[dict[str, list[Outcome]], dict[str, NotQueued]]:
        """For each message the outcomes of its changes, or the one error for which it cannot be read; and the messages
        of which an outcome may not be on its queue."""
        outcomes: dict[str, list[Outcome]] = {}
        messages: dict[str, list[Change]] = {}
        for record in records:
            try:
                messages[record["messageId"]] = loads_many(record["body"])
            except LedgerError as error:
                outcomes[record["messageId"]] = [error]
        changes = [change for asked in messages.values() for change in asked]
        added = iter(self._ledger.add_many(changes, pack=self._pack))
        outcomes |= {message_id: list(islice(added, len(asked))) for message_id, asked in messages.items()}
        tell_each(self._watch, _told(outcomes))
        return outcomes, self._queue(messages, outcomes)

    def _queue(
        self, messages: Mapping[str, Sequence[Change]], outcomes: Mapping[str, Sequence[Outcome]]
    ) -> dict[str, NotQueued]:
        """Put what was decided at gates on the queue of outcomes. Returns the messages of which one may be missing."""
        if self._outcomes is None:
            return {}
        limit_of = self._ledger.settings.limit_of
        decided = {
            message_id: [
                text
                for change, outcome in zip(asked, outcomes[message_id], strict=True)
                if limit_of(change.counter) is not None and (text := outcome_of(change, outcome)) is not None
            ]
            for message_id, asked in messages.items()
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
