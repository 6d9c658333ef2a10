"""`again` sends an undecided call once more, a few times."""

from collections.abc import Callable, Generator
from typing import Any

from ledger.core.errors import Again
from ledger.core.requests import Result
from ledger.core.running import Doubt

TRIES_MAX = 5


def again(
    program: Callable[[], Generator[Any, Any, Result]], tries: int = TRIES_MAX
) -> Generator[Any, Any, Result]:
    """Run a program until the table decides, `tries` times at most.

    Raises what the program raises, and what an earlier run left open.
    """
    with Doubt() as doubt:
        for _ in range(tries - 1):
            try:
                return (yield from program())
            except Again as error:
                doubt.note(error)
        return (yield from program())
