"""`import`: adds a file of changes to the table.

Rule 1: A row of `export` has a token and is the same delta again; any other row names its change by
key and time. So you can run an import that was cut off again, and nothing counts twice. A row of
JSONL is a message without templates.
Rule 2: A bad row goes to a file with the reason, once its batch is done, and stops no other row.
Rule 3: A failure of the table stops the import after the rows that it took.
Rule 4: Memory is that of one batch.
Rule 5: A limited counter's rows go to its gates in their order, a lane at a time; one that would
pass the limit is a bad row, and so is one of any counter whose period is over.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from ledger.client.message import time_text
from ledger.client.writer import add_deltas
from ledger.core import tokens
from ledger.core.checks import to_datetime
from ledger.core.errors import (
    InvalidInput,
    LedgerError,
    LimitReached,
    PeriodOver,
    TokenConflict,
    shown,
)
from ledger.core.settings import Settings
from ledger.core.values import Change, Delta, Lane, Receipt
from ledger.lane.add import Outcome
from ledgerctl import forms, show
from ledgerctl.call import Call
from ledgerctl.command import FileFormat, command
from ledgerctl.failures import DATA, cut_off
from ledgerctl.forms import CutFile
from ledgerctl.rows import (
    DEFAULT,
    BadRow,
    BadRows,
    Columns,
    Row,
    change_of,
    check_template,
    filled,
    message_in,
    number_of,
    rows_of,
)

BATCH = 500
OF_ROW = TokenConflict | LimitReached | PeriodOver
"""Errors of a row alone."""


@command("import")
def import_(
    call: Call,
    file: Annotated[
        str, typer.Argument(help="A CSV with a header, or JSONL, also .gz; - is standard input.")
    ],
    counter: Annotated[
        str, typer.Option(help='A template: "stock:{stock_code}".')
    ] = DEFAULT.counter,
    change: Annotated[
        str, typer.Option(help='A template; a minus turns the sign: "-{quantity}".')
    ] = DEFAULT.change,
    key: Annotated[str | None, typer.Option(help='A template: "{invoice}/{line}".')] = None,
    at: Annotated[
        str, typer.Option(help='A template: "{invoiced_at}"; ISO 8601 with a zone.')
    ] = DEFAULT.at,
    home_region: Annotated[
        str | None, typer.Option(help="A template: where you first asked for the change.")
    ] = None,
    format_: Annotated[
        FileFormat | None,
        typer.Option("--format", help="Else the file's name or first line says it."),
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="Between a CSV's fields, if not a comma: ';' or tab.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check all rows and write nothing to the table.")
    ] = False,
) -> None:
    """Add the changes of a CSV or JSONL file.

    Run it again after any failure: nothing counts twice.

    Rows need counter, change, idempotency_key and at (and may have region), or come from `export`.
    For other columns give templates. Bad rows go to FILE.bad.csv or FILE.bad.jsonl with the reason.
    """
    path, columns = Path(file), Columns(counter, change, key or DEFAULT.key, at)
    with ExitStack() as stack:
        form, lines = stack.enter_context(
            forms.opened(path, format_.value if format_ else None, separator)
        )
        names, rows = rows_of(lines, form)
        by_token = key is None and (names is None or "token" in names)
        for option, template in asdict(columns).items():
            if not (by_token and names is not None and option in ("key", "at")):
                check_template(option, template, names, form)
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


@dataclass(slots=True)
class Import:
    """has_messages: a row is a message. by_token: a row's token names its change, if it has one.
    line: all rows before it are done.
    """

    call: Call
    columns: Columns
    has_messages: bool
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
        settings, token = self.call.settings, row.fields.get("token") if self.by_token else None
        new = self._change(row.fields, token or None)
        prepared = self.call.ledger.prepare(  # refuses what add refuses
            new.counter,
            new.change,
            idempotency_key=new.idempotency_key,
            at=new.at,
            region=new.region,
        )
        if not token:
            return prepared
        return Delta(
            settings.lane_for(new.counter, token, prepared.lane.region), token, prepared.change
        )

    def _change(self, fields: Mapping[str, Any], token: object) -> Change:
        """The change of a row, unchecked.

        token: that of the row, which then names its change. Raises BadRow.
        """
        if (
            self.home_region is None
            and self.columns.key == DEFAULT.key
            and fields.get("then") is not None
        ):
            raise BadRow(
                "A row with `then` is a transfer, and import would add half of it: send it to the "
                "queue."
            )
        at = None
        if token is not None:
            if not (isinstance(token, str) and tokens.is_token(token)):
                raise BadRow(f"token={shown(token)} is no token: that is a ULID of 26 characters.")
            at = to_datetime(tokens.time_ms(token))
        if self.has_messages and at is not None:  # a row of `export`
            named = {name: value for name, value in fields.items() if name != "token"}
            new = message_in(named | {"idempotency_key": token, "at": time_text(at)})
        elif self.has_messages:
            new = message_in(fields)
        elif at is not None and isinstance(token, str):
            new = Change(
                filled("counter", self.columns.counter, fields),
                number_of(self.columns, fields),
                token,
                at,
            )
        else:
            new = change_of(self.columns, fields)
        return replace(new, region=self._region(fields, new))

    def _region(self, fields: Mapping[str, Any], new: Change) -> str | None:
        if self.home_region is not None:
            return filled("home-region", self.home_region, fields)
        if self.has_messages:
            return new.region
        # a row of `export`
        return (fields.get("region") or None) if self.columns.key == DEFAULT.key else None

    def _added(self, deltas: Sequence[Delta]) -> dict[int, Outcome]:
        """Their outcomes, by place. After a failure it sends nothing more."""
        outcomes: dict[int, Outcome] = {}
        for places in _rounds(self.call.settings, deltas):
            outcomes |= zip(
                places,
                add_deltas(self.call.ledger, [deltas[place] for place in places]),
                strict=True,
            )
            if any(not isinstance(outcomes[place], Receipt | OF_ROW) for place in places):
                break
        return outcomes

    def show(self) -> None:
        call, bad, consumed = self.call, self.bad, self.call.meter.take()
        fields = {
            "recorded": self.recorded,
            "replayed": self.replayed,
            "bad": bad.count,
            "rows": self.rows,
        }
        where = {"bad_file": str(bad.path) if bad.count else None, "dry_run": self.dry_run}
        call.document(fields | where | show.cost_fields(consumed))
        if self.dry_run:
            call.say(
                f"changes: {self.rows - bad.count:,}, bad rows: {bad.count:,}; nothing was "
                "written to the table"
            )
        else:
            call.say(str(self), style=None if bad.count else "green")
            call.note(show.cost(consumed))
        if bad.count:
            text = (
                f"Bad rows, each with the reason: {bad.path}. Correct them there and import "
                "that file."
            )
            call.note(text, "yellow")
            raise typer.Exit(DATA)


def _rounds(settings: Settings, deltas: Sequence[Delta]) -> list[list[int]]:
    """The places of deltas that may go at once: a sale in one lane must follow an earlier
    delivery in another.
    """
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
