"""One program through another: `through` sends what `step` answers into a program, and failures too; `at` sends what a
program asks to another Region."""

from collections.abc import Callable, Generator
from typing import Any

from ledger.requests import At, Now, Pause, Program, Request, Result


def through(
    program: Generator[Any, Any, Result], step: Callable[[Any], Generator[Any, Any, Any]]
) -> Generator[Any, Any, Result]:
    """The program with `step(request)` in the place of each request: it yields what is really asked, and answers."""
    try:
        request = next(program)
        while True:
            try:
                answer = yield from step(request)
            except Exception as failure:  # GeneratorExit is none, and ends the program too
                request = program.throw(failure)
            else:
                request = program.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


def at(region: str, program: Program[Result]) -> Program[Result]:
    """The program with each request of its table at that Region, but for those that name one themselves."""

    def step(request: Request) -> Program[Any]:
        return (yield request if isinstance(request, Now | Pause | At) else At(region, request))

    return through(program, step)
