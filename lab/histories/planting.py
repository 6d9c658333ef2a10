"""How a mistake is planted in a copy of the code, and played until it is found.

Rule 1: A mistake is a text that stands once in a file, and what stands there instead.
Rule 2: A copy of the code is changed, never the code.
Rule 3: A mistake that no longer fits its file is an error, so a list of them cannot rot.
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = ("ledger", "reader", "compactor", "service", "simulator", "lab")
HISTORIES_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Mistake:
    name: str
    file: str
    right: str
    wrong: str
    file_too: str = ""
    right_too: str = ""
    wrong_too: str = ""
    """Another place, for a mistake that takes two."""
    cast: str = ""
    """The small cast that finds it, where the histories would take long."""
    first: int = 0
    """The seed from which on histories are played, where those from 0 on would take long."""
    limited: bool = False
    """Whether it is of limited counters, which have histories of their own."""
    served: bool = False
    """Whether it is of the service, which has, too."""
    thresholds: bool = False
    """Whether it is of thresholds, for which the service has histories of their own."""


@dataclass(frozen=True, slots=True)
class Caught:
    """How a mistake was found: by which seed or by which cast ("": it was not), and what the checker said."""

    mistake: Mistake
    by: str
    said: str


def catch(mistake: Mistake, histories: int = HISTORIES_MAX) -> Caught:
    """Plant the mistake in a copy of the code and play histories on it until one goes wrong, or its small cast.

    Raises ValueError when the mistake does not fit the code any more.
    """
    with tempfile.TemporaryDirectory(prefix="mistake-") as folder:
        for package in COPIED:
            shutil.copytree(ROOT / package, Path(folder, package), ignore=shutil.ignore_patterns("__pycache__"))
        _plant(mistake.name, Path(folder, mistake.file), mistake.right, mistake.wrong)
        if mistake.file_too:
            _plant(mistake.name, Path(folder, mistake.file_too), mistake.right_too, mistake.wrong_too)
        kinds = [f"--{kind}" for kind in ("limited", "served", "thresholds") if getattr(mistake, kind)]
        which = ["--first", str(mistake.first), *kinds]
        played = subprocess.run(
            [sys.executable, "-m", "lab.histories.search", mistake.cast or str(histories), *which],
            cwd=folder,
            env={"PYTHONPATH": folder, "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
    if played.returncode not in (0, 1) or (played.returncode and not played.stdout):  # the copy does not run
        raise ValueError(f"{mistake.name}: {played.stderr[-400:]}")
    by, _, said = played.stdout.partition(": ")
    return Caught(mistake, by, said.strip())


def _plant(name: str, path: Path, right: str, wrong: str) -> None:
    text = path.read_text(encoding="utf-8")
    if text.count(right) != 1:
        raise ValueError(f"{name}: {right!r} stands {text.count(right)} times in {path.name}")
    path.write_text(text.replace(right, wrong), encoding="utf-8")
