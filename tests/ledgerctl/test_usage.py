"""What is typed wrong is told in our words, lines are broken between words, and the shell completes names."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from ledgerctl.app import app
from ledgerctl.call import Surroundings
from ledgerctl.folding import folded
from tests.ledgerctl.support import A, Tables, aws, refusal

AGAIN = (
    "ledgerctl add stock:85123A -6 --key 00000000000000000000 --at 2027-01-15T08:00:00Z --home-region eu-west-1 "
    "--table counters --region eu-west-1 --regions eu-west-1,us-east-1"
)


@pytest.mark.parametrize(
    ("typed", "says", "then"),
    [
        ("gett c", "There is no command 'gett'. Is it `get`?", "`ledgerctl --help` lists the commands."),
        ("nothing", "There is no command 'nothing'.", "`ledgerctl --help` lists the commands."),
        (
            "limit sho c",
            "`ledgerctl limit` takes one counter: 'sho c' is too much.",
            "`ledgerctl limit --help`",
        ),
        ("get", "`ledgerctl get` needs COUNTER.", "`ledgerctl get --help` says what it takes."),
        ("hold c 1", "`ledgerctl hold` needs --expires.", "`ledgerctl hold --help` says what it takes."),
        ("get c --tabel x", "`ledgerctl get` has no option --tabel. Is it --table?", "`ledgerctl get --help`"),
        ("get c -table x", "`ledgerctl get` has no option -table. Is it --table?", "`ledgerctl get --help`"),
        ("get c -t x", "`ledgerctl get` has no option -t.", "`ledgerctl get --help`"),
        ("compact --all", "`ledgerctl compact` has no option --all.", "`ledgerctl compact --help`"),
        ("get c --table", "--table needs a value.", "`ledgerctl get --help`"),
        ("get c --json=3", "--json takes no value.", "`ledgerctl get --help`"),
        ("get c d", "`ledgerctl get` takes fewer arguments: 'd' is too much.", "`ledgerctl get --help`"),
        ("list --limit x", "--limit is a whole number, not 'x'.", "`ledgerctl list --help`"),
        ("list --limit=0", "--limit is at least 1, not '0'.", "`ledgerctl list --help`"),
        ("watch c --interval a", "--interval is a number, not 'a'.", "`ledgerctl watch --help`"),
        ("top --by size", "--by is one of 'value', 'changes', 'pending', not 'size'.", "`ledgerctl top --help`"),
        (
            "add c 1 --kee x",
            "`ledgerctl add` has no option --kee. Is it --key?",
            "`ledgerctl add --help` says what it takes.",
        ),
        (
            "add c -6 --kee=x",
            "`ledgerctl add` has no option --kee. Is it --key?",
            "`ledgerctl add --help` says what it takes.",
        ),
        ("add c -6 7", "`ledgerctl add` takes fewer arguments: '7' is too much.", "`ledgerctl add --help`"),
        ("add c 1_0", "'1_0' is not a whole number such as 12 or -6.", "`ledgerctl add --help`"),
    ],
)
def test_what_is_typed_wrong_is_told_in_a_sentence_with_what_to_do(typed: str, says: str, then: str) -> None:
    said = Tables().ctl(*typed.split())
    first, second = said.err.splitlines()
    assert (said.code, said.out, first) == (2, "", f"error: {says}")
    assert second.startswith(then)
    as_json = Tables().ctl(*typed.split(), "--json")
    if "--json" not in typed and typed != "get c --table":  # there, --json is the table
        assert json.loads(as_json.err)["message"] == says


def test_help_lists_every_command_in_a_group_and_fits_80_columns() -> None:
    said = Tables().ctl("--help")
    groups = re.findall(r"^╭─ (.*?) ─+╮$", said.out, re.MULTILINE)
    assert groups == ["Options", "The table, its queue and its bill", "Counters", "Limits", "Compaction"]
    assert max(map(len, said.out.splitlines())) <= 80


def test_help_cuts_no_name_off() -> None:
    for command in app.registered_commands:
        said = Tables().ctl(str(command.name), "--help").out
        assert "Usage: ledgerctl" in said
        assert "…" not in said


@pytest.mark.parametrize("words", [[], ["init"], ["cost"], ["limit"]])
def test_on_a_narrow_terminal_help_has_no_frames_which_would_cut_names_off(words: list[str]) -> None:
    environ = {**os.environ, "COLUMNS": "60"}
    command = [sys.executable, "-m", "ledgerctl", *words, "--help"]
    said = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    assert "Usage: ledgerctl" in said
    assert not set("…│") & set(said)
    assert max(map(len, said.splitlines())) <= 60


def shell_words(text: str) -> list[str]:
    """What a shell makes of one command: a backslash at the end of a line joins it with the next, and only so."""
    (command,) = text.replace("\\\n", "").splitlines()
    return shlex.split(command)


def on_a_terminal(world: Tables) -> Tables:
    world.environ |= {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "60"}
    return world


def test_on_a_terminal_a_remedy_is_broken_between_words_and_never_inside_a_command() -> None:
    world = aws(lambda *_: refusal("ResourceNotFoundException"))
    environ = {**world.environ, "FORCE_COLOR": "1", "COLUMNS": "80"}
    said = CliRunner().invoke(app, ["get", "c"], obj=replace(world, environ=environ), prog_name="ledgerctl").stderr
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said)
    assert max(map(len, plain.splitlines())) <= 80
    assert "`ledgerctl init`." in plain
    assert len(plain.splitlines()) == 3


def test_the_command_that_sends_the_same_again_can_be_copied_from_a_narrow_terminal() -> None:
    said = on_a_terminal(Tables()).ctl("add", "stock:85123A", "-6")
    _, _, command = re.sub(r"\x1b\[[0-9;]*m", "", said.out).partition("counts once:\n")
    lines = command.splitlines()
    assert len(lines) > 2
    assert all(len(line) <= 60 for line in lines)
    assert all(line.endswith(" \\") for line in lines[:-1])
    words = shell_words(command)
    assert words[:4] == ["ledgerctl", "add", "stock:85123A", "-6"]
    again = CliRunner().invoke(app, words[1:], obj=Tables().world, prog_name="ledgerctl")
    assert again.exit_code == 0


@pytest.mark.parametrize("width", [20, 40, 60, 79, 80, 500])
@pytest.mark.parametrize("line", [AGAIN, f"LEDGER_LIMITS='{{\"a b\": 1}}' LEDGER_SHARDS=2 {AGAIN}"])
def test_a_folded_command_is_the_same_command(line: str, width: int) -> None:
    assert shell_words(folded(line, width)) == shell_words(line)
    assert (width < 500) == ("\n" in folded(line, width))


def test_a_sentence_keeps_its_commands_its_words_and_its_indent() -> None:
    line = "     Fill it first: `ledgerctl adopt --all` in each Region, then look again with `ledgerctl doctor`."
    for width in range(30, 100):
        lines = folded(line, width).splitlines()
        assert " ".join(each.strip() for each in lines) == line.strip()
        assert all(each.startswith("     ") and each.count("`") % 2 == 0 and len(each) <= width for each in lines)


def test_what_is_piped_is_not_broken() -> None:
    _, _, command = Tables().ctl("add", "stock:85123A", "-6").out.partition("counts once:\n")
    assert len(command.splitlines()) == 1


def completed(world: Surroundings, line: str) -> list[str]:
    """What bash is offered behind this line, which it breaks at spaces and at colons."""
    words = [word for each in line.split(" ") for word in (re.findall(r":+|[^:]+", each) or [""])]
    environ = {
        "_LEDGERCTL_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    said = CliRunner().invoke(app, [], obj=world, prog_name="ledgerctl", env=environ)
    assert said.stderr == ""
    return said.stdout.split()


def test_the_names_of_counters_are_completed_from_the_directory() -> None:
    tables = Tables()
    for name in ("stock:1", "stock:2", "seats:1"):
        assert tables.ctl("add", name, "1").code == 0
    for command in ("get", "add", "history", "verify", "lag", "rebuild", "standing", "compact"):
        assert completed(tables.world, f"ledgerctl {command} st") == ["stock:1", "stock:2"]
    assert completed(tables.world, "ledgerctl verify seats:1 stock:2 s") == ["seats:1", "stock:1", "stock:2"]
    assert completed(tables.world, "ledgerctl get x") == []


def test_a_name_is_completed_behind_its_colon_where_bash_puts_only_the_rest_of_it() -> None:
    tables = Tables()
    for name in ("stock:a:1", "stock:a:2", "stock:b", "seats:1"):
        assert tables.ctl("add", name, "1").code == 0
    assert completed(tables.world, "ledgerctl get stock:") == ["a:1", "a:2", "b"]
    assert completed(tables.world, "ledgerctl get 'stock':a") == ["a:1", "a:2"]
    assert completed(tables.world, "ledgerctl get stock:a:") == ["1", "2"]
    assert completed(tables.world, "ledgerctl get stock:b") == ["b"]
    assert completed(tables.world, "ledgerctl verify stock:b seats:") == ["1"]
    assert completed(tables.world, "ledgerctl verify stock:b ") == ["seats:1", "stock:a:1", "stock:a:2", "stock:b"]


@pytest.mark.parametrize("at", [None, "", "x", "-1", "99"])
@pytest.mark.parametrize("words", [None, "ledgerctl\nver"])
def test_a_shell_that_tells_its_words_otherwise_gets_no_stack_trace(words: str | None, at: str | None) -> None:
    environ = {"_LEDGERCTL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": at}
    said = CliRunner().invoke(app, [], prog_name="ledgerctl", env=environ)
    assert said.exception is None or isinstance(said.exception, SystemExit)
    assert "verify" in said.stdout.split()
    assert said.stderr == ""


def test_tables_and_regions_are_completed_and_what_cannot_be_asked_completes_nothing() -> None:
    def answer(operation: str, _: Any) -> tuple[int, Any]:
        return (200, {"TableNames": ["counters", "cats", "dogs"]}) if operation == "ListTables" else refusal("X")

    world = aws(answer, {"AWS_REGION": A, "LEDGER_REGIONS": "eu-west-1,us-east-1"})
    assert completed(world, "ledgerctl get c --table c") == ["cats", "counters"]
    assert completed(world, "ledgerctl get c --region us") == ["us-east-1"]
    everywhere = replace(world, environ={"AWS_REGION": A})
    assert {"eu-west-1", "eu-central-1"} <= {*completed(everywhere, "ledgerctl get c --region eu")}
    assert completed(world, "ledgerctl get c") == []  # no table is named
    assert completed(aws(lambda *_: refusal("AccessDeniedException")), "ledgerctl get c --table c") == []
