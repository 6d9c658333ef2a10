"""`import`: a file of changes into the table.

Rule 1: A row names its change (key and time, or a token), so an import that was cut off is simply run again and counts
nothing twice.
Rule 2: A bad row goes to a file with the reason, once its batch is done, and stops nobody.
Rule 3: What the table refuses stops the import after the rows it took.
Rule 4: Memory is that of one batch.
Rule 5: A limited counter's rows go to its gates in their order, a lane at a time; one that would pass the limit is a
bad row.
"""

import io
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, TextIO

import typer

from ledger.errors import LedgerError, LimitReached, TokenConflict
from ledger.lane.add import Outcome
from ledger.settings import Settings
from ledger.values import Delta, Lane, Receipt
from ledger.writer import add_deltas
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import COUNTERS, FileFormat, command
from ledgerctl.failures import DATA, cut_off
from ledgerctl.rows import BadRows, Row, Rows, opened
from ledgerctl.templates import DEFAULT, BadRow, Columns, Recipe, recipe_of

BATCH = 500


@dataclass(slots=True)
class Tally:
    """What became of the rows so far. `line`: all rows before it are done."""

    rows: int = 0
    recorded: int = 0
    replayed: int = 0
    bad: int = 0
    line: int = 1

    def __str__(self) -> str:
        done = f"{self.recorded:,} recorded, {self.replayed:,} replayed (they were there already)"
        return f"{done}, {self.bad:,} bad"


@command("import", COUNTERS)
def import_(
    call: Call,
    file: Annotated[str, typer.Argument(help="A CSV with a header, or JSONL; - is standard input.")],
    counter: Annotated[str, typer.Option(help='A template: "stock:{stock_code}".')] = DEFAULT.counter,
    change: Annotated[str, typer.Option(help='A template; a minus turns the sign: "-{quantity}".')] = DEFAULT.change,
    key: Annotated[str | None, typer.Option(help='A template: "{invoice}/{line}".')] = None,
    at: Annotated[str, typer.Option(help='A template: "{invoiced_at}"; ISO 8601 with a zone.')] = DEFAULT.at,
    home_region: Annotated[str | None, typer.Option(help="A template: where changes were first asked for.")] = None,
    format_: Annotated[FileFormat | None, typer.Option("--format", help="Without it, by the file's name.")] = None,
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
    tally = Tally()
    with ExitStack() as stack:
        source = _standard_input() if file == "-" else stack.enter_context(opened(path))
        rows = Rows(source, kind)
        recipe = recipe_of(rows, columns, key is None, home_region)
        bad = BadRows(path.with_name(f"{path.stem}.bad.{kind}"), rows.names)
        stack.callback(bad.close)
        advance = stack.enter_context(show.bar(call.err, "importing", None))
        try:
            waiting = iter(rows)
            while taken := list(islice(waiting, BATCH)):
                _put(call, recipe, taken, bad, tally, dry_run)
                tally.line = taken[-1].line + 1
                advance(len(taken))
        except (LedgerError, KeyboardInterrupt) as failure:
            done = f"The import stopped: {tally}; every row before line {tally.line:,} is done."
            remedy = "Run it again: nothing counts twice." + (f"\nBad rows so far: {bad.path}" if bad.count else "")
            raise cut_off(failure, call.where, done, remedy) from None
    _show(call, tally, bad, dry_run)


def _put(call: Call, recipe: Recipe, taken: list[Row], bad: BadRows, tally: Tally, dry_run: bool) -> None:
    """One batch. Raises the error of the first row that failed for a reason that is not its own."""
    found: list[tuple[Row, Delta]] = []
    refused: list[tuple[Row, str]] = []
    for row in taken:
        try:
            found.append((row, recipe.delta(call.ledger, row)))
        except BadRow as error:
            refused.append((row, str(error)))
    outcomes = {} if dry_run else _added(call, [delta for _, delta in found])
    failed: LedgerError | None = None
    for place, outcome in sorted(outcomes.items()):
        match outcome:
            case Receipt("recorded"):
                tally.recorded += 1
            case Receipt():
                tally.replayed += 1
            case TokenConflict() | LimitReached():
                refused.append((found[place][0], str(outcome)))
            case _:
                failed = failed or outcome
    if failed is not None:
        raise failed
    for row, why in sorted(refused, key=lambda each: each[0].line):
        bad.add(row, why)
    tally.rows, tally.bad = tally.rows + len(taken), bad.count


def _added(call: Call, deltas: list[Delta]) -> dict[int, Outcome]:
    """What became of them, by their places; after a failure nothing more is sent."""
    outcomes: dict[int, Outcome] = {}
    for places in _rounds(call.settings, deltas):
        outcomes |= zip(places, add_deltas(call.ledger, [deltas[place] for place in places]), strict=True)
        if any(not isinstance(outcomes[place], Receipt | TokenConflict | LimitReached) for place in places):
            break
    return outcomes


def _rounds(settings: Settings, deltas: Iterable[Delta]) -> list[list[int]]:
    """The places of those that may go at once: a sale in one lane comes after the delivery before it in another."""
    found: list[list[int]] = []
    last: dict[str, tuple[int, Lane]] = {}
    for place, delta in enumerate(deltas):
        counter, number = delta.lane.counter, 0
        if settings.limit_of(counter) is not None:
            number, lane = last.get(counter, (0, delta.lane))
            number += lane != delta.lane
            last[counter] = number, delta.lane
        found += [[]] if number == len(found) else []
        found[number].append(place)
    return found


def _show(call: Call, tally: Tally, bad: BadRows, dry_run: bool) -> None:
    consumed = call.meter.take()
    fields = {"recorded": tally.recorded, "replayed": tally.replayed, "bad": tally.bad, "rows": tally.rows}
    where = {"bad_file": str(bad.path) if bad.count else None, "dry_run": dry_run}
    call.document(fields | where | show.cost_fields(consumed))
    if dry_run:
        call.say(f"changes: {tally.rows - tally.bad:,}, bad rows: {tally.bad:,}; nothing was written to the table")
    else:
        call.say(str(tally), style=None if tally.bad else "green")
        call.note(show.cost(consumed))
    if tally.bad:
        call.note(f"Bad rows, each with the reason: {bad.path}. Put them right there and import that file.", "yellow")
        raise typer.Exit(DATA)
    if bad.old:
        call.note(f"{bad.path} is of an earlier run; in this one no row was bad.", "yellow")


def _standard_input() -> TextIO:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape", newline="")
    return sys.stdin
