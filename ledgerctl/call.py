"""One call of `ledgerctl`: the surroundings as its options show them, and what is printed.

Rule 1: A call gets its surroundings once, and nobody looks past them. An option wins over the
environment.
Rule 2: Results go to standard output, everything else to standard error. A command gives each
result to `document` and to `say`: the first prints with --json, the second without it.
Rule 3: failures.py says what a failure means; no user sees a stack trace.
"""

from __future__ import annotations

import functools
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import boto3
import typer
from rich.console import Console, RenderableType
from rich.text import Text

from compactor import Compactor
from ledger import Ledger, Settings
from ledger.core import clocks
from ledger.core.cost import Meter
from ledger.core.requests import Program, Table
from ledger.core.running import run
from ledger.lane.shape import ShapeCheck
from ledger.tables.boto import not_made
from ledger.tables.dynamo import ByRegion, DynamoTable
from ledger.tables.failures import FAILED, ConditionFailed, error_of, note_attempts
from ledgerctl import show
from ledgerctl.failures import SILENT, TRACE, UNEXPECTED, Wrong, meaning
from ledgerctl.surroundings import Surroundings
from reader import Reader

Result = TypeVar("Result")


def _columns(console: Console) -> int:
    """What a sentence has to fit: a terminal. A program reads it in one line."""
    return console.width if console.is_terminal else sys.maxsize


