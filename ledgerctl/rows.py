"""Files of rows: CSV with a header or JSONL, read as a stream; how a row becomes a change, by templates over the names
of columns or fields; and the file of refused rows.

Rule 1: Memory does not grow with the file.
Rule 2: A row that nobody can read is a row all the same, with its line and the reason, and the next one follows.
Rule 3: The file of bad rows keeps bytes that are no UTF-8, and every line that makes no row.
Rule 4: Nothing guesses or rounds: a row that is no change has the reason.
Rule 5: A template that can fit no row is the caller's mistake, and stops the import before the first row.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple, TextIO

from ledger.errors import InvalidMessage, shown
from ledger.message import parsed
from ledger.values import Change
from ledgerctl.failures import Wrong
from ledgerctl.show import NUMBER

LINE, REASON, TEXT = "bad_line", "bad_reason", "bad_text"


class BadRow(Exception):
    """A row is no change, and was not added; the message says why."""


class BadTemplate(Wrong):
    """A template fits no row, and nothing was added; the message names the option."""

    def __init__(self, message: str) -> None:
        remedy = 'Name columns of the header, or fields, in templates: "{invoice}/{line}".'
        super().__init__("BadTemplate", message, remedy)


def opened(path: Path) -> TextIO:
    """A file of rows, without its byte order mark; bytes that are no UTF-8 come back as they are."""
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def lines_of(path: Path) -> int | None:
    """How many lines a file has; None of a pipe, which can be read only once."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return sum(1 for _ in file)


class Row(NamedTuple):
    """A row. line: where it begins. raw: as the file has it. why: nobody can read it, and `fields` is empty."""

    line: int
    fields: Mapping[str, Any]
    raw: Sequence[str]
    why: str | None = None


def rows_of(text: TextIO, format_: str) -> tuple[list[str] | None, Iterator[Row]]:
    """The header of a CSV, None of JSONL; and the rows. Raises BadTemplate when there is no header."""
    if format_ != "csv":
        return None, _json_rows(text)
    taken: list[str] = []
    reader = csv.reader(_noted(text, taken))
    with suppress(csv.Error):
        if names := next(reader, None):
            return names, _csv_rows(reader, taken, names)
    raise BadTemplate("The file has no header: the first line of a CSV names its columns.")


def _noted(text: TextIO, taken: list[str]) -> Iterator[str]:
    """The lines; `taken` has those since it was emptied."""
    for line in text:
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
        except csv.Error as error:  # a field too long, which may hold many rows: so each line gets the reason
            why = f"The row is no CSV: {error}. Look for a quote that is never closed."
            yield from [Row(line + i, {}, (raw.rstrip("\r\n"),), why) for i, raw in enumerate(taken)]
            continue
        if len(values) == len(names):
            yield Row(line, dict(zip(names, values, strict=True)), values)
        elif values:  # a blank line is no row
            yield Row(line, {}, values, f"The row has {len(values)} fields, and the header {len(names)}.")


def _json_rows(text: TextIO) -> Iterator[Row]:
    for line, raw in enumerate(text, 1):
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
    """The file of refused rows. The first of them makes it; you can correct it and import it by itself."""

    def __init__(self, path: Path, names: Sequence[str] | None) -> None:
        self.path, self.count = path, 0
        self._names = names
        self._file: TextIO | None = None

    def add(self, row: Row, why: str) -> None:
        self.count += 1
        if self._file is None:
            self._file = self.path.open("w", encoding="utf-8", errors="surrogateescape", newline="")
            if self._names is not None:
                csv.writer(self._file).writerow([LINE, REASON, *self._names])
        if self._names is not None:
            csv.writer(self._file).writerow([row.line, why, *row.raw])
        else:
            fields = row.fields or {TEXT: row.raw[0].rstrip("\r\n")}
            said = {LINE: row.line, REASON: why} | {k: v for k, v in fields.items() if k not in (LINE, REASON)}
            self._file.write(json.dumps(said, ensure_ascii=False) + "\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True, slots=True)
class Columns:
    """Templates over the names of a row, which make a change of it. A minus before a number turns its sign."""

    counter: str = "{counter}"
    change: str = "{change}"
    key: str = "{idempotency_key}"
    at: str = "{at}"


DEFAULT = Columns()


def check_template(option: str, template: str, names: Sequence[str] | None) -> None:
    """Raises BadTemplate for what is no template, or names a column that `names` lacks or has twice."""
    for _, name in _parts(option, template):
        if name is not None and names is not None and names.count(name) != 1:
            has = "there are several columns" if name in names else "there is no column"
            raise BadTemplate(f"--{option} {template!r}: {has} {name!r}; the header has {', '.join(names)}.")


def change_of(columns: Columns, row: Mapping[str, Any]) -> Change:
    """The change of a row, unchecked: `prepare` refuses what no ledger takes. Raises BadRow, BadTemplate."""
    number, text = number_of(columns, row), filled("at", columns.at, row)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadRow(f"--at {columns.at!r} gives {shown(text)}, not a time of ISO 8601.") from None
    return Change(filled("counter", columns.counter, row), number, filled("key", columns.key, row), at)


def number_of(columns: Columns, row: Mapping[str, Any]) -> int:
    """The change alone, as a number; a minus of the template's turns the sign. Raises BadRow, BadTemplate."""
    text = filled("change", columns.change, row)
    if not NUMBER.fullmatch(text):
        raise BadRow(f"--change {columns.change!r} gives {shown(text)}, not a whole number.")
    return int(text.removeprefix("--"))


def filled(option: str, template: str, row: Mapping[str, Any]) -> str:
    """A template filled with a row's values, as the file has them. Raises BadRow for a value that is not there."""
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
