"""What is counted and logged of a change, whichever way it came.

Rule 1: Every outcome has one metric and at most one line above debug.
Rule 2: No such line holds an amount, so the text of an error, which may, is told at debug.
"""

from ledger import Receipt, errors
from ledger.errors import LedgerError
from service import observe
from service.observe import Watch

Outcome = Receipt | LedgerError


def tell(watch: Watch, outcome: Outcome, **fields: object) -> None:
    """Count one outcome, and log it if somebody may have to do something about it."""
    if isinstance(outcome, Receipt):
        watch.count(observe.DELTAS_RECORDED if outcome.outcome == "recorded" else observe.DELTAS_REPLAYED)
        return
    told = fields | {"error": type(outcome).__name__}
    if outcome.delta is not None:
        told |= {"lane": str(outcome.delta.lane), "token": outcome.delta.token}
    if isinstance(outcome, errors.InvalidMessage):
        told["field"] = outcome.field
    logger = watch.logger
    match outcome:
        case errors.InvalidInput():
            watch.count(observe.DELTAS_REFUSED)
            logger.warning("change refused: nothing was written, and a retry is refused again", extra=told)
        case errors.TokenConflict():
            watch.count(observe.DELTAS_CONFLICTING)
            logger.warning("token conflict: its key already stands for another change, which counts", extra=told)
        case errors.OutcomeUnknown():
            logger.warning("outcome unknown: a retry with the same key finds out, and counts once", extra=told)
        case errors.Throttled() | errors.TransactionConflict() | errors.Unavailable():
            logger.warning("change not written: it may be retried", extra=told)
        case errors.SettingsMismatch():
            logger.error("change not written: this function's settings are not the table's", extra=told)
        case _:
            logger.error("change not written: look at the table and at this function's role", extra=told)
    logger.debug("why", extra=told | {"why": str(outcome)})
