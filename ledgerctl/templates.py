"""Templates over the names of columns or fields: how a row of somebody's file becomes a change, or a delta.

Rule 1: Nothing is guessed or rounded: a row that is not a change says why.
Rule 2: A template that can fit no row is the caller's mistake, and found before the first row.
Rule 3: A row of `export` has a token and is the same delta again; any other names its change by key and time.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from string import Formatter
from typing import Any

from ledger import Ledger, tokens
from ledger.checks import check_change, check_counter, check_key, check_time, to_datetime
from ledger.errors import InvalidInput, shown
from ledger.values import Change, Delta
from ledgerctl.failures import BadTemplate
from ledgerctl.rows import Row, Rows
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


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a row becomes a delta: by its token if it has one and no key was asked for, else by key and time."""

    columns: Columns
    by_token: bool
    home_region: str | None

    def delta(self, ledger: Ledger, row: Row) -> Delta:
        """Raises BadRow, BadTemplate."""
        if row.why is not None:
            raise BadRow(row.why)
        fields, settings = row.fields, ledger.settings
        region = settings.region
        if self.home_region is not None:
            region = filled("home-region", self.home_region, fields)
        elif self.columns.key == DEFAULT.key:  # a row of `export`, or a message
            region = fields.get("region") or region
        try:
            if not (self.by_token and fields.get("token")):
                asked = change_of(self.columns, fields)
                named: Any = {"idempotency_key": asked.idempotency_key, "at": asked.at}
                return ledger.prepare(asked.counter, asked.change, **named, region=region)
            counter = check_counter(filled("counter", self.columns.counter, fields))
            token, change = fields["token"], number_of(self.columns, fields)
            if not (isinstance(token, str) and tokens.is_token(token)):
                raise BadRow(f"token={shown(token)} is no token: a ULID of 26 characters.")
            at = to_datetime(tokens.time_ms(token))
            ledger.prepare(counter, change, idempotency_key=token, at=at, region=region)  # refuses what add refuses
            return Delta(settings.lane_for(counter, token, region), token, change)
        except InvalidInput as error:
            raise BadRow(error.why) from None


def recipe_of(rows: Rows, columns: Columns, no_key: bool, home_region: str | None) -> Recipe:
    """How these rows become deltas.

    Raises BadTemplate for what can fit no row; without a header only the form of the templates can be seen.
    """
    by_token = no_key and (rows.names is None or "token" in rows.names)
    for option, template in asdict(columns).items():
        if not (by_token and rows.names is not None and option in ("key", "at")):
            check_template(option, template, rows.names)
    if home_region is not None:
        check_template("home-region", home_region, rows.names)
    return Recipe(columns, by_token, home_region)
