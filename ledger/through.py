"""One program through another: `through` sends what `step` answers into a program, and failures too."""

from collections.abc import Callable, Generator
from typing import Any

from ledger.requests import Result


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
