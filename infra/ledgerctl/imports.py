"""`import`: a file of changes into the table.

Rules: a row names its change (key and time, or a token), so an import that was cut off is simply run again and counts
nothing twice; a bad row goes to a file with the reason and stops nobody; what the table refuses stops the import after
the rows it took; memory is that of one batch.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, TextIO

import typer

from infra.ledgerctl import show
from infra.ledgerctl.call import Call, command
from infra.ledgerctl.failures import DATA, INTERRUPTED, Wrong, told
from infra.ledgerctl.history import FileFormat
from infra.ledgerctl.rows import BadRows, Row, Rows, opened
from infra.ledgerctl.templates import BadRow, Columns, change_of, check_template, filled, number_of
from ledger import tokens
from ledger.add import add_many
from ledger.errors import InvalidInput, LedgerError, TokenConflict, shown
from ledger.values import Delta, Receipt, check_counter

BATCH = 500
DEFAULT = Columns()


@dataclass(slots=True)
class Tally:
    """What became of the rows so far. `line`: all rows before it are done."""

    fine: int = 0
    recorded: int = 0
    replayed: int = 0
    bad: int = 0
    line: int = 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a row becomes a delta: by its token if it has one and no key was asked for, else by key and time."""

    columns: Columns
    by_token: bool
    home_region: str | None

    def delta(self, call: Call, row: Row) -> Delta:
        """Raises BadRow, BadTemplate."""
        if row.why is not None:
            raise BadRow(row.why)
        fields, settings = row.fields, call.settings
        region = settings.region
        if self.home_region is not None:
            region = filled("home-region", self.home_region, fields)
        elif self.columns.key == DEFAULT.key:  # a row of `export`, or a message
            region = fields.get("region") or region
        try:
            if not (self.by_token and fields.get("token")):
                asked = change_of(self.columns, fields)
                return call.ledger.prepare(
                    asked.counter, asked.change, idempotency_key=asked.idempotency_key, at=asked.at, region=region
                )
            counter = check_counter(filled("counter", self.columns.counter, fields))
            token, change = fields["token"], number_of(self.columns, fields)
            if region not in settings.regions:
                raise BadRow(f"region={shown(region)} is not one of regions={settings.regions!r}.")
            if not (isinstance(token, str) and tokens.is_token(token)):
                raise BadRow(f"token={shown(token)} is no token: a ULID of 26 characters.")
            return Delta(settings.lane_for(counter, token, region), token, change)
        except InvalidInput as error:
            raise BadRow(error.why) from None


@command("import")
def import_(
    call: Call,
    file: Annotated[str, typer.Argument(help="A CSV with a header, or JSONL; - is standard input.")],
    counter: Annotated[str, typer.Option(help='A template: "stock:{stock_code}".')] = DEFAULT.counter,
    change: Annotated[str, typer.Option(help='A template; a minus turns the sign: "-{quantity}".')] = DEFAULT.change,
    key: Annotated[str | None, typer.Option(help='A template: "{invoice}/{line}".')] = None,
    at: Annotated[str, typer.Option(help='A template: "{invoiced_at}"; ISO 8601 with a zone.')] = DEFAULT.at,
    home_region: Annotated[str | None, typer.Option(help="A template: where changes were first asked for.")] = None,
    format_: Annotated[FileFormat | None, typer.Option("--format", help="Without it, by the file's name.")] = None,
    from_line: Annotated[int, typer.Option(min=1, help="Skip the lines before; for a long import cut off.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all rows and write nothing to the table.")] = False,
) -> None:
    """Add the changes of a CSV or JSONL file.

    Run it again after anything: nothing counts twice.

    Rows need counter, change, idempotency_key and at (and may have region), or are those of `export`; else say by
    templates where they stand. Bad rows go to FILE.bad.csv or FILE.bad.jsonl with the reason.
    """
    path = Path("stdin" if file == "-" else file)
    kind = format_.value if format_ else "csv" if path.suffix.lower() == ".csv" else "jsonl"
    columns = Columns(counter, change, key or DEFAULT.key, at)
    tally = Tally(line=from_line)
    with ExitStack() as stack:
        source = _standard_input() if file == "-" else stack.enter_context(opened(path))
        recipe, rows = _checked(Rows(source, kind), columns, key is None, home_region)
        bad = BadRows(path.with_name(f"{path.stem}.bad.{kind}"), rows.names)
        stack.callback(bad.close)
        size = None if file == "-" else path.stat().st_size
        bar = stack.enter_context(show.bar(call.err, "importing", size, count=False))
        try:
            for taken in _batches(row for row in rows if row.line >= from_line):
                _put(call, recipe, taken, bad, tally, dry_run)
                tally.line = taken[-1].line + 1
                if size is not None:
                    bar.at(source.buffer.tell())
        except (LedgerError, KeyboardInterrupt) as failure:
            raise _cut_off(call, failure, tally, file) from None
    _tell(call, tally, bad, dry_run)


