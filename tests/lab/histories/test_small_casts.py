"""The casts that `make explore` plays: none is lost, and one is played by its name."""

import subprocess
import sys

import pytest

from lab.histories import explore


def test_no_cast_is_lost() -> None:
    assert len(explore.EXPLORED) == 81


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("a_stray_is_settled_beside_an_evaluation", 0, "1 casts, "),
        ("nonsense", 2, "no such cast: nonsense"),
    ],
)
def test_one_cast_is_played_by_its_name(name: str, code: int, says: str) -> None:
    command = (sys.executable, "-m", "lab.histories.explore", name)
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, says in ran.stdout + ran.stderr) == (code, True)
