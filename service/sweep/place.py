"""The place of a pass of the sweep, and its item.

Rule 1: Where nobody can read the place, a new pass begins.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ledger.core.requests import Item, Key, keyed
from ledger.lane import directory


class Place(NamedTuple):
    """The place of a pass: behind the sort key `after` of a bucket. began_ms: when it began. bucket
    256: it has ended."""

    began_ms: int
    bucket: int = 0
    after: str | None = None


FIRST = Place(0)


def place_key(region: str) -> Key:
    return Key(f"sweep#{region}", "cursor")


def place_item(region: str, place: Place) -> Item:
    after = {"after": {"S": place.after}} if place.after is not None else {}
    return keyed(
        place_key(region),
        began_ms={"N": str(place.began_ms)},
        bucket={"N": str(place.bucket)},
        **after,
    )


def place_of(item: Item | None, now_ms: int) -> Place:
    """The place to go on from.

    A new pass begins where there is none, nobody can read it, or it is from the future.
    """
    began, bucket = ((item or {}).get(name, {}).get("N", "") for name in ("began_ms", "bucket"))
    after = (item or {}).get("after", {}).get("S")
    if not all(
        isinstance(text, str) and re.fullmatch("[0-9]{1,15}", text) for text in (began, bucket)
    ):
        return Place(now_ms)
    place = Place(int(began), int(bucket), after if isinstance(after, str) and after else None)
    return (
        place if place.began_ms <= now_ms and place.bucket <= directory.BUCKETS else Place(now_ms)
    )