def _checked(rows: Rows, columns: Columns, no_key: bool, home_region: str | None) -> tuple[Recipe, Rows]:
    """Raises BadTemplate for what can fit no row; without a header only the form of the templates can be seen."""
    by_token = no_key and (rows.names is None or "token" in rows.names)
    for option, template in asdict(columns).items():
        if not (by_token and rows.names is not None and option in ("key", "at")):
            check_template(option, template, rows.names)
    if home_region is not None:
        check_template("home-region", home_region, rows.names)
    return Recipe(columns, by_token, home_region), rows


def _put(call: Call, recipe: Recipe, taken: list[Row], bad: BadRows, tally: Tally, dry_run: bool) -> None:
    """One batch. Raises the error of the first row that failed for a reason that is not its own."""
    found: list[tuple[Row, Delta]] = []
    for row in taken:
        try:
            found.append((row, recipe.delta(call, row)))
        except BadRow as error:
            bad.add(row, str(error))
    tally.fine += len(found)
    outcomes = [] if dry_run else call.run(add_many([delta for _, delta in found]))
    failed: LedgerError | None = None
    for (row, _), outcome in zip(found, outcomes, strict=False):
        match outcome:
            case Receipt("recorded"):
                tally.recorded += 1
            case Receipt():
                tally.replayed += 1
            case TokenConflict():
                bad.add(row, str(outcome))
            case _:
                failed = failed or outcome
    tally.bad = bad.count
    if failed is not None:
        raise failed


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while taken := list(islice(rows, BATCH)):
        yield taken


def _tell(call: Call, tally: Tally, bad: BadRows, dry_run: bool) -> None:
    if call.json:
        counts = {"recorded": tally.recorded, "replayed": tally.replayed, "bad": tally.bad}
        bad_file = str(bad.path) if tally.bad else None
        consumed = show.cost_fields(call.consumed.take())
        call.document({**counts, "rows": tally.fine + tally.bad, "bad_file": bad_file, "dry_run": dry_run, **consumed})
    elif dry_run:
        call.say(f"changes: {tally.fine:,}, bad rows: {tally.bad:,}; nothing was written to the table")
    else:
        call.say(_counts(tally), style=None if tally.bad else "green")
        call.note(show.cost(call.consumed.take()))
    if tally.bad:
        call.note(f"Bad rows, each with the reason: {bad.path}. Put them right there and import that file.", "yellow")
        raise typer.Exit(DATA)


def _counts(tally: Tally) -> str:
    return f"{tally.recorded:,} recorded, {tally.replayed:,} replayed (they were there already), {tally.bad:,} bad"


def _cut_off(call: Call, failure: BaseException, tally: Tally, file: str) -> Wrong:
    """Where it stopped, why, and how it goes on."""
    went_on = f"{_counts(tally)}; every row before line {tally.line:,} is done."
    remedy = "Run it again: nothing counts twice."
    if file != "-" and tally.line > 1:
        remedy = f"{remedy} --from-line {tally.line} spares the rows that are done."
    if isinstance(failure, Exception):
        wrong = told(failure, call.where)
        return Wrong(
            wrong.kind, f"{wrong.message} The import stopped: {went_on}", f"{wrong.remedy}\n{remedy}", wrong.code
        )
    return Wrong("Interrupted", f"Interrupted. {went_on}", remedy, INTERRUPTED)


def _standard_input() -> TextIO:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape", newline="")
    return sys.stdin
