"""`AddFromQueue`: a batch of SQS messages becomes one `Ledger.add_many`.

Rule 1: A message leaves the queue only when its change is recorded, now or before.
Rule 2: Every other one is reported as failed, so that SQS keeps it, tries it again, and in the end moves it to the
dead-letter queue.
Rule 3: Poison is not told apart there, because deleting it here would lose it.
Rule 4: A batch in which all have failed is reported item by item too, and is not an error of the function.
Rule 5: Log lines name no amount.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

from ledger import Ledger
from ledger.errors import LedgerError
from ledger.message import loads
from service.observe import Outcome, Watch, tell

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from ledger import Change


class AddFromQueue:
    """The handler. It keeps nothing from one batch to the next."""

    def __init__(self, ledger: Ledger, watch: Watch) -> None:
        self._ledger = ledger
        self._watch = watch

    def __call__(self, event: dict[str, Any], context: LambdaContext | None = None) -> PartialItemFailureResponse:
        """The messages that failed. Raises Powertools' UnexpectedBatchTypeError for an event without Records."""
        outcomes: dict[str, Outcome] = {}

        def handle(record: SQSRecord) -> None:
            outcome = outcomes[record.message_id]
            if isinstance(outcome, LedgerError):
                raise outcome

        processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
        records = event.get("Records")
        if isinstance(records, list):
            outcomes |= self._add(records)
        response = process_partial_response(event, handle, processor, context)
        self._watch.logger.info(
            "added a batch", extra={"messages": len(outcomes), "failed": len(response["batchItemFailures"])}
        )
        return response

    def _add(self, records: list[dict[str, Any]]) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        changes: dict[str, Change] = {}
        for record in records:
            try:
                changes[record["messageId"]] = loads(record["body"])
            except LedgerError as error:
                outcomes[record["messageId"]] = error
        outcomes |= zip(changes, self._ledger.add_many(changes.values()), strict=True)
        for message_id, outcome in outcomes.items():
            tell(self._watch, outcome, message_id=message_id)
        return outcomes
