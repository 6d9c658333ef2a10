"""The lab's figures, small: nothing is wrong, beside a tracker that is passed, and each planted
mistake is seen.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from exact_counter.budgets import OverBudget
from exact_counter.errors import LedgerError, Throttled
from exact_counter.testing import Faults
from lab.histories import mistakes
from ledger.budgets import reserving

from budgets_lab.__main__ import measure
from budgets_lab.judge import CAP
from ledger_litellm.calls import OpenCalls

begin, end = OpenCalls.begin, OpenCalls.end


async def begin_by_the_name_that_the_caller_gave(calls: Any, opening: Any, timeout_s: float) -> str:
    mark = await begin(calls, opening, timeout_s)
    calls._there[opening.owner] = calls._there.pop(mark)
    return str(opening.owner)


async def settle_once(calls: Any, ending: Any, tries: int) -> None:
    try:
        await ending.call.aclose(tries=1)
    except LedgerError:
        return


async def settle_never(calls: Any, ending: Any, tries: int) -> None:
    ending.noted = None


async def end_for_nothing(calls: Any, mark: Any, otherwise: int | None = None) -> None:
    if there := calls.get(mark):
        there.noted = 0
    await end(calls, mark, otherwise)


def is_seen(seen: str) -> bool:
    """Whether some run is wrong in that way."""
    losing, dropping = Faults(lost=300, lag_steps=20), Faults(dropped=200, lag_steps=20)
    played = (measure(2, seed, faults) for faults in (losing, dropping) for seed in (1, 2, 3))
    wrong = (figures for figures in played if not figures.is_right)
    return any(of.is_undecided if seen == "undecided" else of.wrong[seen] for of in wrong)


def test_each_mistake_of_the_hooks_is_seen() -> None:
    patched: list[tuple[Any, str]] = [
        (
            lambda patch: patch(OpenCalls, "begin", begin_by_the_name_that_the_caller_gave),
            "uncounted",
        ),
        (lambda patch: patch(OpenCalls, "end", end_for_nothing), "uncounted"),
        (lambda patch: patch(OpenCalls, "_settled", settle_once), "uncounted"),
        (lambda patch: patch(OpenCalls, "_settled", settle_never), "stuck"),
        (
            lambda patch: patch(reserving, "reserve", Mock(side_effect=OverBudget("llm:a", 1))),
            "starved",
        ),
        (
            lambda patch: patch(reserving, "reserve", Mock(side_effect=Throttled("slower"))),
            "undecided",
        ),
    ]
    for mistake, seen in patched:
        with pytest.MonkeyPatch.context() as patch:
            mistake(patch.setattr)
            assert is_seen(seen), seen


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("a call is given back without its cost", "uncounted"),
        ("a call is settled twice", "doubled"),
        ("holds last a day", "held"),
        ("no parts fill a budget", "unfilled"),
    ],
)
def test_each_planted_mistake_of_budgets_is_seen(name: str, seen: str, tmp_path: Path) -> None:
    mistakes.plant(mistakes.JUDGED[name], str(tmp_path))
    looks = "import sys; from test_lab import is_seen; sys.exit(not is_seen(sys.argv[1]))"
    paths = [str(tmp_path), str(Path(__file__).parent), *sys.path]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    subprocess.run([sys.executable, "-c", looks, seen], cwd=tmp_path, env=env, check=True)


def test_a_naive_tracker_is_passed_and_not_judged_if_right() -> None:
    figures = measure(4, 1)
    assert figures.is_right, figures
    assert all(spent > CAP for spent in figures.naive.values())
    for naive in (Counter({**figures.naive, "customer-0": CAP}), Counter[str]()):
        assert not replace(figures, naive=naive).is_right
