"""`import`: adds a file of changes to the table.

Rule 1: A row of `export` has a token and is the same delta again; any other row names its change by key and time. So
you can run an import that was cut off again, and nothing counts twice.
Rule 2: A bad row goes to a file with the reason, once its batch is done, and stops no other row.
Rule 3: A failure of the table stops the import after the rows that it took.
Rule 4: Memory is that of one batch.
Rule 5: A limited counter's rows go to its gates in their order, a lane at a time; one that would pass the limit is a
bad row, and so is one of any counter whose period is over.
"""

import io
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, TextIO

import typer

from ledger import tokens
from ledger.checks import to_datetime
from ledger.errors import InvalidInput, LedgerError, LimitReached, PeriodOver, TokenConflict, shown
from ledger.lane.add import Outcome
from ledger.settings import Settings
from ledger.values import Delta, Lane, Receipt
from ledger.writer import add_deltas
from ledgerctl import rows as files
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.command import FileFormat, command
from ledgerctl.failures import DATA, cut_off
from ledgerctl.rows import DEFAULT, BadRow, BadRows, Columns, Row, change_of, check_template, filled, number_of, rows_of

BATCH = 500
OF_ROW = TokenConflict | LimitReached | PeriodOver
"""Errors of a row alone."""


@command("import")
def import_(
    call: Call,
    file: Annotated[str, typer.Argument(help="A CSV with a header, or JSONL; - is standard input.")],
    counter: Annotated[str, typer.Option(help='A template: "stock:{stock_code}".')] = DEFAULT.counter,
    change: Annotated[str, typer.Option(help='A template; a minus turns the sign: "-{quantity}".')] = DEFAULT.change,
    key: Annotated[str | None, typer.Option(help='A template: "{invoice}/{line}".')] = None,
    at: Annotated[str, typer.Option(help='A template: "{invoiced_at}"; ISO 8601 with a zone.')] = DEFAULT.at,
    home_region: Annotated[str | None, typer.Option(help="A template: where you first asked for the change.")] = None,
    format_: Annotated[FileFormat | None, typer.Option("--format", help="Without it, the file's name decides.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check all rows and write nothing to the table.")] = False,
) -> None:
    """Add the changes of a CSV or JSONL file.

    Run it again after any failure: nothing counts twice.

    Rows need counter, change, idempotency_key and at (and may have region), or come from `export`. For other columns
    give templates. Bad rows go to FILE.bad.csv or FILE.bad.jsonl with the reason.
    """
    path = Path("stdin" if file == "-" else file)
    kind = format_.value if format_ else "csv" if path.suffix.lower() == ".csv" else "jsonl"
    columns = Columns(counter, change, key or DEFAULT.key, at)
    with ExitStack() as stack:
        source = _standard_input() if file == "-" else stack.enter_context(files.opened(path))
        names, rows = rows_of(source, kind)
        by_token = key is None and (names is None or "token" in names)
        for option, template in asdict(columns).items():
            if not (by_token and names is not None and option in ("key", "at")):
                check_template(option, template, names)
        if home_region is not None:
            check_template("home-region", home_region, names)
        bad = BadRows(path.with_name(f"{path.stem}.bad.{kind}"), names)
        stack.callback(bad.close)
        done = Import(call, columns, by_token, home_region, bad, dry_run)
        try:
            with call.progress("lines", files.lines_of(path) if file != "-" and call.has_bars else None) as more:
                while batch := list(islice(rows, BATCH)):
                    before = done.line
                    done.put(batch)
                    more(done.line - before)
        except (LedgerError, KeyboardInterrupt) as failure:
            said = f"The import stopped: {done}; every row before line {done.line:,} is done."
            remedy = "Run it again: nothing counts twice." + (f"\nBad rows so far: {bad.path}" if bad.count else "")
            raise cut_off(failure, call.where, said, remedy) from None
    done.show()


