"""Templates over the names of columns or fields: how a row of somebody's file becomes a change.

Rule 1: Nothing is guessed or rounded: a row that is not a change says why.
Rule 2: A template that can fit no row is the caller's mistake, and found before the first row.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from string import Formatter
from typing import Any

from ledger.checks import check_change, check_counter, check_key, check_time
from ledger.errors import InvalidInput, shown
from ledger.values import Change
from ledgerctl.failures import BadTemplate
from ledgerctl.show import NUMBER


class BadRow(Exception):
    """A row is no change; the message says why."""


@dataclass(frozen=True, slots=True)
class Columns:
    """How a row becomes a change: templates over its names. A minus before a number turns its sign."""

    counter: str = "{counter}"
    change: str = "{change}"
    key: str = "{idempotency_key}"
    at: str = "{at}"


DEFAULT = Columns()


def check_template(option: str, template: str, names: Sequence[str] | None) -> None:
    """Raises BadTemplate for what is no template, or names a column that is not among `names`, or is there twice."""
    for _, name in _parts(option, template):
        if name is not None and names is not None and names.count(name) != 1:
            has = "there are several columns" if name in names else "there is no column"
            raise BadTemplate(f"--{option} {template!r}: {has} {name!r}; the header has {', '.join(names)}.")


def change_of(columns: Columns, row: Mapping[str, Any]) -> Change:
    """The change of a row, checked. Raises BadRow, BadTemplate."""
    number = number_of(columns, row)
    text = filled("at", columns.at, row)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadRow(f"--at {columns.at!r} gives {shown(text)}, not a time of ISO 8601.") from None
    try:
        check_time("at", at)
        counter = check_counter(filled("counter", columns.counter, row))
        return Change(counter, number, check_key(filled("key", columns.key, row)), at)
    except InvalidInput as error:
        raise BadRow(error.why) from None


def number_of(columns: Columns, row: Mapping[str, Any]) -> int:
    """The change alone, as a number. Raises BadRow, BadTemplate."""
    text = filled("change", columns.change, row)
    if not NUMBER.fullmatch(text):
        raise BadRow(f"--change {columns.change!r} gives {shown(text)}, not a whole number.")
    try:
        return check_change(int(text.removeprefix("--")))
    except InvalidInput as error:
        raise BadRow(error.why) from None


def filled(option: str, template: str, row: Mapping[str, Any]) -> str:
    """A template with a row's values, as they stand in a CSV or JSON. Raises BadRow for a value that is not there."""
    text = ""
    for literal, name in _parts(option, template):
        value = row.get(name) if name is not None else ""
        if value is None:
            raise BadRow(f"--{option} {template!r}: there is no {name!r}.")
        text += literal + (value if isinstance(value, str) else json.dumps(value))
    return text


def _parts(option: str, template: str) -> list[tuple[str, str | None]]:
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise BadTemplate(f"--{option} {template!r} is not a template such as {{column}}: {error}.") from None
    if any(name == "" or spec or conversion for _, name, spec, conversion in parts):
        raise BadTemplate(f"--{option} {template!r} is not a template such as {{column}}: put a name alone in braces.")
    return [(literal, name) for literal, name, _, _ in parts]
