"""Arguments and options that several commands take."""

from enum import StrEnum
from typing import Annotated

import typer

from ledger.errors import shown
from ledgerctl import completion
from ledgerctl.templates import NUMBER


class FileFormat(StrEnum):
    jsonl = "jsonl"
    csv = "csv"


def whole_number(text: str) -> int:
    """What was typed, digit by digit: int() takes "1_000" and " 3", too. Raises BadParameter."""
    if not NUMBER.fullmatch(text) or text.startswith("--"):
        raise typer.BadParameter(f"{shown(text)} is not a whole number such as 12 or -6.")
    return int(text)


Counter = Annotated[str, typer.Argument(help="The counter's name.", autocompletion=completion.counters)]
NewCounter = Annotated[
    str, typer.Argument(help="1 to 256 printable ASCII characters without spaces.", autocompletion=completion.counters)
]
Counters = Annotated[
    list[str] | None, typer.Argument(help="Some counters; without them, all.", autocompletion=completion.counters)
]
Prefix = Annotated[str, typer.Option(help="Only counters whose names begin so.")]
Scan = Annotated[bool, typer.Option("--scan", help="Look at the whole table instead of the directory of lanes.")]
Id = Annotated[str, typer.Argument(help="The hold's id, as `hold` and `holds` print it.", metavar="ID")]
Key = Annotated[str | None, typer.Option(help="Its own name; with --at. Without both, one is made.")]
At = Annotated[str | None, typer.Option(help="When it was first asked for: 2010-12-01T08:26:00Z.")]
HomeRegion = Annotated[
    str | None,
    typer.Option(
        help="Where it was first asked for, when that is not --region: a fail-over.", autocompletion=completion.regions
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Unprotected = Annotated[bool, typer.Option("--no-deletion-protection", help="Let anybody delete it, by mistake too.")]