class Call:
    """The surroundings under the options of one command.

    The first use makes each part, so `cost` needs no table.
    """

    def __init__(
        self, surroundings: Surroundings, options: Mapping[str, Any], meter: Meter | None = None
    ) -> None:
        self.surroundings = surroundings
        self.json: bool = options["json"]
        self._options = options
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.meter = meter or Meter()  # of the command, on whatever table
        # No markup: a counter may be called "[red]". Tables fit the console, notes and failures a
        # terminal; a line of a result may be longer.
        plain: Any = {
            "markup": False,
            "highlight": False,
            "emoji": False,
            "_environ": surroundings.environ,
        }
        self.out, self.err = Console(**plain), Console(**plain, stderr=True)

    def other(self, **options: str) -> Call:
        """This call under other options, such as on another table."""
        return Call(self.surroundings, {**self._options, **options}, self.meter)

    def around(self, surroundings: Surroundings) -> Call:
        """This call in other surroundings, such as with other tables."""
        return Call(surroundings, self._options, self.meter)

    @functools.cached_property
    def session(self) -> boto3.Session:
        return self.surroundings.session(self._options["profile"])

    @functools.cached_property
    def settings(self) -> Settings:
        """From the options, else the environment; the Region else from the profile.

        Raises InvalidSettings, Wrong.
        """
        given = {
            name: self._options[name] for name in ("table", "endpoint_url") if self._options[name]
        }
        environ = self.surroundings.environ
        if self._options["regions"]:
            given["regions"] = tuple(
                part.strip() for part in self._options["regions"].split(",") if part.strip()
            )
        region = (
            self._options["region"]
            or environ.get("AWS_REGION")
            or environ.get("AWS_DEFAULT_REGION")
        )
        given["region"] = region or self.session.region_name
        if not given["region"]:
            raise Wrong("NoRegion", "No Region is named.", "Give --region NAME, or set AWS_REGION.")
        if "table" not in given and not environ.get("LEDGER_TABLE"):
            raise Wrong("NoTable", "No table is named.", "Give --table NAME, or set LEDGER_TABLE.")
        return Settings.from_env(environ, **given)

    def pinned(self) -> list[str]:
        """The options that name this table and Region, whatever the environment of the next
        command.
        """
        settings, profile = (
            self.settings,
            self._options["profile"] or self.surroundings.environ.get("AWS_PROFILE"),
        )
        pairs = [
            ("--table", settings.table),
            ("--region", settings.region),
            ("--regions", ",".join(settings.regions)),
        ]
        pairs += [("--endpoint-url", settings.endpoint_url or ""), ("--profile", profile or "")]
        return [word for option, value in pairs if value for word in (option, value)]

    @functools.cached_property
    def tables(self) -> Mapping[str, Table]:
        """The table as each Region of the settings sees it."""
        if self.surroundings.tables is not None:
            return self.surroundings.tables
        its = self.settings
        return {
            at: DynamoTable(its.table, at, self.client, insert_only=its.insert_only)
            for at in its.regions
        }

    @functools.cached_property
    def table(self) -> Table:  # as this Region sees it; a request At another one goes there
        return ByRegion(self.settings.region, self.tables)

    def client(self, region: str) -> Any:
        with self._lock:  # a session is not thread-safe while it makes a client
            if region not in self._clients:
                self._clients[region] = note_attempts(self.aws("dynamodb", region))
            return self._clients[region]

    def aws(self, service: Any, region: str) -> Any:
        """A boto3 client of a service. Raises InvalidSettings and NotAllowed."""
        url, config = self.settings.endpoint_url, self.surroundings.config
        try:
            return self.session.client(service, region_name=region, endpoint_url=url, config=config)
        except ValueError as failure:
            raise not_made(url, failure) from failure

    @functools.cached_property
    def ledger(self) -> Ledger:
        outside = self.surroundings
        return Ledger(self.settings, table=self.table, clock=outside.clock, entropy=outside.entropy)

    @functools.cached_property
    def reader(self) -> Reader:
        return Reader(self.settings, table=self.table, clock=self.surroundings.clock)

    @functools.cached_property
    def compactor(self) -> Compactor:
        return Compactor(self.settings, tables=self.tables, clock=self.surroundings.clock)

    @functools.cached_property
    def _shape(self) -> ShapeCheck:
        return ShapeCheck(self.settings)

    def run(self, program: Program[Result], region: str | None = None) -> Result:
        """Run a program on the table as a Region sees it, else as this one does.

        Raises SettingsMismatch.
        """
        now = clocks.instants(self.surroundings.clock)
        self._shape.ask(self.table, now)
        return run(program, self.tables[region or self.settings.region], now)

    def on_table(self, program: Program[Result], table: Table | None = None) -> Result:
        """Run a program that checks the shape itself, on `table`, else on this one, which sends
        to other Regions.
        """
        return run(program, table or self.table, clocks.instants(self.surroundings.clock))

    def ask(self, region: str, operation: str, **arguments: Any) -> Any:
        """A Region's answer to a request that the library never sends, or the LedgerError that
        its failure means.
        """
        try:
            return getattr(self.client(region), operation)(**arguments)
        except FAILED as failure:
            error = error_of(failure, operation, False, self.settings.table)
            if isinstance(error, ConditionFailed):
                return {}
            error.__cause__ = failure
            return error

    def say(self, text: str | Text = "", style: str | None = None) -> None:
        """A result, for people."""
        if not self.json:
            self.out.print(text, style=style, soft_wrap=True)

    def table_of(
        self, columns: Sequence[str], rows: Sequence[Sequence[RenderableType]], left: int = 1
    ) -> None:
        """The same as a table, if it has rows; the `left` first columns are text."""
        if rows and not self.json:
            self.out.print(show.table(columns, rows, left=left))

    def document(self, document: object) -> None:
        """A result, for programs: one line of JSON."""
        if self.json:
            typer.echo(json.dumps(document))

    def note(self, text: str, style: str | None = "dim") -> None:
        """To standard error, for people: what is no result."""
        if not self.json:
            self.err.print(show.fitted(text, _columns(self.err)), style=style, soft_wrap=True)

    @property
    def columns(self) -> int:
        """What a sentence to standard output has to fit."""
        return _columns(self.out)

    def hint(self, text: str, indent: str = "") -> None:
        """What to do next, beside a result, for people."""
        self.say(show.fitted(text, self.columns, indent))

    @property
    def has_bars(self) -> bool:
        """Whether somebody looks at standard error."""
        return not self.json and self.err.is_interactive and self.err.file.isatty()

    @contextmanager
    def progress(
        self, what: str, total: int | None, *, shown: bool = True
    ) -> Iterator[Callable[..., None]]:
        """A bar with counts on standard error, until the work ends; yields what to call with how
        many more are done.

        total: None where nobody knows it. shown: nothing else is printed to the terminal meanwhile.
        """
        if not (shown and self.has_bars):
            yield lambda done=1: None
            return
        from rich import progress as of  # which only people need

        columns = (
            of.TextColumn("{task.description}"),
            of.BarColumn(),
            of.MofNCompleteColumn(),
            of.TimeElapsedColumn(),
        )
        there: Any = {
            "console": self.err,
            "transient": True,
            "redirect_stdout": False,
            "redirect_stderr": False,
        }
        with of.Progress(*columns, **there) as bar:
            yield functools.partial(bar.advance, bar.add_task(what, total=total))

    def note_cost(self) -> None:
        self.note(show.cost(self.meter.take()))

    @contextmanager
    def reported(self) -> Iterator[None]:
        """End a command that fails with a sentence, a remedy and an exit code."""
        try:
            yield
        except SILENT:
            raise
        except (Exception, KeyboardInterrupt) as failure:
            wrong = meaning(failure, self.where)
            if wrong.kind == UNEXPECTED and self.surroundings.environ.get(TRACE):
                raise
            self.report(wrong)
            raise typer.Exit(wrong.code) from None

    def where(self) -> str:
        """The table's name, Regions and endpoint for a message, as far as they are known."""
        try:
            settings = self.settings
        except Exception:
            return "the table"
        at = f" at {settings.endpoint_url}" if settings.endpoint_url else ""
        return f"{settings.table} in {' or '.join(settings.regions)}{at}"

    def report(self, wrong: Wrong) -> None:
        """A failure, to standard error."""
        if self.json:
            fields = {"error": wrong.kind, "message": wrong.message, "remedy": wrong.remedy}
            typer.echo(json.dumps(fields), err=True)
        else:
            message = Text(show.fitted(f"error: {wrong.message}", _columns(self.err)))
            message.stylize("bold red", 0, len("error:"))
            self.err.print(message, soft_wrap=True)
            if wrong.remedy:
                self.err.print(show.fitted(wrong.remedy, _columns(self.err)), soft_wrap=True)
