"""Cursors: where the next page of a history, or of the list of counters, begins, as text that callers do not read.

Rule 1: It holds a place, no secret and no state of ours, so it never expires. An early version wrote a digest of the
list's name into it; that is read past.
"""

import base64
import re
from collections.abc import Callable
from typing import TypeVar

from ledger.errors import InvalidInput
from reader import Place, Position
from service.api.problems import Problem

Found = TypeVar("Found")
_POSITION = re.compile(r"1\.([0-9A-Z]{26})\.([a-z0-9-]{1,32})\.(?:[0-9a-f]{8})?")
_PLACE = re.compile(r"1\.([0-9]{1,3})\.(?:[0-9a-f]{8})?\.(.*)", re.DOTALL)
CURSOR = "^[A-Za-z0-9_-]{42,94}$"
AFTER = "^[A-Za-z0-9_-]{7,1400}$"
"""What a cursor of a history is written with, and one of the list."""


def text_of(place: Position | Place) -> str:
    said = f"1.{place.token}.{place.region}." if isinstance(place, Position) else f"1.{place.bucket}..{place.counter}"
    return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")


def position_of(text: str) -> Position:
    """The place in a history that a cursor names. Raises Problem."""
    return _named(text, CURSOR, _POSITION, Position)


def place_of(text: str) -> Place:
    """The place in the list that a cursor names. Raises Problem."""
    return _named(text, AFTER, _PLACE, lambda bucket, counter: Place(int(bucket), counter))


def _named(text: str, form: str, place: re.Pattern[str], kind: Callable[[str, str], Found]) -> Found:
    try:
        said = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode() if re.fullmatch(form, text) else ""
        if found := place.fullmatch(said):
            return kind(*found.groups())
    except (ValueError, InvalidInput):
        pass
    raise Problem("invalid-cursor", "A cursor is the next of an earlier page, unchanged.")
