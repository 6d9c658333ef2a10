"""`Import`: what an import has done, and each further batch of its rows.

Rule 1: A bad row goes to a file with the reason, once its batch is done, and stops no other row.
Rule 2: A limited counter's rows go to its gates in their order, a lane at a time; one that would
pass the limit is a bad row, and so is one of any counter whose period is over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.failures import DATA
from ledgerctl.rows import (
    DEFAULT,
    BadRow,
    BadRows,
    Columns,
    Row,
    change_of,
    filled,
    message_in,
    number_of,
)

OF_ROW = TokenConflict | LimitReached | PeriodOver
"""Errors of a row alone."""


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
        if self.home_region is None and self.columns.key == DEFAULT.key:  # rows may be messages
            if fields.get("then") is not None:
                raise BadRow(
                    "A row with `then` is a transfer, and import would add half of it: send it to "
                    "the queue."
                )
            if fields.get("partial") not in (None, False, "", "false"):
                raise BadRow(
                    "A row with `partial` may count in part, but import would add all of it: send "
                    "it to the queue."
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
