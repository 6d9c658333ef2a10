"""How a function becomes a command: `@command("get")` gives it a Call, and its command line the
common options; the arguments that several commands take.

Rule 1: The surroundings come through Typer's context object.
Rule 2: The common options are those of `_common`, behind the command's own.
Rule 3: A shell completes commands and options and asks AWS for no names: each Tab would read the
whole directory.
"""

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.main import get_command

from ledger.core.errors import shown
from ledgerctl.app import LOADED, Command
from ledgerctl.call import Call
from ledgerctl.failures import Wrong
from ledgerctl.show import NUMBER
from ledgerctl.surroundings import Surroundings


def command(name: str, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make `function(call, …)` the command `name` of app.py, with the common options behind its
    own.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        common = list(inspect.signature(_common, eval_str=True).parameters.values())
        context = inspect.Parameter(
            "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
        )

        def called(ctx: typer.Context, **given: Any) -> None:
            call = Call(
                ctx.obj or Surroundings(), {each.name: given.pop(each.name) for each in common}
            )
            with call.reported(), call.meter:
                function(call, **given)

        parameters = [
            context,
            *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *common)),
        ]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        # Typer would keep the breaks of the source's lines
        paragraphs = (function.__doc__ or "").split("\n\n")
        called.__doc__ = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(name, cls=Command, **settings)(called)
        LOADED[name] = get_command(alone)
        return function

    return register


def _option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel="Options of every command")


def _common(
    table: Annotated[str | None, _option("The table's name; default: LEDGER_TABLE.")] = None,
    region: Annotated[
        str | None, _option("The Region to use; default: AWS_REGION, or the profile's.")
    ] = None,
    regions: Annotated[
        str | None,
        _option("Every Region where anyone adds or reads, with commas; default: LEDGER_REGIONS."),
    ] = None,
    endpoint_url: Annotated[
        str | None, _option("An endpoint other than AWS's; default: LEDGER_ENDPOINT_URL.")
    ] = None,
    profile: Annotated[
        str | None, _option("A profile of the AWS configuration; default: AWS_PROFILE.")
    ] = None,
    json: Annotated[bool, _option("Print JSON, one document a line.", "--json")] = False,
) -> None:
    """The common options; nobody calls it."""


def whole_number(text: str) -> int:
    """The number that was typed, digit by digit: int() takes "1_000" and " 3", too.

    Raises BadParameter.
    """
    if not NUMBER.fullmatch(text):
        raise typer.BadParameter(f"{shown(text)} is not a whole number such as 12 or -6.")
    return int(text)


def agree(call: Call, yes: bool, warning: str, question: str, undone: str) -> None:
    """Ask, after a warning.

    Raises Wrong unless the answer is yes. undone: a sentence that says what was not done.
    """
    if yes:
        return
    call.note(warning, "yellow")
    try:
        if typer.confirm(question, err=True):
            return
    except typer.Abort:
        pass
    raise Wrong("NotConfirmed", undone, "Answer y, or give --yes in a script.")


class FileFormat(StrEnum):
    jsonl = "jsonl"
    csv = "csv"


NEGATIVE = {"ignore_unknown_options": True}
"""-6 is a number and no option."""

Counter = Annotated[str, typer.Argument(help="The counter's name.")]
NewCounter = Annotated[
    str, typer.Argument(help="1 to 256 printable ASCII characters without spaces.")
]
Counters = Annotated[list[str] | None, typer.Argument(help="The counters; without them, all.")]
Prefix = Annotated[str, typer.Option(help="Only counters whose names begin with this.")]
Scan = Annotated[
    bool, typer.Option("--scan", help="Read the whole table instead of the directory of lanes.")
]
Key = Annotated[
    str | None,
    typer.Option(
        help="The idempotency key; it needs --at, unless it is a ULID or a UUIDv7. Without both, "
        "ledgerctl makes them."
    ),
]
At = Annotated[str | None, typer.Option(help="When you first asked for it: 2010-12-01T08:26:00Z.")]
WHERE = "The Region where you first asked for it, if not --region: in a fail-over."
HomeRegion = Annotated[str | None, typer.Option(help=WHERE)]
Unprotected = Annotated[
    bool, typer.Option("--no-deletion-protection", help="Leave the table unprotected.")
]
