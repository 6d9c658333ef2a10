"""Planted mistakes of budgets: each takes the place of one function, and some seed of
`goes_wrong` finds it.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from ledger.budgets import Call, reserving

Patch = Callable[[object, str, Any], object]
"""Sets an attribute, such as pytest's `monkeypatch.setattr`."""
MISTAKES: list[Callable[[Patch], None]] = []


def _planted_at(owner: Any, name: str) -> Callable[[Callable[..., Any]], Callable[[Patch], None]]:
    """The function below it is called there, with the right one before what that is given."""

    def planted(wrong: Callable[..., Any]) -> Callable[[Patch], None]:
        right = getattr(owner, name)

        def plant(patch: Patch) -> None:
            patch(owner, name, lambda *given: wrong(right, *given))

        plant.__name__ = wrong.__name__
        MISTAKES.append(plant)
        return plant

    return planted


@_planted_at(reserving, "settle")
def settles_twice(right: Any, counters: Any, holds: Any, cost: int, name: Any, *more: Any) -> Any:
    yield from right(counters, holds, cost, name, *more)
    return (
        yield from right(counters, (), cost, reserving.CallName(f"{name.id}/again", name.at), *more)
    )


@_planted_at(Call, "_ended")
def gives_back_without_settling(right: Any, call: Call, *_: Any) -> Any:
    yield from reserving.release(call.holds)
    return {}


@_planted_at(reserving, "_holds")
def holds_under_a_name_for_each_attempt(
    right: Any, counters: Any, estimate: int, name: Any, expires: Any
) -> Any:
    return lambda ledger: right(counters, estimate, replace(name, id=uuid.uuid4().hex), expires)(
        ledger
    )


@_planted_at(reserving, "_holds")
def holds_under_a_name_with_the_timeout(
    right: Any, counters: Any, estimate: int, name: Any, expires: Any
) -> Any:
    return right(counters, estimate, replace(name, id=f"{name.id}/{expires}"), expires)


@_planted_at(reserving, "_holds")
def holds_for_a_day(right: Any, *given: Any) -> Any:
    return right(*given[:-1], timedelta(days=1))


@_planted_at(reserving.CallName, "part")
def names_parts_anew(right: Any, name: Any, number: int) -> str:
    return uuid.uuid4().hex


@_planted_at(reserving, "_filled")
def counts_the_rest_beside_whole(right: Any, counter: str, rest: int, *given: Any) -> Any:
    return rest if (yield from right(counter, rest, *given)) else 0


@_planted_at(reserving, "_add")
def counts_beside_under_a_new_name(
    right: Any, counter: str, change: int, key: str, name: Any
) -> Any:
    return right(counter, change, uuid.uuid4().hex if counter.startswith("over:") else key, name)


@_planted_at(reserving, "_filled")
def asks_for_no_parts(right: Any, counter: str, rest: int, name: Any, tries: int) -> Any:
    fits = not rest or (yield from reserving._added(counter, rest, name.rest, name, tries))
    return 0 if fits else rest


@_planted_at(reserving, "_filled")
def names_parts_by_what_is_left(right: Any, counter: str, rest: int, name: Any, tries: int) -> Any:
    """As much of the rest as there is room for now, under one name; what is left changes, and
    the name does not.
    """
    for part in (rest, *reserving.parts(rest)):
        if part and (yield from reserving._added(counter, part, name.part(part), name, tries)):
            return rest - part
    return rest
