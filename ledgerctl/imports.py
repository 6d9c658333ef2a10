"""`import`: adds a file of changes to the table.

Rule 1: A row of `export` has a token and is the same delta again; any other row names its change by
key and time. So you can run an import that was cut off again, and nothing counts twice. A row of
JSONL is a message without templates.
Rule 2: A failure of the table stops the import after the rows that it took.
Rule 3: Memory is that of one batch.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer

from ledger.core.errors import (
    LedgerError,
)
from ledgerctl import forms
from ledgerctl.call import Call
from ledgerctl.command import FileFormat, command
from ledgerctl.failures import cut_off
from ledgerctl.forms import CutFile, Form
from ledgerctl.importing import Import
from ledgerctl.rows import (
    DEFAULT,
    BadRows,
    Columns,
    Row,
    brings_time,
    check_template,
    rows_of,
)

BATCH = 500

ChangesFile = Annotated[
    str, typer.Argument(help="A CSV with a header, or JSONL, plain or .gz; - is standard input.")
]
CounterTemplate = Annotated[str, typer.Option(help='A template: "stock:{stock_code}".')]
ChangeTemplate = Annotated[
    str, typer.Option(help='A template; a minus reverses the sign: "-{quantity}".')
]
KeyTemplate = Annotated[str | None, typer.Option(help='A template: "{invoice}/{line}".')]
AtTemplate = Annotated[str, typer.Option(help='A template: "{invoiced_at}"; ISO 8601 with a zone.')]
RegionTemplate = Annotated[
    str | None, typer.Option(help="A template: where you first asked for the change.")
]
OfForm = Annotated[
    FileFormat | None,
    typer.Option("--format", help="Default: what the file's name or first line says."),
]
Separator = Annotated[
    str | None, typer.Option(help="What separates a CSV's fields, if not a comma: ';' or tab.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check all rows and write nothing to the table.")
]


@command("import")
def import_(
    call: Call,
    file: ChangesFile,
    counter: CounterTemplate = DEFAULT.counter,
    change: ChangeTemplate = DEFAULT.change,
    key: KeyTemplate = None,
    at: AtTemplate = DEFAULT.at,
    home_region: RegionTemplate = None,
    format_: OfForm = None,
    separator: Separator = None,
    dry_run: DryRun = False,
) -> None:
    """Add the changes of a CSV or JSONL file.

    Run it again after any failure: nothing counts twice.

    Rows need counter, change, idempotency_key and at (and may have region), or come from `export`.
    A key that is a ULID or a UUIDv7 needs no at. For other columns give templates. Bad rows go to
    FILE.bad.csv or FILE.bad.jsonl with the reason.
    """
    path, columns = Path(file), Columns(counter, change, key or DEFAULT.key, at)
    with ExitStack() as stack:
        form, lines = stack.enter_context(
            forms.opened(path, format_.value if format_ else None, separator)
        )
        names, rows = rows_of(lines, form)
        by_token = key is None and (names is None or "token" in names)
        first = list(islice(rows, 1))
        _check_templates(columns, by_token, names, first, form)
        rows = chain(first, rows)
        if home_region is not None:
            check_template("home-region", home_region, names, form)
        bad = BadRows(form, names)
        stack.callback(bad.close)
        done = Import(
            call, columns, names is None and columns == DEFAULT, by_token, home_region, bad, dry_run
        )
        try:
            with call.progress("lines", forms.lines_of(path) if call.has_bars else None) as more:
                while batch := list(islice(rows, BATCH)):
                    before = done.line
                    done.put(batch)
                    more(done.line - before)
        except (LedgerError, CutFile, KeyboardInterrupt) as failure:
            said = f"The import stopped: {done}; every row before line {done.line:,} is done."
            remedy = "Run it again: nothing counts twice." + (
                f"\nBad rows so far: {bad.path}" if bad.count else ""
            )
            raise cut_off(failure, call.where, said, remedy) from None
    done.show()


def _check_templates(
    columns: Columns,
    by_token: bool,
    names: Sequence[str] | None,
    first: Sequence[Row],
    form: Form,
) -> None:
    """Raises BadTemplate. first: the first row, if there is one."""
    unchecked = {"key", "at"} if by_token and names is not None else set()
    # a file needs no column of times where its keys bring them, as that of its first row does
    if columns.at == DEFAULT.at and names is not None and "at" not in names:
        unchecked |= {"at" for row in first if brings_time(columns, row)}
    for option, template in asdict(columns).items():
        if option not in unchecked:
            check_template(option, template, names, form)
