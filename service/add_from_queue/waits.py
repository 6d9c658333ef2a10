"""`wait_of`: when a message that stays in the changes queue comes again.

Rule 1: The wait doubles with each receive, to WAIT_MAX_S, so that an outage of minutes is met by few attempts, and none
of its messages has the receives that a dead letter has.
Rule 2: It is up to a quarter shorter, so that not all come back at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]
"""A message, as Lambda hands it over."""

WAIT_S, WAIT_MAX_S = 30, 900


def wait_of(record: Record, jitter: float) -> int:
    """In seconds. jitter: from 0 to 1."""
    receives = int(record["attributes"]["ApproximateReceiveCount"])
    longest = min(WAIT_MAX_S, WAIT_S * 2 ** min(receives - 1, 10))
    return int(longest * (1 - jitter / 4))
