"""Running programs: `run` and `drive` answer what one yields, `through` changes it on its way; and
what several answers to one change mean together.

Rule 1: no error speaks for another attempt. Code that sends one change in several requests keeps a
`Doubt` of them.
"""

import copy
from collections.abc import Callable, Generator, Sequence
from typing import Any, Self, TypeVar

from ledger.core.errors import LedgerError, OutcomeUnknown
from ledger.core.requests import AlreadyThere, AtOnce, Instant, Now, Resent, Result, Table

Answers = TypeVar("Answers", bound=Sequence[Any])


class Doubt:
    """Whether the requests that carried a change left open if it was written.

    As a block: an error that leaves it and decides nothing becomes an OutcomeUnknown, if an earlier
    request left that open. before: the doubt that the change comes with.
    """

    def __init__(self, before: "Doubt | None" = None) -> None:
        self._unknown: OutcomeUnknown | None = before._unknown if before is not None else None

    def __bool__(self) -> bool:
        return self._unknown is not None

    def note(self, answer: Result) -> Result:
        """`answer` itself, an error too, after a look at what it leaves open."""
        if isinstance(answer, OutcomeUnknown):
            self._unknown = answer
        elif isinstance(answer, Resent) or (isinstance(answer, AlreadyThere) and answer.resent):
            why = (
                "An earlier attempt at the request got no answer. It may or may not have been "
                "applied."
            )
            self._unknown = OutcomeUnknown(why)
        return answer

    def last_word(self, error: LedgerError) -> LedgerError:
        """The error to raise of a change whose last request failed with this one."""
        if self._unknown is None or error.is_decision or isinstance(error, OutcomeUnknown):
            return error
        return copy.copy(self._unknown)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LedgerError) and (unknown := self.last_word(error)) is not error:
            raise unknown from error


def or_error(call: Callable[..., Result], *args: Any) -> Result | LedgerError:
    """What a call returns, or the LedgerError that it raises."""
    try:
        return call(*args)
    except LedgerError as error:
        return error


def outcome(answer: Any) -> AlreadyThere | LedgerError | None:
    """The outcome of one write among several, from the answer that it had alone, or its error."""
    known = answer is None or isinstance(answer, AlreadyThere | LedgerError)
    return answer if known else AlreadyThere(answer or None)


def answered(answers: Answers) -> Answers:
    """The answers to several requests. Raises the first that is a LedgerError."""
    for answer in answers:
        if isinstance(answer, LedgerError):
            raise answer
    return answers


def run(program: Generator[Any, Any, Result], table: Table, now: Callable[[], Instant]) -> Result:
    """Drive a program to its end, with a table and a clock; the parts of an AtOnce one after the
    other.
    """
    return drive(program, answerer(table, now))


def answerer(table: Table, now: Callable[[], Instant]) -> Callable[[Any], Any]:
    """How `run` answers."""

    def answer(request: Any) -> Any:
        match request:
            case Now():
                return now()
            case AtOnce(parts):
                return [drive(part, answer) for part in parts]
        return table.answer(request)

    return answer


def drive(program: Generator[Any, Any, Result], answer: Callable[[Any], Any]) -> Result:
    """Send a program the answer to each of its yields, and raise failures there."""
    # `through` has this loop, too: on top of it each answer here would cost a generator
    try:
        request = next(program)
        while True:
            try:
                given = answer(request)
            except Exception as failure:
                request = program.throw(failure)
            else:
                request = program.send(given)
    except StopIteration as end:
        result: Result = end.value
        return result


def through(
    program: Generator[Any, Any, Result], step: Callable[[Any], Generator[Any, Any, Any]]
) -> Generator[Any, Any, Result]:
    """The program with `step(request)` in the place of each request: that yields real ones, and
    returns the answer.
    """
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
