"""Files of rows: CSV with a header or JSONL, read as a stream; and those that were refused.

Rule 1: Memory does not grow with the file.
Rule 2: A row that cannot be read is a row all the same, with its line and the reason, and the next one is read.
Rule 3: Bytes that are no UTF-8 survive into the file of bad rows, and so does every line that no row could be made of.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from ledger.errors import InvalidMessage
from ledger.message import parsed
from ledgerctl.failures import BadTemplate

LINE, REASON, TEXT = "bad_line", "bad_reason", "bad_text"


def opened(path: Path) -> TextIO:
    """A file of rows: a byte order mark is skipped, and bytes that are no UTF-8 come back as they are."""
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


class Row(NamedTuple):
    """A row. line: where it begins. raw: as the file has it. why: it cannot be read, and `fields` is empty."""

    line: int
    fields: Mapping[str, Any]
    raw: Sequence[str]
    why: str | None = None


class Rows:
    """The rows of a file; `names` is the header of a CSV. Raises BadTemplate when there is none."""

    def __init__(self, text: TextIO, format_: str) -> None:
        self.names: list[str] | None = None
        if format_ == "csv":
            taken: list[str] = []
            reader = csv.reader(_noted(text, taken))
            with suppress(csv.Error):
                self.names = next(reader, None)
            if not self.names:
                raise BadTemplate("The file has no header: the first line of a CSV names its columns.")
            self._rows = _csv_rows(reader, taken, self.names)
        else:
            self._rows = _json_rows(text)

    def __iter__(self) -> Iterator[Row]:
        return self._rows


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
        except csv.Error as error:  # a field too long: what it swallowed may be many rows, so each line is told
            why = f"The row is no CSV: {error}. Is there a quote that is never closed?"
            yield from [Row(line + i, {}, (raw.rstrip("\r\n"),), why) for i, raw in enumerate(taken)]
            continue
        if len(values) == len(names):
            yield Row(line, dict(zip(names, values, strict=True)), values)
        elif values:  # a blank line is no row
            yield Row(line, {}, values, f"The row has {len(values)} fields, the header {len(names)}.")


def _json_rows(text: TextIO) -> Iterator[Row]:
    for line, raw in enumerate(text, 1):
        if not raw.strip():
            continue
        try:
            fields = parsed(raw)
        except InvalidMessage as error:
            yield Row(line, {}, (raw,), error.why.replace("message", "row"))
            continue
        if isinstance(fields, dict):
            yield Row(line, fields, (raw,))
        else:
            yield Row(line, {}, (raw,), "The row is JSON, but not an object.")


class BadRows:
    """The file of refused rows, made with the first of them; it can be put right and imported by itself."""

    def __init__(self, path: Path, names: Sequence[str] | None) -> None:
        self.path, self.count, self.old = path, 0, path.exists()
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
