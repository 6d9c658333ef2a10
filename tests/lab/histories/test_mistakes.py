"""Every planted mistake fits the code, and is found."""

import re
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from lab.histories import explore, mistakes
from lab.histories.mistakes import (
    BUDGETS,
    LANES,
    LIMITS,
    PERIODS,
    ROOT,
    RUN,
    SAGAS,
    SERVICE,
    Mistake,
    Place,
    catch,
    plant,
)

KINDS = (LANES, LIMITS, PERIODS, SAGAS, SERVICE, BUDGETS)
MISTAKES = {mistake.name: mistake for kind in KINDS for mistake in kind}


def test_a_mistake_fits_its_file_and_names_what_is_there(tmp_path: Path) -> None:
    """A mistake that only ends with a NameError shows nothing, and would count as a find."""
    assert [*map(len, KINDS)] == [54, 120, 23, 25, 33, 10]
    assert len(MISTAKES) == 265
    for mistake in (*MISTAKES.values(), *RUN):
        code: dict[str, str] = {}
        for place in mistake.places:
            code[place.file] = place.planted(
                code.get(place.file) or (ROOT / place.file).read_text("utf-8")
            )
        assert mistake.at.isdecimal() or mistake.at in explore.EXPLORED, mistake.name
        for file, planted in code.items():
            for module in re.findall(r'__import__\("([\w.]+)"\)', planted):
                assert find_spec(module), (mistake.name, module)
            copy = tmp_path / re.sub(r"\W", "_", mistake.name) / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(planted, "utf-8")
    command = ("ruff", "check", "--isolated", "--quiet", "--select=E9,F821,F823", tmp_path)
    names = subprocess.run(
        (sys.executable, "-m", *command), capture_output=True, text=True, check=False
    )
    assert (names.returncode, names.stdout) == (0, "")


SOON = (
    "deltas deleted at fold",
    "rebuild keeps an orphan",
    "settle ignores packs that reach above the watermark",
    "a stray is added to the day of the fold",
    "a part of a bucket is believed without its count",
    "the tail is left out of a series",
    "a retry is named by the clock",
    "what is carried asks for no epoch",
    "what has retired is compacted",
    "a tighter limit takes nothing",
    "the end of a hold forgets that its Update was sent twice",
    "rebuilt: the version stays",
    "a filed hold ends though the gate knows it",
    "what met a write in another Region is taken for decided",
    "a refund though the credit is not decided",
    "the name of a step leaves the target out",
    "the name of a step leaves the source out",
    "a step is named as a caller may name a change",
    "a caller's first refund has another name than the queue's",
    "what was granted is not released before the refusal",
    "the value is read before the crossings",
    *(mistake.name for mistake in BUDGETS),
)


@pytest.mark.parametrize(
    "mistake", [MISTAKES[name] for name in SOON], ids=lambda mistake: mistake.name
)
def test_a_planted_mistake_is_found(mistake: Mistake) -> None:
    by, _ = catch(mistake, histories=200)
    assert by


def test_a_mistake_that_no_longer_fits_the_code_is_an_error() -> None:
    with pytest.raises(ValueError, match="stands 0 times"):
        catch(Mistake("rotten", "lanes", [Place("ledger/core/values.py", ["no such line"], [""])]))


def test_a_cast_that_is_wrong_anyway_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake = MISTAKES["what lies far ahead is filed"]
    plant(mistake, str(tmp_path))  # the code that is taken for right has it already
    monkeypatch.setattr(mistakes, "ROOT", tmp_path)
    harmless = Place("ledger/gate/filing.py", ["def roll("], ["def roll("])
    with pytest.raises(ValueError, match="is wrong without 'harmless', too"):
        catch(replace(mistake, name="harmless", places=[harmless]))
