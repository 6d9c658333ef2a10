"""The program itself: every command with its file and its line in help, in the order in which help
lists them.

Rule 1: The program loads a command's file when you call the command or want its own help. So
`ledgerctl --help`, a word that is no command and a shell's Tab load neither boto3 nor the library.
Rule 2: A command's line here is the first paragraph of its own help (tests/ledgerctl/test_app.py
compares them).
"""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

COMMANDS = {
    "The table, its queue and its bill": {
        "init": (
            "Make the table, with a replica in every Region of --regions. Run it again after "
            "any failure."
        ),
        "restore": "Restore the table to a new one, and rebuild and verify all of it there. Run "
        "it again after any failure.",
        "redrive": (
            "Send the dead letters of a queue back to it, after you removed the cause of their "
            "failure."
        ),
        "cost": "Work out a month's bill, and name its largest line. AWS is not called.",
        "doctor": "Check table, replicas, backups, clock, settings and permissions.",
    },
    "Counters": {
        "add": "Add one change to a counter. The same key and time count once.",
        "revert": (
            "Take a change back: add its opposite at the change's own time, once; asks first."
        ),
        "transfer": (
            "Move an amount from one counter to another. The same key and time move it once."
        ),
        "get": (
            "Show a counter: value, parts by Region, pending, cost of the read; or its value "
            "at an instant."
        ),
        "watch": (
            "Show a counter's value as it changes, until Ctrl-C. It goes on after a failed read."
        ),
        "console": "Show counters on a page of this computer, until Ctrl-C. It only reads.",
        "history": "Show the changes of a counter, in the order of time.",
        "export": "Write all changes to a file that `import` can read.",
        "series": "Show how a counter changed in each hour, day, week or month.",
        "list": "List counters by name.",
        "top": "Show the largest counters: list them, and read them a hundred at a time.",
        "import": "Add the changes of a CSV or JSONL file.",
    },
    "Limits": {
        "hold": (
            "Set an amount of a limited counter aside, until you capture it, release it or its "
            "time is over."
        ),
        "holds": "List the open holds of a limited counter; the one that ends next comes first.",
        "capture": "Count all or a part of a hold; the rest is free again.",
        "release": "Release a hold: nothing of it counts.",
        "standing": "Show a limited counter: its value, its limit, and what is left and held.",
        "limit": "Show a counter's limit, or give it another floor, another ceiling or both.",
        "periods": "Show the last periods of a counter: value, limit and what is left.",
    },
    "Compaction": {
        "lag": "Show what waits for the compactor, the worst lane first.",
        "compact": "Clean, fold and settle the lanes of this Region. Without counters, a scan "
        "finds the lanes that need it.",
        "verify": "Recount counters from all their changes, and compare.",
        "rebuild": (
            "Write the checkpoints of a counter, or of --all, anew from their segments; asks first."
        ),
    },
}
"""By group: each command with its line in help."""

ELSEWHERE = {
    "watch": "get",
    "console": "console.command",
    "export": "history",
    "top": "list",
    "import": "imports",
    **dict.fromkeys(("hold", "holds", "capture", "release"), "add"),
    **dict.fromkeys(("limit", "periods"), "standing"),
    **dict.fromkeys(("lag", "compact", "verify"), "compaction"),
}
"""The file of a command, where that has another name."""

LOADED: dict[str, Any] = {}
"""What `@command` has made, by name."""


def loaded(name: str) -> Any:
    """The command itself, from its file."""
    import_module(f".{ELSEWHERE.get(name, name)}", __package__)
    return LOADED[name]


def without_type(params: list[Any]) -> list[Any]:
    """The parameters of a command, for its help: an option that takes no value shows no type."""
    for each in params:
        if getattr(each, "is_flag", False):
            each.metavar = ""
    return params


class Command(TyperCommand):
    """A command whose help shows no type of an option that takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        return without_type(super().get_params(ctx))


class OnDemand(TyperGroup):
    """Commands that are only their line in help until somebody calls one."""

    def get_params(self, ctx: Any) -> list[Any]:
        return without_type(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in self.commands:
            self.commands[args[0]] = loaded(args[0])
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="ledgerctl",
    cls=OnDemand,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Operate exact counters on DynamoDB. Write options such as --table and --region after "
    "the command: `ledgerctl get --help` lists them.",
    epilog="Exit codes: 0 success; 1 the data is wrong, or a limit or a condition refused the "
    "command; 2 your input is wrong; 3 AWS refused or gave no answer: run it again; 4 an `add`, "
    "a `hold` or a `transfer` without --key may or may not have been applied: repeat it only by "
    "the command that it prints; 70 a defect of ledgerctl; 130 interrupted.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from ledger import __version__  # which loads boto3

        typer.echo(f"ledgerctl {__version__}")
        raise typer.Exit


VERSION = typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")


@app.callback()
def _program(version: Annotated[bool, VERSION] = False) -> None: ...


def _stands_for_a_command() -> None:
    """Never called: `OnDemand` puts the command in its place."""


for group, lines in COMMANDS.items():
    for name, line in lines.items():
        app.command(name, help=line, rich_help_panel=group)(_stands_for_a_command)
