"""The lab's figures of budgets, smaller: nothing is wrong, beside a tracker that is passed. Each mistake is seen."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from integrations import budgets, litellm_calls, reserving
from lab.budgets.calls import ENDS, measure
from lab.budgets.caps import CAP, FAULTS
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

    def twice(counters: Any, holds: Any, cost: int, named: Any, over: str) -> Any:
        yield from settle(counters, holds, cost, named, over)
        again = reserving.Named(f"{named.id}/again", named.at)
        return (yield from settle(counters, (), cost, again, over))

    patch.setattr(budgets, "settle", twice)


def gives_back_without_settling(patch: pytest.MonkeyPatch) -> None:
    def released(call: Any, failed: bool) -> Any:
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


@pytest.mark.parametrize(
    ("mistake", "seen"),
    [
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
    assert getattr(measure(CUSTOMERS, SEED, LOSING), seen) > 0
