"""Instructions that a Python program executes, counted by valgrind's cachegrind.

Rule 1: The count does not depend on the machine's load: the hash seed is fixed, no cache is
simulated, and everything is compiled before. What the system does for the program is not in it.
Rule 2: A program may `mark` where it is. What is between two marks is their difference, less what a
mark itself takes.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

VALGRIND = (
    "valgrind",
    "--tool=cachegrind",
    "--cache-sim=no",
    f"--cachegrind-out-file={os.devnull}",
)
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""}
COUNT = re.compile(r"^==(\d+)== I\s+refs:\s+([\d,]+)", re.M)
MARK = re.compile(r"^mark (\d+) (.*)$", re.M)
END = ""
"""The mark that every program has at its end."""

MARKED = """
import os
def mark(name):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    print("mark", child, name, flush=True)
"""
"""What gives a program `mark(name)`: its fork ends at once, and cachegrind says at the end of a
process what that and its parents have executed."""


def installed() -> bool:
    return shutil.which(VALGRIND[0]) is not None


def counted(
    code: str,
    arguments: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    is_right: Callable[[str], bool] = lambda _: True,
) -> dict[str, int]:
    """What the program had executed at each of its marks, in their order, and at its END.

    It runs alone at first: so Python compiles its modules, as pip does at an installation.
    is_right: of what it printed. Raises AssertionError where it fails, or is not right.
    """
    ran(code, arguments, environ, is_right)
    done = ran(code, arguments, environ, is_right, under=VALGRIND)
    counts = {pid: int(count.replace(",", "")) for pid, count in COUNT.findall(done.stderr)}
    at = {name: counts.pop(pid) for pid, name in MARK.findall(done.stdout)}
    (at[END],) = counts.values()
    return at


def ran(
    code: str,
    arguments: Sequence[str],
    environ: Mapping[str, str] | None,
    is_right: Callable[[str], bool],
    *,
    under: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """The program, run to its end. Raises as `counted` does."""
    done = subprocess.run(
        [*under, sys.executable, "-c", MARKED + code, *arguments],
        env=os.environ | (environ or {}) | ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    if done.returncode or not is_right(done.stdout):
        printed = f"{done.stdout[-500:]}{done.stderr[-1_500:]}"
        raise AssertionError(f"it did not do what is measured: {printed}")
    return done


def between(at: Mapping[str, int], empty: int = 0) -> dict[str, int]:
    """From each mark to the next, under the later one's name. empty: what a mark takes."""
    names = [*at]
    return {later: at[later] - at[earlier] - empty for earlier, later in itertools.pairwise(names)}
