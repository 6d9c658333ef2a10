"""Cursors of the history: where the next page begins, as text that callers keep and do not read.

Rule 1: A cursor belongs to one counter and is refused for another.
Rule 2: It holds a place, no secret and no state of ours, so it never expires.
"""

import base64
import hashlib
import re

from ledger import tokens
from reader import Position
from service.api.problems import NOT_WRITTEN, Problem

_PLACE = re.compile(r"1\.([0-9A-Z]{26})\.([a-z0-9-]{1,32})\.([0-9a-f]{8})")
CURSOR = "^[A-Za-z0-9_-]{52,94}$"
"""What a cursor is written with."""


def text_of(counter: str, position: Position) -> str:
    place = f"1.{position.token}.{position.region}.{_digest(counter)}"
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def position_of(counter: str, text: str) -> Position:
    """The place that a cursor of this counter names. Raises Problem."""
    if re.fullmatch(CURSOR, text) and len(text) % 4 != 1:
        place = _PLACE.fullmatch(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("latin-1"))
        if place and tokens.is_token(place[1]) and place[3] == _digest(counter):
            return Position(place[1], place[2])
    raise Problem(
        "invalid-cursor", f"A cursor is the next of an earlier page of the same counter, unchanged. {NOT_WRITTEN}"
    )


def _digest(counter: str) -> str:
    return hashlib.sha256(counter.encode()).hexdigest()[:8]
