"""A line of the standard logging for each call: `Ledger(settings, observe=log)`, and of every other class alike.

Rule 1: the logger is "ledger.calls"; what went well is told at DEBUG, what did not at WARNING, a refusal too.
Rule 2: a line holds no counter, no key and no amount.
"""

import logging

from ledger import Observed

LOG = logging.getLogger("ledger.calls")


def log(observed: Observed) -> None:
    """Times are in milliseconds, as the caller waited; units are DynamoDB's, "at least" where a request told none."""
    cost = observed.cost
    LOG.log(
        logging.DEBUG if observed.went_well else logging.WARNING,
        "%s %s: %.1f ms, %g requests, %g attempts, %s%g read units, %g write units",
        *(observed.name, observed.outcome, observed.milliseconds, cost.requests, cost.attempts),
        *("at least " if cost.untold else "", cost.read_units, cost.write_units),
    )
