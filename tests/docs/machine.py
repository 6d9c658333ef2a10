"""A state machine of Step Functions run here: as much of the Amazon States Language, with JSONata, as the pages use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import jsonata  # type: ignore[import-untyped]

STEPS_MAX = 100


class Failed(Exception):
    """A task or a machine ended with the error of this name."""

    @property
    def name(self) -> str:
        return str(self.args[0])

    def is_one_of(self, names: list[str]) -> bool:
        return self.name in names or "States.ALL" in names


def evaluated(expression: str, **names: object) -> Any:
    """As Step Functions evaluates it, with its $hash."""
    program = jsonata.Jsonata(expression.removeprefix("{%").removesuffix("%}"))
    for name, value in names.items():
        program.assign(name, value)
    program.register_lambda(
        "hash", lambda text, algorithm: hashlib.new(algorithm.replace("-", ""), text.encode()).hexdigest()
    )
    return program.evaluate(None)


def filled(value: Any, names: Mapping[str, object]) -> Any:
    """What a field of a state says, with every expression in it evaluated."""
    match value:
        case str() if value.startswith("{%"):
            return evaluated(value, **names)
        case dict():
            return {key: filled(each, names) for key, each in value.items()}
        case list():
            return [filled(each, names) for each in value]
    return value


def execute(machine: Mapping[str, Any], event: Any, task: Callable[[str, Any], Any]) -> str:
    """The name of the state in which the machine succeeds. `task(resource, arguments)` answers, or raises Failed.

    Raises Failed when the machine fails. Retries do not wait.
    """
    name, variables = machine["StartAt"], dict[str, object]()
    for _ in range(STEPS_MAX):
        state, states = machine["States"][name], {"input": event}
        if state["Type"] == "Succeed":
            return str(name)
        if state["Type"] == "Fail":
            raise Failed(state["Error"])
        name = state.get("Next")
        if state["Type"] == "Task":
            try:
                states["result"] = _tried(state, {**variables, "states": states}, task)
            except Failed as failed:
                name = next((c["Next"] for c in state.get("Catch", []) if failed.is_one_of(c["ErrorEquals"])), None)
                if name is None:
                    raise
                continue
        seen = {**variables, "states": states}
        variables |= filled(state.get("Assign", {}), seen)
        if state["Type"] == "Choice":
            fitting = (choice["Next"] for choice in state["Choices"] if filled(choice["Condition"], seen))
            name = next(fitting, state["Default"])
    raise AssertionError("the machine does not come to an end")


def _tried(state: Mapping[str, Any], names: Mapping[str, object], task: Callable[[str, Any], Any]) -> Any:
    arguments, left = filled(state["Arguments"], names), [r["MaxAttempts"] for r in state.get("Retry", [])]
    while True:
        try:
            return task(state["Resource"], arguments)
        except Failed as failed:
            fitting = (i for i, r in enumerate(state.get("Retry", [])) if failed.is_one_of(r["ErrorEquals"]))
            i = next(fitting, None)
            if i is None or not left[i]:
                raise
            left[i] -= 1
