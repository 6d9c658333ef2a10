"""The message that carries changes through a queue, as JSON: {counter, change, idempotency_key, at,
region, then, partial}, or many of these as {"changes": [...]}.

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
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import Any, NoReturn, TypeVar

from ledger.client import saga_steps as steps
from ledger.core.checks import (
    LAST_MS,
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
from ledger.core.keys import NEEDS_NO_AT, needs_at, time_in
from ledger.core.values import Change, CheckedChange, Then, check_changes, checked_change

Made = TypeVar("Made")
NAMES, OF_THEN = (tuple(f.name for f in fields(each)) for each in (Change, Then))
OPTIONAL = {"region", "then", "partial"}
REQUIRED = tuple(name for name in NAMES if name not in OPTIONAL)
_fields_of, _required_of = attrgetter(*NAMES), itemgetter(*REQUIRED)
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
    """The message of a change, with `at` to the millisecond; where it has none, with the time in
    its key. Raises InvalidMessage.
    """
    if not isinstance(change, Change):
        raise InvalidMessage(
            f"A message carries a Change(counter, change, ...), not {shown(change)}."
        )
    if change.at is None:  # a reader of messages then needs to know nothing of keys
        change = replace(change, at=time_in(change.idempotency_key))
    checked = _checked(_fields_of(change))
    named = {name: getattr(checked, name) for name in NAMES}
    said = {
        name: value for name, value in named.items() if value is not None and value is not False
    }
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
        plain = plain_text(text)
        return _decode(plain) if plain is not None else json.loads(text, **_HOOKS)
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


def _change(said: object) -> CheckedChange:
    return _plain(said) or _by_field(said)


def _plain(said: object) -> CheckedChange | None:
    """The change of a message as nearly every one is: four fields, and a time in UTC with whole
    milliseconds. None for any other message, good or bad, which is read field by field.
    """
    if not isinstance(said, dict) or len(said) != len(REQUIRED):
        return None
    try:
        counter, change, key, text = _required_of(said)
        at = time_of(text)
        at_ms = to_ms(at)
        if at_ms < 0 or at.tzinfo is not UTC or at.microsecond % 1_000:
            return None
        fields = check_counter(counter), check_change(change), check_key(key), at
        return checked_change(at_ms, *fields, region=None, then=None)
    except (KeyError, InvalidInput):
        return None


def _by_field(said: object) -> CheckedChange:
    """The change. Raises InvalidMessage, which names the field."""
    given = _members(said, "The change", NAMES, OPTIONAL | {"at"})
    at, then = _at(given), given.get("then")
    if then is not None:
        then = _named("then", _then, then)
    return _checked(map(({"partial": False} | given | {"at": at, "then": then}).get, NAMES))


def _at(given: dict[str, Any]) -> datetime:
    """The time in the message, or in its key."""
    if "at" in given:
        return _named("at", time_of, given["at"])
    if own := time_in(given["idempotency_key"]):
        return own
    why = f"The change lacks the field at. {needs_at(given['idempotency_key'])}"
    raise InvalidMessage(why, "at")


def _then(said: object) -> Then:
    return Then(**_members(said, "What follows", OF_THEN))


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


def _checked(said: Iterable[object]) -> CheckedChange:
    """The change of these fields. Raises InvalidMessage, which names the field."""
    checked: list[Any] = []
    try:
        for (_, check), value in zip(CHECKS, said, strict=True):
            checked.append(check(value))
    except InvalidInput as error:
        name, _ = CHECKS[len(checked)]
        raise _within(name, error) from None
    made = checked_change(to_ms(checked[3]), *checked)
    if made.partial:
        _check_part(made)
    # Rule 4: a change with `then` is a transfer, and nothing else is: every reader of the message
    # can finish it.
    return made if made.then is None else _transfer(made)


def _check_part(change: CheckedChange) -> None:
    if change.then is not None:
        why = "A transfer moves all of its amount or nothing, so it cannot be partial."
        raise InvalidMessage(f"partial: {why}", "partial")
    if change.change == 0:
        raise InvalidMessage("change: A partial change is not 0: 0 has no parts.", "change")


def _transfer(change: CheckedChange) -> CheckedChange:
    try:
        steps.checked(change)
        return change
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
        raise _within(name, error) from None


def _within(name: str, error: InvalidInput) -> InvalidMessage:
    """The error of a message whose field has this error."""
    within = getattr(error, "field", None)
    field = name if within is None else f"{name}.{within}"
    return InvalidMessage(f"{name}: {error.why}", field)


def _check_time(at: object) -> datetime:
    if at is None:
        raise InvalidTime(f"A change's time is an aware datetime, not None. {NEEDS_NO_AT}")
    at_ms = check_time("A change's time", at)
    if not 0 <= at_ms <= LAST_MS:
        raise InvalidTime(f"A change's time is from 1970 to the year 9999, not {shown(at, 80)}.")
    # as nearly every time comes: in UTC, with whole milliseconds
    if type(at) is datetime and at.tzinfo is UTC and at.microsecond % 1_000 == 0:
        return at
    return to_datetime(at_ms)


def _check_then(then: object) -> Then | None:
    if then is None:
        return None
    if not isinstance(then, Then):
        raise InvalidMessage(f"What follows a change is Then(counter, change), not {shown(then)}.")
    return Then(
        _named("counter", check_counter, then.counter), _named("change", check_change, then.change)
    )


def _check_partial(partial: object) -> bool:
    if type(partial) is not bool:
        raise InvalidMessage(f"partial is true or false, not {shown(partial)}.")
    return partial


CHECKS: tuple[tuple[str, Callable[[object], Any]], ...] = (
    ("counter", check_counter),
    ("change", check_change),
    ("idempotency_key", check_key),
    ("at", _check_time),
    ("region", lambda region: None if region is None else check_region(region)),
    ("then", _check_then),
    ("partial", _check_partial),
)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    said = dict(pairs)
    if len(said) < len(pairs):
        raise InvalidMessage("The message has a field twice.")
    return said


def _no_number(text: str) -> NoReturn:
    raise InvalidMessage(f"{text} is not a number in JSON.")


_HOOKS: dict[str, Any] = {"object_pairs_hook": _once, "parse_constant": _no_number}
_decode = json.JSONDecoder(**_HOOKS).decode
"""Made once: a decoder takes longer to make than a change to read."""
