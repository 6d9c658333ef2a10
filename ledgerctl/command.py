"""How a function becomes a command: `@command("get")` gives it a Call, and its command line the common options.

Rule 1: The surroundings come through Typer's context object.
Rule 2: The common options are those of `_common`, behind the command's own.
"""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ledger import __version__
from ledgerctl import completion
from ledgerctl.call import Call, Surroundings

COUNTERS, LIMITS, COMPACTION, TABLE = "Counters", "Limits", "Compaction", "The table, its queue and its bill"
"""The groups of commands, as help shows them."""

app = typer.Typer(
    name="ledgerctl",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Operate exact counters on DynamoDB. Options such as --table and --region stand behind the command: "
    "`ledgerctl get --help`.",
    epilog="Exit codes: 0 fine; 1 the data is wrong, or something was refused; 2 your input; 3 AWS refused or gave no "
    "answer, run it again; 4 nobody knows whether an `add` or a `hold` without --key was applied: repeat it only by "
    "the command it prints; 70 a mistake of ours; 130 interrupted.",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ledgerctl {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def command(name: str, group: str, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers `function(call, …)` under `name`, with the common options behind its own. group: in the help."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        common = list(inspect.signature(_common, eval_str=True).parameters.values())
        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)

        def called(ctx: typer.Context, **given: Any) -> None:
            call = Call(ctx.obj or Surroundings(), {each.name: given.pop(each.name) for each in common})
            with call.reported(), call.meter:
                function(call, **given)

        parameters = [context, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *common))]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        called.__doc__ = function.__doc__
        app.command(name, rich_help_panel=group, **settings)(called)
        return function

    return register


def _option(text: str, *names: str, completes: Any = None) -> Any:
    return typer.Option(*names, help=text, rich_help_panel="Options of every command", autocompletion=completes)


def _common(
    table: Annotated[str | None, _option("The table's name; else LEDGER_TABLE.", completes=completion.tables)] = None,
    region: Annotated[
        str | None, _option("The Region to ask; else AWS_REGION, else the profile's.", completes=completion.regions)
    ] = None,
    regions: Annotated[
        str | None, _option("Every Region where anyone adds or reads, with commas; else LEDGER_REGIONS.")
    ] = None,
    endpoint_url: Annotated[str | None, _option("Another endpoint than AWS's; else LEDGER_ENDPOINT_URL.")] = None,
    profile: Annotated[
        str | None, _option("A profile of the AWS configuration; else AWS_PROFILE.", completes=completion.profiles)
    ] = None,
    json: Annotated[bool, _option("Print JSON, one document a line.", "--json")] = False,
) -> None:
    """What every command takes; nobody calls it."""
