"""`python -m lab.histories.mistakes` (`make mistakes`): each planted in a copy of the code, and
found.

Rule 1: planted/*.diff has them. Of each: its name and its file; after an @ the small cast that
finds it, or the seed from which on histories are played, where those from 0 on would take long;
then `-` what stands there, `+` what stands there instead, and a space before what stays. After a
line with a file alone comes another place.
Rule 2: a copy of the code is changed, never the code. What stands there has to stand there once, so
no list can rot.
Rule 3: an error that no history can cause is a find, too.
Rule 4: the judges are judged alike. `--rules` takes each of their rules away in turn: a history
that only this rule finds wrong has to be right then (lab/histories/rules.py).
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from lab.histories.rules import Row, Rule, rows

ROOT = Path(__file__).parents[2]
COPIED = ("ledger", "reader", "compactor", "service", "simulator", "lab")
PLANTED = Path(__file__).parent / "planted"
HISTORIES_MAX = 2_000
SEEDS_MAX, TRIES_MAX = 60, 5
"""So many histories are played, at most so often, until one is found that a rule alone finds
wrong.
"""

SEARCH = "import sys; from lab.histories.kinds import search; sys.exit(search(*sys.argv[1:]))"


@dataclass(slots=True)
class Place:
    """A text that stands once in a file, and what stands there instead."""

    file: str
    right: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def planted(self, code: str) -> str:
        right = "\n".join(self.right)
        if code.count(right) != 1:
            raise ValueError(f"{right!r} stands {code.count(right)} times in {self.file}")
        return code.replace(right, "\n".join(self.wrong))


@dataclass(slots=True)
class Mistake:
    """kind: of the histories that find it. at: the small cast that does, or the first seed."""

    name: str
    kind: str
    places: list[Place]
    at: str = "0"


def read(file: str, kind: str) -> list[Mistake]:
    """The mistakes of a file, which histories of that kind find."""
    found: list[Mistake] = []
    for line in (PLANTED / file).read_text("utf-8").splitlines():
        sign, text = line[0], line[1:]
        if sign == "@":
            found[-1].at = text.strip()
        elif sign == "|":
            found[-1].places.append(Place(text.strip()))
        elif sign in " -+":
            place = found[-1].places[-1]
            place.right += [text] * (sign != "+")
            place.wrong += [text] * (sign != "-")
        else:
            name, where = line.split(" | ")
            found.append(Mistake(name, kind, [Place(where)]))
    return found


LANES = [*read("lanes.diff", "lanes"), *read("series.diff", "series")]
LIMITS = [
    *read("limits.diff", "limits"),
    *read("rebuilds.diff", "limits"),
    *read("takes.diff", "takes"),
    *read("strong.diff", "strong"),
    *read("calls.diff", "calls"),
]
RUN = read("run.diff", "run")  # found by lab/run, as those of lanes are
PERIODS = read("periods.diff", "periods")
SAGAS = read("sagas.diff", "sagas")
BUDGETS = read("budgets.diff", "budgets")
SERVICE = [*read("service.diff", "service"), *read("thresholds.diff", "thresholds")]
GROUPS = {
    "limited": (LIMITS, "those of limited counters"),
    "periods": (PERIODS, "those of periods"),
    "sagas": (SAGAS, "those of transfers and holds in several counters"),
    "served": (SERVICE, "those of the service"),
    "budgets": (BUDGETS, "those of budgets"),
}
"""By the option that chooses them, in the place of LANES."""

RULED = {
    kind: read(f"ruled/{kind}.diff", kind) for kind in ("limits", "periods", "sagas", "thresholds")
}
"""Planted for one rule of a judge alone."""

JUDGED = {
    each.name: each
    for each in (*LANES, *LIMITS, *PERIODS, *SAGAS, *SERVICE, *BUDGETS, *chain(*RULED.values()))
}


def plant(mistake: Mistake, folder: str) -> None:
    """Copy the code to a folder, with the mistake.

    Raises ValueError when it does not fit the code any more.
    """
    for package in COPIED:  # with what Python compiled: it compiles anew only what is changed
        shutil.copytree(ROOT / package, Path(folder, package))
    for place in mistake.places:
        path = Path(folder, place.file)
        path.write_text(place.planted(path.read_text("utf-8")), "utf-8")


def catch(
    mistake: Mistake, histories: int | None = None, without: Rule | None = None
) -> tuple[str, str]:
    """Plant the mistake and play histories on it until one goes wrong, or its small cast. Raises as
    `plant`.

    What finds it, and what is wrong then; nothing, where it is not found. without: a rule that the
    judge lacks.
    """
    histories = HISTORIES_MAX if histories is None else histories
    with tempfile.TemporaryDirectory(prefix="mistake-") as folder:
        plant(mistake, folder)
        if without is not None:
            judge = Path(folder, without.file)
            judge.write_text(without.crippled(judge.read_text("utf-8")), "utf-8")
        found = _played(mistake, folder, histories)
    if found and not mistake.at.isdecimal() and (wrong := _played(mistake, str(ROOT), 1)):
        raise ValueError(f"{mistake.at} is wrong without {mistake.name!r}, too: {wrong[-400:]}")
    by, _, said = found.partition(": ")
    return by, said.strip()


def _played(mistake: Mistake, folder: str, histories: int) -> str:
    """What the code in a folder shows to be wrong; nothing, where all is right. Raises ValueError
    where the code does not run.
    """
    played = subprocess.run(
        [sys.executable, "-c", SEARCH, mistake.kind, mistake.at, str(histories)],
        cwd=folder,
        env={"PYTHONPATH": folder, "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if played.returncode not in (0, 1) or (played.returncode and not played.stdout):
        raise ValueError(f"{mistake.name}: {played.stderr[-400:]}")
    return played.stdout


def main(planted: Sequence[Mistake]) -> None:
    """Plant every mistake, each in a copy of its own, and print how each is found.

    Exit code 1 when one is not.
    """
    missed = 0
    print(f"{'found by':<10}  planted mistake: what went wrong", flush=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each is played by a process of its own
        for mistake, (by, said) in zip(planted, pool.map(catch, planted), strict=True):
            missed += not by
            print(f"{by or 'NOT FOUND':<10}  {mistake.name}: {said[:70]}", flush=True)
    found = f"{len(planted) - missed} of {len(planted)} planted mistakes found"
    print(f"{found}, within {HISTORIES_MAX:,} histories each or by a small cast")
    sys.exit(1 if missed else 0)


def known_by(row: Row) -> str:
    """What is wrong with a row; nothing, where a history from its seed on goes wrong, and
    without the rule is right.
    """
    if not row.is_alone:
        return ""
    mistake, by, said = replace(JUDGED[row.mistake], at=row.at), "", ""
    for _ in range(TRIES_MAX):
        by, said = catch(mistake, SEEDS_MAX)
        if not by:
            return f"no history from {row.at} on finds {row.mistake!r}"
        mistake.at = by.removeprefix("seed").strip() if mistake.at.isdecimal() else mistake.at
        by, said = catch(mistake, 1, row.rule)
        if not by:
            return ""
        if not mistake.at.isdecimal():
            break
        mistake.at = str(int(mistake.at) + 1)
    return f"{row.mistake!r} is found without it: {said}"


def judges(of: Sequence[Row]) -> None:
    """Take each rule away from its judge, and print what nobody finds then.

    Exit code 1 when another rule finds it.
    """
    wrong = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for row, amiss in zip(of, pool.map(known_by, of), strict=True):
            wrong += bool(amiss)
            found = "WRONG" if amiss else "alone" if row.is_alone else "with others"
            print(
                (
                    f"{found:12}{row.rule.judge}, {row.rule.says!r}: "
                    f"{amiss or f'{row.mistake}, {row.at}'}"
                ),
                flush=True,
            )
    alone = sum(row.is_alone for row in of)
    print(
        f"{alone - wrong} of {alone} rules find what no other one does; {len(of) - alone} more "
        "find it with others"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m lab.histories.mistakes", description=main.__doc__
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only the mistakes of these names")
    for name, (_, which) in GROUPS.items():
        parser.add_argument(f"--{name}", action="store_true", help=which)
    parser.add_argument(
        "--rules",
        action="store_true",
        help="instead take each rule away from its judge, and see which mistakes nobody finds then",
    )
    given = parser.parse_args()
    if given.rules:
        judges(rows())
    chosen = next((found for name, (found, _) in GROUPS.items() if getattr(given, name)), LANES)
    known = {each.name: each for each in chosen}
    if unknown := set(given.names) - known.keys():
        parser.error(f"no such mistake: {', '.join(sorted(unknown))}")
    main([known[name] for name in given.names or known])
