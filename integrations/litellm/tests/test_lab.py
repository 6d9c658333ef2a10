"""The lab's figures, small: nothing is wrong, beside a tracker that is passed, and each planted mistake is seen."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from ledger.budgets import Call, OverBudget, reserving
from ledger.errors import Throttled

from budgets_lab.calls import FAULTS, measure
from budgets_lab.judge import CAP, Figures, judge
from budgets_lab.world import TwoGateways
from ledger_litellm.calls import OpenCalls

LOSING = replace(FAULTS, lost=200, cut=0)
"""Answers are lost often, and none is undecided for long."""

settle, hold, begin = reserving.settle, reserving._hold, OpenCalls.begin


def settle_twice(counters: Any, holds: Any, cost: int, name: Any, *more: Any) -> Any:
    yield from settle(counters, holds, cost, name, *more)
    again = reserving.CallName(f"{name.id}/again", name.at)
    return (yield from settle(counters, (), cost, again, *more))


def release_without_settling(call: Any, *_: Any) -> Any:
    yield from reserving.release(call.holds)
    return {}


def hold_under_a_name_for_each_attempt(counter: str, estimate: int, name: Any, expires: timedelta) -> Any:
    return lambda ledger: hold(counter, estimate, replace(name, id=uuid.uuid4().hex), expires)(ledger)


def hold_for_a_day(counter: str, estimate: int, name: Any, expires: timedelta) -> Any:
    return hold(counter, estimate, name, timedelta(days=1))


async def begin_by_the_name_that_the_caller_gave(calls: Any, opening: Any, timeout_s: float) -> str:
    mark = await begin(calls, opening, timeout_s)
    calls._there[opening.owner] = calls._there.pop(mark)
    return str(opening.owner)


def refuse(counters: Any, estimate: int, *_: Any) -> Any:
    yield from ()
    raise OverBudget(counters[0], estimate)


def decide_nothing(*_: Any) -> Any:
    yield from ()
    raise Throttled("slower")


async def settle_once(hooks: Any, ending: Any, tries: int) -> None:
    if tries:
        await ending.call.aclose(tries=1)


MISTAKES = [
    (reserving, "parts", lambda rest: [rest], "unfilled"),
    (reserving, "reserve", refuse, "starved"),
    (reserving, "reserve", decide_nothing, "undecided"),
    (reserving, "settle", settle_twice, "doubled"),
    (Call, "_ended", release_without_settling, "uncounted"),
    (reserving, "_hold", hold_under_a_name_for_each_attempt, "stuck"),
    (reserving, "_hold", hold_for_a_day, "held"),
    (OpenCalls, "begin", begin_by_the_name_that_the_caller_gave, "uncounted"),
]


@pytest.mark.parametrize(("place", "name", "mistake", "seen"), MISTAKES)
def test_each_mistake_is_seen(place: Any, name: str, mistake: Any, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, name, mistake)
    figures = measure(2, 1, LOSING)
    assert figures.is_undecided if seen == "undecided" else figures.wrong[seen]
    assert not figures.is_right


def test_a_naive_tracker_is_passed_and_where_it_is_right_nothing_is_judged() -> None:
    figures = measure(2, 1, LOSING)
    assert figures.is_right, figures
    assert all(spent > CAP for spent in figures.naive.values())
    for naive in (Counter({**figures.naive, "customer-0": CAP}), Counter[str]()):
        assert not replace(figures, naive=naive).is_right


def test_who_refuses_every_call_or_decides_or_answers_none_is_not_right() -> None:
    for outcome in ("refused", "undecided", "failed"):
        figures = Figures(naive=Counter(ann=2 * CAP))
        figures.calls["ann"] = Counter({outcome: 20})
        judge(TwoGateways(CAP), figures)
        assert not figures.is_right
