"""What was typed wrong, told as every other failure is: one sentence, one remedy, exit code 2.

Rule 1: The words of Typer, and of what it checks with, are not shown where the mistake is known.
"""

import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from shutil import get_terminal_size
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ledger.errors import shown
from ledgerctl.call import Call, Surroundings
from ledgerctl.completion import with_colons
from ledgerctl.failures import USAGE, Wrong

UsageError: Any = typer.BadParameter.__bases__[0]
"""Typer brings it from click or from a copy of its own."""

TAKES = (
    (r"valid integer", "a whole number"),
    (r"valid (?:number|float)", "a number"),
    (r"greater than or equal to (\S+)|x>=(\S+)", "at least {}"),
    (r"less than or equal to (\S+)|x<=(\S+)", "at most {}"),
    (r"is not one of (.*?)\.?$", "one of {}"),
)
FRAMED = 80  # columns
NEAR = 0.7  # --tabel is near --table, --all is not
UNKNOWN = re.compile(r"No such command (.*?)\.(?: Did you mean (.*)\?)?")
EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")


class Command(TyperCommand):
    """A command. Its help, like the program's, has no frames on a narrow terminal: they would cut names off."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _unframe(self)
        super().format_help(ctx, formatter)


class Program(TyperGroup):
    """The program, which tells of what was typed wrong itself."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _unframe(self)
        super().format_help(ctx, formatter)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> Any:
            with with_colons(os.environ.get("_LEDGERCTL_COMPLETE")):
                return super(Program, self).main(args, prog_name, complete_var, False, windows_expand_args, **extra)

        if not standalone_mode:
            return run()
        typed = list(sys.argv[1:] if args is None else args)
        try:
            code = run()
        except UsageError as failure:
            if type(failure).__name__ != "NoArgsIsHelpError":  # the help is printed
                Call(extra.get("obj") or Surroundings(), {"json": "--json" in typed}).tell(wrong(failure, typed))
            code = USAGE
        except typer.Abort:
            typer.echo("Nothing was done.", err=True)
            code = 1
        sys.exit(code or 0)


def _unframe(command: Command | Program) -> None:
    if get_terminal_size().columns < FRAMED:
        command.rich_markup_mode = None


def wrong(failure: Any, typed: list[str]) -> Wrong:
    """How a UsageError is told. typed: the words of the command line."""
    command = failure.ctx.command_path if failure.ctx else " ".join(["ledgerctl", *typed[:1]])
    kind, message = type(failure).__name__, failure.format_message()
    remedy = f"`{command} --help` says what it takes."
    if kind == "NoSuchOption":
        message = f"`{command}` has no option {_no_option(failure, typed)}"
    elif kind == "MissingParameter":
        message = f"`{command}` needs {_name(failure.param)}."
    elif kind == "BadOptionUsage":
        ends = "takes no value" if "not take" in message else "needs a value"
        message = f"{failure.option_name} {ends}."
    elif kind == "BadParameter":
        message = _bad_value(failure, typed)
    elif found := UNKNOWN.match(message):
        near = re.findall(r"'([^']+)'", found[2] or "")
        kind, message = "NoSuchCommand", f"There is no command {found[1]}.{_perhaps([f'`{each}`' for each in near])}"
        remedy = f"`{command} --help` lists the commands."
    elif found := EXTRA.match(message):
        kind, message = _too_much(command, found[1], failure.ctx.command.params)
    return Wrong(kind, message, remedy, USAGE)


def _no_option(failure: Any, typed: list[str]) -> str:
    """The word that was typed, and the options that are near it: `-table` is told as itself, not as `-t`."""
    name = failure.option_name
    whole = next((word for word in typed if len(name) == 2 < len(word) and word.startswith(name)), name).split("=")[0]
    return f"{whole}.{_perhaps(_near(whole, failure.ctx.command.params, 2))}"


def _too_much(command: str, words: str, params: list[Any]) -> tuple[str, str]:
    """What is told of words that nothing takes. `add` and `hold` let every option through, because of `-6`."""
    option = next((word.partition("=")[0] for word in words.split() if word.startswith("--")), None)
    if option is None:
        return "ExtraArgument", f"`{command}` takes fewer arguments: {shown(words)} is too much."
    return "NoSuchOption", f"`{command}` has no option {option}.{_perhaps(_near(option, params, 1))}"


def _near(option: str, params: list[Any], most: int) -> list[str]:
    """Of a command's options those that are near to one that it has not."""
    known = [name for param in params for name in param.opts if name.startswith("--")]
    return get_close_matches("--" + option.lstrip("-"), known, most, NEAR)


def _bad_value(failure: Any, typed: list[str]) -> str:
    """A sentence of our own parsers as it is; of Typer's, what the option takes, and what was given."""
    for pattern, takes in TAKES:
        if failure.param is not None and (found := re.search(pattern, failure.message)):
            given = _given(failure.param.opts, typed)
            ends = f", not {shown(given)}" if given is not None else ""
            return f"{_name(failure.param)} is {takes.format(next(filter(None, found.groups()), ''))}{ends}."
    return str(failure.message)


def _given(options: list[str], typed: list[str]) -> str | None:
    """What follows one of these options on the command line, the last time."""
    for before, word in reversed([*zip(["", *typed], typed, strict=False)]):
        name, _, value = word.partition("=")
        if before in options:
            return word
        if value and name in options:
            return value
    return None


def _name(param: Any) -> str:
    is_argument = param.param_type_name == "argument"
    return (param.metavar or param.name).strip("[]").upper() if is_argument else str(max(param.opts, key=len))


def _perhaps(near: list[str]) -> str:
    return f" Is it {' or '.join(near)}?" if near else ""