@dataclass(slots=True)
class Import:
    """by_token: a row's token names its change, if it has one. line: all rows before it are done."""

    call: Call
    columns: Columns
    by_token: bool
    home_region: str | None
    bad: BadRows
    dry_run: bool
    rows: int = 0
    recorded: int = 0
    replayed: int = 0
    line: int = 1

    def __str__(self) -> str:
        done = f"{self.recorded:,} recorded, {self.replayed:,} replayed (they were there already)"
        return f"{done}, {self.bad.count:,} bad"

    def put(self, batch: Sequence[Row]) -> None:
        """Raises the error of the first row that failed for a reason that is not its own."""
        found: list[tuple[Row, Delta]] = []
        refused: list[tuple[Row, str]] = []
        for row in batch:
            try:
                found.append((row, self._delta(row)))
            except BadRow as error:
                refused.append((row, str(error)))
            except InvalidInput as error:
                refused.append((row, error.why))
        outcomes = {} if self.dry_run else self._added([delta for _, delta in found])
        failed: LedgerError | None = None
        for place, outcome in sorted(outcomes.items()):
            match outcome:
                case Receipt("recorded"):
                    self.recorded += 1
                case Receipt():
                    self.replayed += 1
                case LedgerError() if isinstance(outcome, OF_ROW):
                    refused.append((found[place][0], str(outcome)))
                case _:
                    failed = failed or outcome
        if failed is not None:
            raise failed
        for row, why in sorted(refused, key=lambda each: each[0].line):
            self.bad.add(row, why)
        self.rows, self.line = self.rows + len(batch), batch[-1].line + 1

    def _delta(self, row: Row) -> Delta:
        """Raises BadRow, InvalidInput, BadTemplate."""
        if row.why is not None:
            raise BadRow(row.why)
        fields, columns, ledger = row.fields, self.columns, self.call.ledger
        region = ledger.settings.region
        if self.home_region is not None:
            region = filled("home-region", self.home_region, fields)
        elif columns.key == DEFAULT.key:  # a row of `export`, or a message
            region = fields.get("region") or region
            if fields.get("then") is not None:
                raise BadRow("A row with `then` is a transfer, and import would add half of it: send it to the queue.")
        if not (self.by_token and fields.get("token")):
            new = change_of(columns, fields)
            key, at = new.idempotency_key, new.at
            return ledger.prepare(new.counter, new.change, idempotency_key=key, at=at, region=region)
        counter, change = filled("counter", columns.counter, fields), number_of(columns, fields)
        token = fields["token"]
        if not (isinstance(token, str) and tokens.is_token(token)):
            raise BadRow(f"token={shown(token)} is no token: that is a ULID of 26 characters.")
        at = to_datetime(tokens.time_ms(token))
        ledger.prepare(counter, change, idempotency_key=token, at=at, region=region)  # refuses what add refuses
        return Delta(ledger.settings.lane_for(counter, token, region), token, change)

    def _added(self, deltas: Sequence[Delta]) -> dict[int, Outcome]:
        """Their outcomes, by place. After a failure it sends nothing more."""
        outcomes: dict[int, Outcome] = {}
        for places in _rounds(self.call.settings, deltas):
            outcomes |= zip(places, add_deltas(self.call.ledger, [deltas[place] for place in places]), strict=True)
            if any(not isinstance(outcomes[place], Receipt | OF_ROW) for place in places):
                break
        return outcomes

    def show(self) -> None:
        call, bad, consumed = self.call, self.bad, self.call.meter.take()
        fields = {"recorded": self.recorded, "replayed": self.replayed, "bad": bad.count, "rows": self.rows}
        where = {"bad_file": str(bad.path) if bad.count else None, "dry_run": self.dry_run}
        call.document(fields | where | show.cost_fields(consumed))
        if self.dry_run:
            call.say(f"changes: {self.rows - bad.count:,}, bad rows: {bad.count:,}; nothing was written to the table")
        else:
            call.say(str(self), style=None if bad.count else "green")
            call.note(show.cost(consumed))
        if bad.count:
            text = f"Bad rows, each with the reason: {bad.path}. Correct them there and import that file."
            call.note(text, "yellow")
            raise typer.Exit(DATA)


def _rounds(settings: Settings, deltas: Sequence[Delta]) -> list[list[int]]:
    """The places of deltas that may go at once: a sale in one lane must follow an earlier delivery in another."""
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


def _standard_input() -> TextIO:
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape", newline="")
    return sys.stdin
