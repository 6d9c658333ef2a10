"""The message that carries a change through a queue, as JSON: {counter, change, idempotency_key, at, region}.

Rules: the key and the time are in the body, because an SQS MessageId changes when a message is redriven; nothing is
guessed or converted, so a message that is not exactly as described is refused, with the name of the field; what
`dumps` writes, `loads` reads as the same change. The format is public: docs/producers.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, NoReturn

from ledger.errors import InvalidInput, InvalidMessage, InvalidTime
from ledger.values import Change, Lane, check_change, check_counter, check_key, to_datetime, to_ms

NAMES = tuple(f.name for f in fields(Change))
OPTIONAL = ("region",)
_HOUR = r"([01]\d|2[0-3])"
_RFC_3339 = re.compile(rf"\d{{4}}-\d\d-\d\d[Tt]{_HOUR}:\d\d:\d\d(\.\d{{1,9}})?([Zz]|[+-]{_HOUR}:\d\d)", re.ASCII)


def dumps(change: Change) -> str:
    """The message of a change, with `at` to the millisecond. Raises InvalidMessage."""
    checked = _checked(change)
    said = {name: getattr(checked, name) for name in NAMES if getattr(checked, name) is not None}
    return json.dumps(said | {"at": time_text(said["at"])}, ensure_ascii=False, separators=(",", ":"))


def loads(text: str) -> Change:
    """The change that a message asks for. Raises InvalidMessage."""
    said = parsed(text)
    if not isinstance(said, dict):
        raise InvalidMessage("The message is JSON, but not an object.")
    for name in said:
        if name not in NAMES:
            raise InvalidMessage(f"The message has the unknown field {ascii(name)[:40]}.", name)
    for name in NAMES:
        if name not in said and name not in OPTIONAL:
            raise InvalidMessage(f"The message lacks the field {name}.", name)
    try:
        at = time_of(said["at"])
    except InvalidTime as error:
        raise InvalidMessage(f"at: {error.why}", "at") from None
    return _checked(Change(**said | {"at": at}))


def parsed(text: str) -> object:
    """What JSON says, if it says every field once and only numbers that are numbers. Raises InvalidMessage."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except InvalidMessage:
        raise
    except (ValueError, RecursionError, TypeError):
        raise InvalidMessage("The message is not JSON.") from None


def time_of(text: object) -> datetime:
    """The instant that an RFC 3339 text names ("2010-12-01T08:26:00Z"). Raises InvalidTime."""
    if isinstance(text, str) and _RFC_3339.fullmatch(text):
        try:
            return datetime.fromisoformat(text.upper())
        except ValueError:  # the 31st of February
            pass
    raise InvalidTime(f"A time is RFC 3339 text with its offset, such as 2010-12-01T08:26:00Z, not {ascii(text)[:40]}.")


def time_text(at: datetime) -> str:
    """The RFC 3339 text of an instant, to the millisecond."""
    return to_datetime(to_ms(at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _checked(change: Change) -> Change:
    checks: tuple[tuple[str, Callable[[Any], object]], ...] = (
        ("counter", check_counter),
        ("change", check_change),
        ("idempotency_key", check_key),
        ("at", _check_time),
        ("region", lambda region: region is None or Lane(region, 0, "any")),
    )
    for name, check in checks:
        try:
            check(getattr(change, name))
        except InvalidInput as error:
            raise InvalidMessage(f"{name}: {error.why}", name) from None
    return change


def _check_time(at: object) -> None:
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise InvalidTime(f"A time is an aware datetime, not {ascii(at)[:40]}.")
    if at < datetime(1970, 1, 1, tzinfo=UTC):
        raise InvalidTime(f"A change's time is not before 1970, as {at.isoformat()} is.")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    said = dict(pairs)
    if len(said) < len(pairs):
        raise InvalidMessage("The message says a field twice.")
    return said


def _no_number(text: str) -> NoReturn:
    raise InvalidMessage(f"{text} is not a number in JSON.")
