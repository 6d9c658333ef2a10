"""What a file of rows is, CSV or JSONL, and its lines.

Rule 1: The end of a file's name says what it is, also before `.gz`; of any other file its first
line does, which begins with a brace in JSONL.
Rule 2: Nobody guesses a separator: a header that does not fit names the one that it seems to have.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TextIO, cast

from ledgerctl.failures import Wrong

TAB = "\t"
SUFFIXES = {
    ".csv": ("csv", ","),
    ".tsv": ("csv", TAB),
    ".tab": ("csv", TAB),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), ("jsonl", "")),
}
SEPARATORS = (";", TAB, ",", "|")
STANDARD_INPUT = Path("-")


class CutFile(Wrong):
    """A compressed file ends before its end, or is none."""

    def __init__(self, path: Path, why: Exception) -> None:
        super().__init__(
            "FileError", f"{path} cannot be read to its end: {why}.", "Copy the file again."
        )


@dataclass(frozen=True, slots=True)
class Form:
    """kind: csv or jsonl.

    separator: between the fields of a CSV. bad_path: where refused rows go.
    """

    kind: str
    separator: str
    bad_path: Path


@contextmanager
def opened(
    path: Path, kind: str | None, separator: str | None
) -> Iterator[tuple[Form, Iterator[str]]]:
    """The form of a file, and its lines, without a byte order mark; bytes that are no UTF-8 come
    back as they are.

    kind, separator: as they were given. Raises Wrong."""
    with ExitStack() as stack:
        lines = _lines(
            path, _standard_input() if path == STANDARD_INPUT else stack.enter_context(_file(path))
        )
        first: list[str] = []
        for line in lines:
            first.append(line)
            if line.strip():
                break
        yield _form(path, kind, separator, first[-1] if first else ""), chain(first, lines)


def lines_of(path: Path) -> int | None:
    """How many lines a file has; None of a compressed one, and of a pipe, which can be read only
    once.
    """
    if not path.is_file() or path.suffix == ".gz":
        return None
    with path.open("rb") as file:
        return sum(1 for _ in file)


def shown_separator(separator: str) -> str:
    """A separator as you type it."""
    return "tab" if separator == TAB else f"'{separator}'"


def _form(path: Path, kind: str | None, separator: str | None, first: str) -> Form:
    name = (
        Path("stdin")
        if path == STANDARD_INPUT
        else path.with_suffix("")
        if path.suffix == ".gz"
        else path
    )
    by_content = (
        ("csv", ",") if first.strip() and not first.lstrip().startswith("{") else ("jsonl", "")
    )
    known, usual = SUFFIXES.get(name.suffix.lower(), by_content)
    kind = kind or known
    if kind == "jsonl" and separator is not None:
        raise Wrong(
            "BadArguments", f"{path} is JSONL, which has no separator.", "Leave out --separator."
        )
    suffix = (
        name.suffix if known == kind == "csv" and name.suffix.lower() in SUFFIXES else f".{kind}"
    )
    return Form(
        kind, _separator(separator) or usual or ",", path.with_name(f"{name.stem}.bad{suffix}")
    )


def _separator(given: str | None) -> str | None:
    separator = TAB if given in ("tab", r"\t") else given
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise Wrong(
            "BadArguments",
            f"--separator {given!r} is not one character.",
            "Give one, such as ';', or tab.",
        )
    return separator


def _file(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return cast(
            TextIO,
            gzip.open(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline=""),
        )
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    try:
        yield from file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise CutFile(path, error) from None


def _standard_input() -> TextIO:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape", newline="")
    return sys.stdin
