"""The lab's figures of budgets, smaller: nothing is wrong, beside a tracker that is passed. Each mistake is seen."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from integrations import budgets, litellm_calls, reserving
from lab.budgets.calls import ENDS, measure
from lab.budgets.caps import CAP, FAULTS, World
from lab.budgets.verdict import Figures, judge
from ledger.errors import Throttled
from simulator import Faults

CUSTOMERS = 2
LOSING = replace(FAULTS, lost=200, cut=0)
"""Answers are lost often, and none is undecided for long."""

SEED = 1


@pytest.mark.parametrize("faults", [FAULTS, LOSING])
def test_no_budget_is_passed_under_faults_while_a_naive_tracker_is_passed_in_all(faults: Faults) -> None:
    figures = measure(CUSTOMERS, SEED, faults)
    assert figures.is_right, figures
    assert 0 < figures.spent <= CUSTOMERS * CAP
    assert sum(figures.outcomes.values()) == CUSTOMERS * len(ENDS)
    assert all(spent > CAP for spent in figures.naive.values())
    assert len(figures.naive) == CUSTOMERS


def settles_twice(patch: pytest.MonkeyPatch) -> None:
    settle = reserving.settle

    def twice(counters: Any, holds: Any, cost: int, named: Any, *more: Any) -> Any:
        yield from settle(counters, holds, cost, named, *more)
        again = reserving.Named(f"{named.id}/again", named.at)
        return (yield from settle(counters, (), cost, again, *more))

    patch.setattr(budgets, "settle", twice)


def gives_back_without_settling(patch: pytest.MonkeyPatch) -> None:
    def released(call: Any, *_: Any) -> Any:
        yield from reserving.release(call.holds)
        return {}

    patch.setattr(budgets.Call, "_ended", released)


def holds_under_a_name_for_each_attempt(patch: pytest.MonkeyPatch) -> None:
    def hold(counter: str, estimate: int, named: Any, expires: Any) -> Any:
        return lambda ledger: ledger.hold(
            counter, estimate, expires=expires, idempotency_key=f"{named.id}/{uuid.uuid4().hex}", at=named.at
        )

    patch.setattr(reserving, "_hold", hold)


def holds_for_a_day(patch: pytest.MonkeyPatch) -> None:
    hold: Any = reserving._hold
    patch.setattr(reserving, "_hold", lambda *of: hold(*of[:-1], timedelta(days=1)))


def finds_a_call_by_the_name_that_its_caller_gave_it(patch: pytest.MonkeyPatch) -> None:
    begin = litellm_calls.OpenCalls.begin

    async def named(open: Any, opening: Any, timeout_s: float) -> str:
        mark = await begin(open, opening, timeout_s)
        open._there[opening.owner] = open._there.pop(mark)
        return str(opening.owner)

    patch.setattr(litellm_calls.OpenCalls, "begin", named)


def adds_the_rest_whole_or_not_at_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reserving, "parts", lambda rest: [rest])


def refuses_every_call(patch: pytest.MonkeyPatch) -> None:
    def refused(counters: Any, estimate: int, *_: Any) -> Any:
        yield from ()
        raise reserving.OverBudget(counters[0], estimate)

    patch.setattr(budgets, "reserve", refused)


def decides_no_call(patch: pytest.MonkeyPatch) -> None:
    def undecided(*_: Any) -> Any:
        yield from ()
        raise Throttled("slower")

    patch.setattr(budgets, "reserve", undecided)


@pytest.mark.parametrize(
    ("mistake", "seen"),
    [
        (adds_the_rest_whole_or_not_at_all, "unfilled"),
        (refuses_every_call, "starved"),
        (refuses_every_call, "undecided"),
        (decides_no_call, "undecided"),
        (settles_twice, "doubled"),
        (gives_back_without_settling, "uncounted"),
        (holds_under_a_name_for_each_attempt, "stuck"),
        (holds_for_a_day, "held"),
        (finds_a_call_by_the_name_that_its_caller_gave_it, "uncounted"),
    ],
)
def test_each_mistake_is_seen(
    mistake: Callable[[pytest.MonkeyPatch], None], seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    figures = measure(CUSTOMERS, SEED, LOSING)
    assert getattr(figures, seen) > 0
    assert not figures.is_right


def worlds(**outcomes: int) -> Figures:
    """What twenty calls of one customer came to, beside a tracker that is passed."""
    figures = Figures(naive=Counter(ann=2 * CAP))
    figures.calls["ann"] = Counter(outcomes)
    judge(World(faults=Faults()), figures)
    return figures


@pytest.mark.parametrize("outcomes", [{"refused": 20}, {"undecided": 20}, {"failed": 20}])
def test_who_refuses_every_call_or_decides_or_answers_none_is_not_right(outcomes: dict[str, int]) -> None:
    assert not worlds(**outcomes).is_right


def test_where_the_naive_tracker_is_right_nothing_is_judged() -> None:
    figures = measure(CUSTOMERS, SEED)
    assert (figures.is_right, figures.is_easy) == (True, False)
    for naive in (Counter({**figures.naive, "customer-0": CAP}), Counter[str]()):
        easy = replace(figures, naive=naive)
        assert (easy.is_right, easy.is_easy) == (False, True)
