"""One program sent through another."""

from collections.abc import Generator
from typing import Any

import pytest

from ledger.errors import Throttled, Unavailable
from ledger.through import through


def asks(*texts: str) -> Generator[str, Any, list[object]]:
    """Asks each, and takes a failure for an answer."""
    answers: list[object] = []
    for text in texts:
        try:
            answers.append((yield text))
        except Throttled as failure:
            answers.append(failure)
    return answers


def twice(text: str) -> Generator[str, Any, str]:
    return f"{(yield text + '1')} {(yield text + '2')}"


def end_of(program: Generator[Any, Any, Any], answer: object) -> object:
    with pytest.raises(StopIteration) as ended:
        program.send(answer)
    return ended.value.value


def test_a_step_asks_as_often_as_it_likes_for_each_request_and_answers_it() -> None:
    program = through(asks("a", "b"), twice)
    assert [next(program), program.send(1), program.send(2), program.send(3)] == ["a1", "a2", "b1", "b2"]
    assert end_of(program, 4) == ["1 2", "3 4"]


def test_a_failure_of_a_step_is_raised_where_the_program_asked() -> None:
    failure = Throttled("slow")
    program = through(asks("a", "b"), twice)
    next(program)
    assert program.throw(failure) == "b1"
    program.send(1)
    assert end_of(program, 2) == [failure, "1 2"]


def test_what_the_program_does_not_catch_ends_both() -> None:
    program = through(asks("a", "b"), twice)
    next(program)
    with pytest.raises(Unavailable):
        program.throw(Unavailable("gone"))
