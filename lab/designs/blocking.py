"""A function that waits for its answers, as a program: each request that it asks for is yielded.

Rule 1: The function has a thread of its own, and one of the two runs at a time: it until it asks or ends, then whoever
runs the program.
Rule 2: A program that is given up ends its function where it waits, as a process dies: no `except Exception` sees it.
"""

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

from ledger.errors import LedgerError
from ledger.requests import Program, Request, Result

Ask = Callable[[Request], Any]


class GivenUp(BaseException):
    """Nobody runs the program any more."""


def as_program(function: Callable[[Ask], Result]) -> Program[Result]:
    """What the function returns or raises; it asks by the callable that it is given."""
    steps: SimpleQueue[tuple[Request, Future[Any]] | Future[Result]] = SimpleQueue()

    def ask(request: Request) -> Any:
        answer = Future[Any]()
        steps.put((request, answer))
        return answer.result()

    def work() -> None:
        end = Future[Result]()
        try:
            end.set_result(function(ask))
        except BaseException as error:
            end.set_exception(error)
        steps.put(end)

    Thread(target=work, daemon=True).start()
    while not isinstance(step := steps.get(), Future):
        request, answer = step
        try:
            answer.set_result((yield request))
        except GeneratorExit:
            answer.set_exception(GivenUp())
            raise
        except LedgerError as error:
            answer.set_exception(error)
    return step.result()
