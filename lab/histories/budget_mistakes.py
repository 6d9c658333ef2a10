"""Planted mistakes of budgets: each is a patch of one function, and some seed of `goes_wrong` finds it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from ledger.budgets import Call, reserving

Patch = Callable[[object, str, Any], object]
"""Sets an attribute, such as pytest's `monkeypatch.setattr`."""


def names_parts_anew(patch: Patch) -> None:
    patch(reserving.CallName, "part", lambda name, number: f"{name.id}/{uuid.uuid4().hex}")


def counts_the_rest_beside_whole(patch: Patch) -> None:
    filled: Any = reserving._filled

    def whole(counter: str, rest: int, name: Any, tries: int) -> Any:
        return rest if (yield from filled(counter, rest, name, tries)) else 0

    patch(reserving, "_filled", whole)


def counts_beside_under_a_new_name(patch: Patch) -> None:
    add: Any = reserving._add

    def anew(counter: str, change: int, key: str, at: Any) -> Any:
        return add(counter, change, uuid.uuid4().hex if counter.startswith("over:") else key, at)

    patch(reserving, "_add", anew)


def asks_for_no_parts(patch: Patch) -> None:
    def filled(counter: str, rest: int, name: Any, tries: int) -> Any:
        fits = not rest or (yield from reserving._added(counter, rest, name.rest, name.at, tries))
        return 0 if fits else rest

    patch(reserving, "_filled", filled)


def names_parts_by_what_is_left(patch: Patch) -> None:
    """As much of the rest as there is room for now, under one name; what is left changes, and the name does not."""

    def filled(counter: str, rest: int, name: Any, tries: int) -> Any:
        for part in (rest, *reserving.parts(rest)):
            if part and (yield from reserving._added(counter, part, name.part(part), name.at, tries)):
                return rest - part
        return rest

    patch(reserving, "_filled", filled)


def settles_twice(patch: Patch) -> None:
    settle = reserving.settle

    def twice(counters: Any, holds: Any, cost: int, name: Any, *more: Any) -> Any:
        yield from settle(counters, holds, cost, name, *more)
        return (yield from settle(counters, (), cost, reserving.CallName(f"{name.id}/again", name.at), *more))

    patch(reserving, "settle", twice)


def gives_back_without_settling(patch: Patch) -> None:
    def released(call: Call, *_: Any) -> Any:
        yield from reserving.release(call.holds)
        return {}

    patch(Call, "_ended", released)


def holds_under_a_name_for_each_attempt(patch: Patch) -> None:
    hold = reserving._hold

    def anew(counter: str, estimate: int, name: Any, expires: timedelta) -> Any:
        return lambda ledger: hold(counter, estimate, replace(name, id=uuid.uuid4().hex), expires)(ledger)

    patch(reserving, "_hold", anew)


def holds_for_a_day(patch: Patch) -> None:
    hold: Any = reserving._hold
    patch(reserving, "_hold", lambda *of: hold(*of[:-1], timedelta(days=1)))


MISTAKES = (
    *(settles_twice, gives_back_without_settling, holds_under_a_name_for_each_attempt, holds_for_a_day),
    *(names_parts_anew, counts_the_rest_beside_whole, counts_beside_under_a_new_name, asks_for_no_parts),
    names_parts_by_what_is_left,
)
