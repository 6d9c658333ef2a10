"""The lab's figures, small: nothing is wrong, beside a tracker that is passed, and each planted mistake is seen.

The mistakes of `ledger.budgets` itself are found by its own histories: lab/histories/budget_mistakes.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from lab.histories.budget_judge import CAP
from ledger.budgets import OverBudget, reserving
from ledger.errors import LedgerError, Throttled

from budgets_lab.calls import FAULTS, measure
from ledger_litellm.calls import OpenCalls

LOSING = replace(FAULTS, lost=200, cut=0)
"""Answers are lost often, and none is undecided for long."""

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


async def end_for_nothing(calls: Any, mark: Any, otherwise: int | None = None) -> None:
    if there := calls.get(mark):
        there.noted = 0
    await end(calls, mark, otherwise)


def refuse(counters: Any, estimate: int, *_: Any) -> Any:
    yield from ()
    raise OverBudget(counters[0], estimate)


def decide_nothing(*_: Any) -> Any:
    yield from ()
    raise Throttled("slower")


def test_each_mistake_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    mistakes: list[tuple[Any, str, Any, str]] = [
        (OpenCalls, "begin", begin_by_the_name_that_the_caller_gave, "uncounted"),
        (OpenCalls, "end", end_for_nothing, "uncounted"),
        (OpenCalls, "_settled", settle_once, "stuck"),
        (reserving, "reserve", refuse, "starved"),
        (reserving, "reserve", decide_nothing, "undecided"),
    ]
    for place, name, mistake, seen in mistakes:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, mistake)
            played = [measure(2, seed, LOSING) for seed in (1, 2)]
        assert any(figures.wrong[seen] or (seen == "undecided" and figures.is_undecided) for figures in played), mistake
        assert not all(figures.is_right for figures in played)


def test_a_naive_tracker_is_passed_and_where_it_is_right_nothing_is_judged() -> None:
    figures = measure(2, 1, LOSING)
    assert figures.is_right, figures
    assert all(spent > CAP for spent in figures.naive.values())
    for naive in (Counter({**figures.naive, "customer-0": CAP}), Counter[str]()):
        assert not replace(figures, naive=naive).is_right
