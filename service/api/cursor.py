"""Cursors: where the next page of a history, or of the list of counters, begins, as text that
callers do not read.

Rule 1: A cursor belongs to one counter, or to one prefix of a list; the API refuses it for another.
Rule 2: It holds a place, and no secret or state of the service, so it never expires.
"""

import base64
import hashlib
import re

from ledger.core import tokens
from ledger.core.errors import InvalidInput
from reader import Place, Position
from service.api.problems import Problem

_PLACE = re.compile(r"1\.([0-9A-Z]{26})\.([a-z0-9-]{1,32})\.([0-9a-f]{8})")
_LISTED = re.compile(r"1\.([0-9]{1,3})\.([0-9a-f]{8})\.(.*)", re.DOTALL)
CURSOR = "^[A-Za-z0-9_-]{52,94}$"
AFTER = "^[A-Za-z0-9_-]{16,1400}$"
"""The characters of a cursor of a history, and of one of the list."""


def text_of(counter: str, position: Position) -> str:
    return _spelled(f"1.{position.token}.{position.region}.{_digest(counter)}")


def text_of_place(prefix: str, place: Place) -> str:
    return _spelled(f"1.{place.bucket}.{_digest(prefix)}.{place.counter}")


def position_of(counter: str, text: str) -> Position:
    """The place that a cursor of this counter names. Raises Problem."""
    place = _PLACE.fullmatch(_read(CURSOR, text))
    if place and tokens.is_token(place[1]) and place[3] == _digest(counter):
        return Position(place[1], place[2])
    raise Problem(
        "invalid-cursor",
        "Send as cursor the next of an earlier page of the same counter, unchanged.",
    )


def place_of(prefix: str, text: str) -> Place:
    """The place that a cursor of the list with this prefix names. Raises Problem."""
    listed = _LISTED.fullmatch(_read(AFTER, text))
    try:
        if listed and listed[2] == _digest(prefix):
            return Place(int(listed[1]), listed[3])
    except InvalidInput:
        pass
    raise Problem(
        "invalid-cursor",
        "Send as after the next of an earlier page with the same prefix, unchanged.",
    )


def _spelled(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _read(form: str, text: str) -> str:
    """What a cursor was made of; "" when it cannot be one."""
    if not re.fullmatch(form, text) or len(text) % 4 == 1:
        return ""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode(errors="replace")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
