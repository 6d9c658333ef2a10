"""The message that carries changes through a queue, as JSON: {counter, change, idempotency_key, at,
region, then}, or many of these as {"changes": [...]}.

Rule 1: The key and the time are in the body, because an SQS MessageId changes when a message is
redriven.
Rule 2: It guesses and converts nothing: it refuses a message that is not exactly as described, and
names the field. It refuses a message of many changes as a whole: a sender that wrote one wrongly
may have meant the others otherwise.
Rule 3: `loads` reads what `dumps` wrote as the same change, `loads_many` every message. The format:
docs/producers.md.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from ledger.client import saga_steps as steps
from ledger.core.checks import (
    check_change,
    check_counter,
    check_key,
    check_region,
    check_time,
    plain_text,
    to_datetime,
    to_ms,
)
from ledger.core.errors import (
    InvalidChange,
    InvalidInput,
    InvalidKey,
    InvalidMessage,
    InvalidTime,
    shown,
)
from ledger.core.values import Change, Then, check_changes

Made = TypeVar("Made")
NAMES, OF_THEN = (tuple(f.name for f in fields(each)) for each in (Change, Then))
OPTIONAL = {"region", "then"}
MANY = "changes"
NO_XML = {0xFFFE: r"\ufffe", 0xFFFF: r"\uffff"}
"""Characters that JSON may hold and that SQS refuses, with all messages of the request, unless
they are escaped.
"""

_HOUR = r"([01]\d|2[0-3])"
_RFC_3339 = re.compile(
    rf"\d{{4}}-\d\d-\d\d[Tt]{_HOUR}:\d\d:\d\d(\.\d{{1,9}})?([Zz]|[+-]{_HOUR}:\d\d)", re.ASCII
)


def dumps(change: Change) -> str:
    """The message of a change, with `at` to the millisecond. Raises InvalidMessage."""
    checked = _checked(change)
    said = {name: getattr(checked, name) for name in NAMES if getattr(checked, name) is not None}
    said["at"] = time_text(said["at"])
    text = json.dumps(said, default=asdict, ensure_ascii=False, separators=(",", ":"))
    return text.translate(NO_XML)


def dumps_many(changes: Iterable[Change]) -> str:
    """The message of several changes, of any counters.

    Raises InvalidMessage, which names the change by its index.
    """
    texts = _each(dumps, check_changes("dumps_many", changes))
    if not texts:
        raise InvalidMessage("A message has at least one change.", MANY)
    return joined(texts)


def joined(texts: Sequence[str]) -> str:
    """The message of several changes, from the message of each; a single one stays as it is."""
    return texts[0] if len(texts) == 1 else f'{{"{MANY}":[{",".join(texts)}]}}'


def loads(text: str) -> Change:
    """The change in a message of one. Raises InvalidMessage."""
    return _change(parsed(text))


def read(said: object) -> Change:
    """The change that the value of a message of one says, as `parsed` gives it.

    Raises InvalidMessage.
    """
    return _change(said)


def loads_many(text: str) -> list[Change]:
    """The changes in a message of one or of many; at least one. Raises InvalidMessage."""
    said = parsed(text)
    if not isinstance(said, dict) or MANY not in said:
        return [_change(said)]
    for name in said:
        if name != MANY:
            raise InvalidMessage(f"The message has the field {shown(name)} beside {MANY}.", name)
    many = said[MANY]
    if not isinstance(many, list) or not many:
        raise InvalidMessage(f"{MANY} is a list of one change or more, not {shown(many)}.", MANY)
    return _each(_change, many)


def parsed(text: str) -> object:
    """The value of a JSON text.

    Raises InvalidMessage, also where a field comes twice or a number is none (NaN).
    """
    try:
        return json.loads(
            plain_text(text) or text, object_pairs_hook=_once, parse_constant=_no_number
        )
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
    raise InvalidTime(
        f"A time is RFC 3339 text with its offset, such as 2010-12-01T08:26:00Z, not {shown(text)}."
    )


def time_text(at: datetime) -> str:
    """The RFC 3339 text of an instant, to the millisecond."""
    return to_datetime(to_ms(at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _change(said: object) -> Change:
    given = _members(said, "The change", NAMES, OPTIONAL)
    at, then = _named("at", time_of, given["at"]), _named("then", _then, given.get("then"))
    return _checked(Change(**{**given, "at": at, "then": then}))


def _then(said: object) -> Then | None:
    return None if said is None else Then(**_members(said, "What follows", OF_THEN))


def _members(
    said: object, what: str, names: Sequence[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """The members of an object of JSON. Raises InvalidMessage where one is unknown or missing."""
    if not isinstance(said, dict):
        raise InvalidMessage(f"{what} is JSON, but not an object.")
    for name in said:
        if name not in names:
            raise InvalidMessage(f"{what} has the unknown field {shown(name)}.", name)
    for name in names:
        if name not in said and name not in optional:
            raise InvalidMessage(f"{what} lacks the field {name}.", name)
    return said


def _each(make: Callable[[Any], Made], many: Iterable[object]) -> list[Made]:
    """`make` of each of many changes. Raises InvalidMessage, which names the change."""
    made = []
    for i, one in enumerate(many):
        try:
            made.append(make(one))
        except InvalidMessage as error:
            place = f"{MANY}[{i}]"
            field = place if error.field is None else f"{place}.{error.field}"
            raise InvalidMessage(f"{place}: {error.why}", field) from None
    return made


def _checked(change: object) -> Change:
    if not isinstance(change, Change):
        raise InvalidMessage(
            f"A message carries a Change(counter, change, ...), not {shown(change)}."
        )
    checked: dict[str, Any] = {
        name: _named(name, check, getattr(change, name)) for name, check in CHECKS
    }
    made = Change(**checked)
    # Rule 4: a change with `then` is a transfer, and nothing else is: every reader of the message
    # can finish it.
    return made if made.then is None else _transfer(made)


def _transfer(change: Change) -> Change:
    try:
        return steps.checked(change)
    except InvalidInput as error:
        field = {InvalidChange: "then.change", InvalidKey: "idempotency_key"}.get(
            type(error), "then.counter"
        )
        raise InvalidMessage(f"{field}: {error.why}", field) from None


def _named(name: str, check: Callable[[object], Made], given: object) -> Made:
    """The checked value. Raises InvalidMessage, which names the field."""
    try:
        return check(given)
    except InvalidInput as error:
        within = getattr(error, "field", None)
        field = name if within is None else f"{name}.{within}"
        raise InvalidMessage(f"{name}: {error.why}", field) from None


def _check_time(at: object) -> datetime:
    time_ms = check_time("A change's time", at)
    checked = to_datetime(time_ms)
    if time_ms < 0 or time_ms != to_ms(checked):
        raise InvalidTime(f"A change's time is from 1970 to the year 9999, not {shown(at, 80)}.")
    return checked


def _check_then(then: object) -> Then | None:
    if not isinstance(then, Then | None):
        raise InvalidMessage(f"What follows a change is Then(counter, change), not {shown(then)}.")
    if then is None:
        return None
    return Then(
        _named("counter", check_counter, then.counter), _named("change", check_change, then.change)
    )


CHECKS: tuple[tuple[str, Callable[[object], object]], ...] = (
    ("counter", check_counter),
    ("change", check_change),
    ("idempotency_key", check_key),
    ("at", _check_time),
    ("region", lambda region: None if region is None else check_region(region)),
    ("then", _check_then),
)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    said = dict(pairs)
    if len(said) < len(pairs):
        raise InvalidMessage("The message has a field twice.")
    return said


def _no_number(text: str) -> NoReturn:
    raise InvalidMessage(f"{text} is not a number in JSON.")
