"""How often a lane of the deployed service is touched, visited and folded, when its changes come at random.

Rule 1: Changes are a Poisson process.
Rule 2: Plan runs every VISIT_S, and what it sends is visited at once. The constants are those of service/, which is not
installed with `ledgerctl`.
Rule 3: A test holds them together.
"""

import math

VISIT_S = 60
"""Between two runs of plan, so between two visits of a lane that is always due."""

TOUCH_S, QUIET_S = 5, 15
"""Of marks: a lane is touched at most so often; a visit so soon after a touch is followed by another."""


def touches(rate: float) -> float:
    """A second's touches: after one, the changes of TOUCH_S are spared."""
    return rate / (1 + rate * TOUCH_S)


def visited(rate: float, lateness_s: float) -> float:
    """The share of minutes in which changes make the lane due. The marks' rules as a chain from minute to minute:

    after a visit that found the mark quiet, the next minute has one if a change came `lateness_s` before it; after any
    other, certainly.
    """
    quiet = math.exp(-rate * (QUIET_S - TOUCH_S)) / (1 + rate * TOUCH_S)  # no touch for QUIET_S
    quiet_again = quiet * (1 - math.exp(-rate * (VISIT_S - QUIET_S)))
    at_rest = quiet / (1 + quiet - quiet_again - math.exp(-rate * VISIT_S))
    return 1 - at_rest * math.exp(-rate * max(0.0, VISIT_S - lateness_s))


def pending(share: float) -> float:
    """The share of time in which changes ask for a visit: from the touch, 40 of 60 seconds if they are few."""
    return share * (2 + share) / 3


def visits_until(least: int, mean: float) -> float:
    """How many visits it takes, on average, until `least` changes came, `mean` of them between two visits."""
    if mean < least / 2:
        return least / mean + 0.5
    found, more = 1.0, 1.0
    for visits in range(1, 2 * least):
        more = _fewer(least, visits * mean)
        if more < 1e-9:
            break
        found += more
    return found


def _fewer(count: int, mean: float) -> float:
    """The probability that fewer than `count` of a Poisson process come where `mean` are expected."""
    return math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count))
