"""A line of the standard logging for each call: `Ledger(settings, observe=log)`, and of every other class alike.

Rule 1: the logger is "ledger.calls"; what went well is told at DEBUG, what did not at WARNING, a refusal too.
Rule 2: a line holds no counter, no key and no amount.
"""

import logging

from ledger import Observed

LOG = logging.getLogger("ledger.calls")


def log(observed: Observed) -> None:
    """Times are in milliseconds, as the caller waited; units are DynamoDB's, "at least" where a request told none."""
    cost, least = observed.cost, "at least " if observed.cost.untold else ""
    LOG.log(
        logging.DEBUG if observed.went_well else logging.WARNING,
        "%s %s: %.1f ms, requests %g, attempts %g, read units %s%g, write units %s%g",
        *(observed.name, observed.outcome, observed.milliseconds, cost.requests, cost.attempts),
        *(least, cost.read_units, least, cost.write_units),
    )
