"""What the program is before a command is called: its help, a word that it does not know, a shell's
Tab; and its bars on a terminal."""

import os
import re
import subprocess
import sys
from pathlib import Path

from ledgerctl.app import COMMANDS, app, loaded
from ledgerctl.show import fitted
from tests.ledgerctl.support import A, B, Tables

NEEDED_BY_COMMANDS = ("boto3", "botocore", "ledger", "reader", "compactor")
LOADS = f"""
import atexit, runpy, sys
needed = {NEEDED_BY_COMMANDS}
atexit.register(lambda: print([name for name in needed if name in sys.modules], file=sys.stderr))
sys.argv = ["ledgerctl", *sys.argv[1:]]
runpy.run_module("ledgerctl", run_name="__main__")
"""


def alone(*typed: str, **environ: str) -> tuple[int, str, str]:
    """Exit code, output, and errors with what was loaded of NEEDED_BY_COMMANDS, of a process of
    its own.
    """
    command = [sys.executable, "-c", LOADS, *typed]
    ran = subprocess.run(
        command, env=os.environ | environ, capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_a_commands_line_in_help_is_its_first_paragraph() -> None:
    for command in app.registered_commands:
        first, _, _ = loaded(str(command.name)).help.partition("\n\n")
        assert command.help == " ".join(first.split()), "write it in ledgerctl/app.py"


def test_help_loads_neither_boto3_nor_the_library() -> None:
    code, out, loaded = alone("--help")
    assert (code, loaded) == (0, "[]\n")
    assert all(f"{name} " in out for lines in COMMANDS.values() for name in lines)
    code, out, err = alone("gett")
    assert (code, out, err.splitlines()[-1]) == (2, "", "[]")
    assert "Did you mean 'get'?" in err
    assert alone("get", "--help")[2] != "[]\n"


def test_help_names_no_type_of_an_option_that_takes_no_value() -> None:
    for typed in ((), ("get",)):
        _, out, _ = alone(*typed, "--help", COLUMNS="80")
        assert re.search(r" --(version|json) {3,}P", out)
        assert re.search(r" --help {3,}Show", out)
        assert {len(line) for line in out.splitlines()} <= set(range(81))


def test_a_hint_fits_the_screen_and_breaks_no_command() -> None:
    command = "ledgerctl hold seats:proms 3 --key a --at 2010-12-01T08:26:00Z --region eu-west-1"
    shards = f"LEDGER_SHARDS='{{\"a:\": 2}}' {command}"
    hint = "Nothing was written. `ledgerctl list --scan` reads the table."
    assert fitted(f"{hint}\n{command}\n{shards}", 40) == (
        "Nothing was written.\n`ledgerctl list --scan` reads the table.\n" + f"{command}\n{shards}"
    )
    assert fitted("a long-word-that-is-longer b", 9, "  ") == "  a\n  long-word-that-is-longer\n  b"


def test_a_shell_completes_and_loads_one_command() -> None:
    def completed(words: str) -> tuple[str, str]:
        number = str(len(words.split(" ")) - 1)
        _, out, err = alone(
            _LEDGERCTL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=number
        )
        return out, err

    assert completed("ledgerctl hist") == ("history\n", "[]\n")
    assert completed("ledgerctl history --un")[0] == "--until\n"


ON_ONE_TABLE = """
import shlex, sys
from ledgerctl.app import app
from tests.ledgerctl.support import A, B, Tables
world = Tables().world
for typed in sys.argv[1:]:
    print("$", file=sys.stderr)
    app(shlex.split(typed), obj=world, standalone_mode=False)
"""


def on_a_terminal(*typed: str) -> list[str]:
    """What each command writes to standard error where that is a terminal, without control
    sequences.
    """
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", ON_ONE_TABLE, *typed]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, env=os.environ | {"TERM": "xterm"}
    ) as ran:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 4096):
                written += part
        except OSError:  # Linux ends a terminal so
            pass
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written.decode())
    assert ran.returncode == 0, text
    return text.split("$")[1:]


def test_a_note_fits_a_terminal_and_is_one_line_for_a_program() -> None:
    regions = f"--regions {A},{B}"  # of which one has nothing: that is a note
    typed = (f"add c 1 --key k --at 2010-12-01T08:26:00Z {regions}", f"list {regions}")
    _, noted = on_a_terminal(*typed)
    assert max(map(len, noted.splitlines())) <= 80
    tables = Tables()
    *_, said = [tables(each) for each in typed]
    assert " ".join(noted.split()) == " ".join(said.err.split())
    assert max(map(len, said.err.splitlines())) > 80


def test_a_terminal_shows_how_many_are_done_of_how_many(tmp_path: Path) -> None:
    rows, copy = tmp_path / "rows.jsonl", tmp_path / "copy.jsonl"
    row = (
        '{{"counter": "c{}", "change": 1, "idempotency_key": "{}", "at": "2010-12-01T08:26:00Z"}}\n'
    )
    rows.write_text("".join(row.format(n % 3, n) for n in range(1_001)))
    bars = {
        f"import {rows}": ("lines", "1001"),
        f"export --out {copy}": ("counters", "3"),
        "verify": ("counters", "3"),
        "rebuild --all --yes": ("counters", "3"),
        "rebuild --all --dry-run": ("lanes", "3"),
    }
    for shown, bar in zip(on_a_terminal(*bars), bars.values(), strict=True):
        assert {*re.findall(r"(\w+) ━+ +(\d+)/\2 ", shown)} == {bar}, shown
    assert len(copy.read_text().splitlines()) == 1_001
    assert [shown.split() for shown in on_a_terminal(f"import {rows} --json", "verify --json")] == [
        [],
        [],
    ]
