"""Files of rows: CSV with a header or JSONL, read as a stream; how a row becomes a change, by
templates over the names of columns or fields; and the file of refused rows.

Rule 1: Memory does not grow with the file.
Rule 2: A row that nobody can read is a row all the same, with its line and the reason, and the next
one follows.
Rule 4: Nothing guesses or rounds: a row that is no change has the reason. A row of JSONL is a
message unless there are templates, and is read as every reader of messages reads it.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, TextIO

from ledger.client.message import NAMES, OPTIONAL, parsed, read
from ledger.core.errors import InvalidMessage, shown
from ledger.core.keys import NEEDS_NO_AT, time_in
from ledger.core.values import Change
from ledgerctl.failures import Wrong
from ledgerctl.forms import SEPARATORS, Form, shown_separator
from ledgerctl.show import NUMBER

LINE, REASON, TEXT = "bad_line", "bad_reason", "bad_text"


class BadRow(Exception):
    """A row is no change, and was not added; the message says why."""


class BadTemplate(Wrong):
    """A template fits no row, and nothing was added; the message names the option."""

    def __init__(self, message: str, remedy: str = "") -> None:
        usual = (
            'In a template put a name alone in braces, of a column or a field: "{invoice}/{line}".'
        )
        super().__init__("BadTemplate", message, remedy or usual)


class Row(NamedTuple):
    """A row.

    line: where it begins. raw: as the file has it. why: nobody can read it, and `fields` is empty.
    """

    line: int
    fields: Mapping[str, Any]
    raw: Sequence[str]
    why: str | None = None


def rows_of(lines: Iterator[str], form: Form) -> tuple[list[str] | None, Iterator[Row]]:
    """The header of a CSV, None of JSONL; and the rows.

    Raises BadTemplate when there is no header.
    """
    if form.kind != "csv":
        return None, _json_rows(lines)
    taken: list[str] = []
    reader = csv.reader(_noted(lines, taken), delimiter=form.separator)
    with suppress(csv.Error):
        if names := next(reader, None):
            return names, _csv_rows(reader, taken, names)
    raise BadTemplate("The file has no header: the first line of a CSV names its columns.")


def _noted(lines: Iterator[str], taken: list[str]) -> Iterator[str]:
    """The lines; `taken` has those since it was emptied."""
    for line in lines:
        taken.append(line)
        yield line


def _csv_rows(reader: Any, taken: list[str], names: list[str]) -> Iterator[Row]:
    while True:
        taken.clear()
        line = reader.line_num + 1
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # a field too long, which may hold many rows: so each line gets the reason
            why = f"The row is no CSV: {error}. Look for a quote that is never closed."
            yield from [
                Row(line + i, {}, (raw.rstrip("\r\n"),), why) for i, raw in enumerate(taken)
            ]
            continue
        if len(values) == len(names):
            yield Row(line, dict(zip(names, values, strict=True)), values)
        elif values:  # a blank line is no row
            yield Row(
                line, {}, values, f"The row has {len(values)} fields, and the header {len(names)}."
            )


def _json_rows(lines: Iterator[str]) -> Iterator[Row]:
    for line, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        try:
            fields, why = parsed(raw), None
        except InvalidMessage as error:
            fields, why = None, error.why.replace("message", "row")
        if isinstance(fields, dict):
            yield Row(line, fields, (raw,))
        else:
            yield Row(line, {}, (raw,), why or "The row is JSON, but not an object.")


class BadRows:
    """The file of refused rows.

    The first of them makes it; you can correct it and import it by itself.
    """

    def __init__(self, form: Form, names: Sequence[str] | None) -> None:
        self.path, self.count = form.bad_path, 0
        self._names, self._separator = names, form.separator
        self._file: TextIO | None = None

    def add(self, row: Row, why: str) -> None:
        # Rule 3: the file of bad rows keeps bytes that are no UTF-8, and every line that makes no
        # row.
        self.count += 1
        if self._file is None:
            self._file = self.path.open("w", encoding="utf-8", errors="surrogateescape", newline="")
            if self._names is not None:
                self._write(self._file, [LINE, REASON, *self._names])
        if self._names is not None:
            self._write(self._file, [row.line, why, *row.raw])
        else:
            fields = row.fields or {TEXT: row.raw[0].rstrip("\r\n")}
            said = {LINE: row.line, REASON: why} | {
                k: v for k, v in fields.items() if k not in (LINE, REASON)
            }
            self._file.write(json.dumps(said, ensure_ascii=False) + "\n")

    def _write(self, file: TextIO, fields: Sequence[object]) -> None:
        csv.writer(file, delimiter=self._separator).writerow(fields)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True, slots=True)
class Columns:
    """Templates over the names of a row, which make a change of it.

    A minus before a number turns its sign.
    """

    counter: str = "{counter}"
    change: str = "{change}"
    key: str = "{idempotency_key}"
    at: str = "{at}"


DEFAULT = Columns()


def check_template(option: str, template: str, names: Sequence[str] | None, form: Form) -> None:
    """Raises BadTemplate for what is no template, or names a column that `names` lacks or has
    twice.
    """
    # Rule 5: a template that can fit no row is the caller's mistake, and stops the import before
    # the first row.
    for _, name in _parts(option, template):
        if name is not None and names is not None and names.count(name) != 1:
            has = "there are several columns" if name in names else "there is no column"
            message = f"--{option} {template!r}: {has} {name!r}; the header has {', '.join(names)}."
            raise BadTemplate(message, _seems(name, names, form.separator))


def _seems(wanted: str, names: Sequence[str], separator: str) -> str:
    """What to do where the header seems to be of another form; empty where it does not."""
    line = separator.join(names)
    if line.startswith("{"):
        return "The file seems to be JSONL: give --format jsonl."
    if line.startswith("sep="):
        return (
            "The first line is a note for Excel, not a header: delete it, and give --separator "
            f"{line[4:5]!r}."
        )
    for other in SEPARATORS:
        if other != separator and wanted in (part.strip(' "') for part in line.split(other)):
            shown_one = shown_separator(other)
            return f"The header seems to be separated by {shown_one}: give --separator {shown_one}."
    return ""


def message_in(row: Mapping[str, Any]) -> Change:
    """The change of a row that is a message, as the queue and the API read it; beside it, a file of
    bad rows has its line and the reason. Raises BadRow."""
    said = {name: value for name, value in row.items() if name not in (LINE, REASON)}
    has_time = time_in(said.get("idempotency_key")) is not None
    for name in NAMES:
        if name not in said and name not in OPTIONAL and not (has_time and name == "at"):
            raise BadRow(
                f"There is no {name!r}. Without templates each row is a message; for rows of "
                "another form give templates." + (f" {NEEDS_NO_AT}" if name == "at" else "")
            )
    try:
        return read(said)
    except InvalidMessage as error:
        if error.field == "change" and type(said["change"]) is not int:
            raise BadRow(
                f"change={shown(said['change'])} is not a whole number; JSON has it without quotes."
            ) from None
        raise BadRow(error.why) from None


def change_of(columns: Columns, row: Mapping[str, Any]) -> Change:
    """The change of a row, unchecked: `prepare` refuses what no ledger takes.

    Raises BadRow, BadTemplate.
    """
    number, at = number_of(columns, row), _at(columns, row)
    counter, key = filled("counter", columns.counter, row), filled("key", columns.key, row)
    if at is None and time_in(key) is None:
        raise BadRow(f"There is no 'at'. {NEEDS_NO_AT}")
    return Change(counter, number, key, at)


def brings_time(columns: Columns, row: Row) -> bool:
    """Whether the key of a row brings its time. Raises BadTemplate."""
    with suppress(BadRow):
        return time_in(filled("key", columns.key, row.fields)) is not None
    return False


def _at(columns: Columns, row: Mapping[str, Any]) -> datetime | None:
    """The time of a row; None where the row has none and no template asks for it.

    Raises BadRow, BadTemplate.
    """
    if columns.at == DEFAULT.at and row.get("at") in (None, ""):
        return None
    text = filled("at", columns.at, row)
    gives = f"--at {columns.at!r} gives {shown(text)}"
    try:
        at = datetime.fromisoformat(text.upper())
    except ValueError:
        raise BadRow(f"{gives}, not a time of ISO 8601.") from None
    if at.tzinfo is None:
        raise BadRow(f"{gives}, which has no time zone. Write one, as in 2010-12-01T08:26:00Z.")
    return at


def number_of(columns: Columns, row: Mapping[str, Any]) -> int:
    """The change alone, as a number; a minus of the template's turns the sign.

    Raises BadRow, BadTemplate.
    """
    text = filled("change", columns.change, row)
    is_turned = columns.change.startswith("-")
    number = text.removeprefix("-") if is_turned else text
    if not NUMBER.fullmatch(number):
        raise BadRow(f"--change {columns.change!r} gives {shown(text)}, not a whole number.")
    return -int(number) if is_turned else int(number)


def filled(option: str, template: str, row: Mapping[str, Any]) -> str:
    """A template filled with a row's values, as the file has them. Raises BadRow for a value that
    is not there, or is neither text nor a whole number."""
    text = ""
    for literal, name in _parts(option, template):
        value = row.get(name) if name is not None else ""
        if value is None:
            raise BadRow(f"--{option} {template!r}: there is no {name!r}.")
        if type(value) not in (str, int):
            raise BadRow(
                f"--{option} {template!r}: {name}={shown(value)} is neither text nor a whole "
                "number."
            )
        text += f"{literal}{value}"
    return text


_PART = re.compile(r"(?P<twice>\{\{|\}\})|\{(?P<name>[^}]*)\}|(?P<alone>[{}])|(?P<text>[^{}]+)")


@cache
def _parts(option: str, template: str) -> list[tuple[str, str | None]]:
    """The literals of a template, each with the name that follows it. Two braces are one that names
    nothing. A name has
    any characters, as columns do: `user:Project`, `paid!`."""
    found: list[tuple[str, str | None]] = []
    literal = ""
    for part in _PART.finditer(template):
        name = part["name"]
        if part["alone"] or name == "":
            why = "a brace is alone" if name is None else "put a name alone in braces"
            raise BadTemplate(
                f"--{option} {template!r} is not a template such as {{column}}: {why}."
            )
        if name is None:
            literal += part["text"] or part["twice"][0]
        else:
            found.append((literal, name))
            literal = ""
    return [*found, (literal, None)] if literal else found
