"""What the program is before a command is called: its help, a word that it does not know, a shell's Tab."""

import os
import subprocess
import sys

from ledgerctl.app import COMMANDS, app, loaded

NEEDED_BY_COMMANDS = ("boto3", "botocore", "ledger", "reader", "compactor")
LOADS = f"""
import atexit, runpy, sys
atexit.register(lambda: print([name for name in {NEEDED_BY_COMMANDS} if name in sys.modules], file=sys.stderr))
sys.argv = ["ledgerctl", *sys.argv[1:]]
runpy.run_module("ledgerctl", run_name="__main__")
"""


def alone(*typed: str, **environ: str) -> tuple[int, str, str]:
    """Exit code, output, and errors with what was loaded of NEEDED_BY_COMMANDS, of a process of its own."""
    command = [sys.executable, "-c", LOADS, *typed]
    ran = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


def test_the_line_of_a_command_in_help_is_the_first_paragraph_of_its_own_help() -> None:
    for command in app.registered_commands:
        first, _, _ = loaded(str(command.name)).help.partition("\n\n")
        assert command.help == " ".join(first.split()), "write it in ledgerctl/app.py"


def test_help_and_a_word_that_is_no_command_load_neither_boto3_nor_the_library() -> None:
    code, out, loaded = alone("--help")
    assert (code, loaded) == (0, "[]\n")
    assert all(f"{name} " in out for lines in COMMANDS.values() for name in lines)
    code, out, err = alone("gett")
    assert (code, out, err.splitlines()[-1]) == (2, "", "[]")
    assert "Did you mean 'get'?" in err
    assert alone("get", "--help")[2] != "[]\n"


def test_a_shell_completes_commands_and_loads_only_the_one_whose_options_it_completes() -> None:
    def completed(words: str) -> tuple[str, str]:
        number = str(len(words.split(" ")) - 1)
        _, out, err = alone(_LEDGERCTL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=number)
        return out, err

    assert completed("ledgerctl hist") == ("history\n", "[]\n")
    assert completed("ledgerctl history --un")[0] == "--until\n"
