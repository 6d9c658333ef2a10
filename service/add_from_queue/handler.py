"""`AddFromQueue`: a batch of SQS messages, of one change or of many, becomes one `Ledger.add_many`.

Rule 1: A message leaves the queue only when every one of its changes is recorded, now or before, or accepted in a pack.
Rule 2: Every other one is reported as failed, so that SQS keeps it, tries it again, and in the end moves it to the
dead-letter queue.
Rule 3: Poison is not told apart there, because deleting it here would lose it.
Rule 4: A batch in which all have failed is reported item by item too, and is not an error of the function.
Rule 5: Log lines name no amount, and a put that failed has one line a message, not one a change.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from ledger import Ledger
from ledger.errors import LedgerError, TableError
from ledger.message import loads_many
from service.observe import Outcome, Watch, tell_each

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from ledger import Change


class AddFromQueue:
    """The handler. It keeps nothing from one batch to the next. pack: as `Ledger.add_many` takes it."""

    def __init__(self, ledger: Ledger, watch: Watch, *, pack: bool) -> None:
        self._ledger = ledger
        self._watch = watch
        self._pack = pack

    def __call__(self, event: dict[str, Any], context: LambdaContext | None = None) -> PartialItemFailureResponse:
        """The messages that failed. Raises Powertools' UnexpectedBatchTypeError for an event without Records."""
        outcomes: dict[str, list[Outcome]] = {}

        def handle(record: SQSRecord) -> None:
            for outcome in outcomes[record.message_id]:
                if isinstance(outcome, LedgerError):
                    raise outcome

        processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        records = event.get("Records")
        if isinstance(records, list):
            outcomes |= self._add(records)
        response = process_partial_response(event, handle, processor, context)
        told = {"messages": len(outcomes), "changes": sum(map(len, outcomes.values()))}
        self._watch.logger.info("added a batch", extra=told | {"failed": len(response["batchItemFailures"])})
        return response

    def _add(self, records: list[dict[str, Any]]) -> dict[str, list[Outcome]]:
        """For each message the outcomes of its changes, or the one error for which it cannot be read."""
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
        return outcomes


def _told(outcomes: Mapping[str, Sequence[Outcome]]) -> Iterator[tuple[Outcome, dict[str, object]]]:
    """What is told of a batch: of many changes of a message that failed with their put or their request, the first."""
    for message_id, those in outcomes.items():
        failed: set[type[LedgerError]] = set()
        for index, outcome in enumerate(those):
            if isinstance(outcome, TableError):
                if type(outcome) in failed:
                    continue
                failed.add(type(outcome))
            yield outcome, {"message_id": message_id, "index": index}
