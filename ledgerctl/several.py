"""The same for many counters or lanes: some at a time, each with its outcome."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ledger.cost import carried
from ledger.errors import GaveUp, LedgerError, TableError
from ledgerctl import show
from ledgerctl.call import Call
from ledgerctl.failures import DATA, NO_ANSWER

WORKERS = 8
Name = TypeVar("Name")
Done = TypeVar("Done")


def each(call: Call, what: str, names: Sequence[Name], work: Callable[[Name], Done]) -> list[Done]:
    """The outcomes in order, some at a time; the first alone, because it asks for the table's shape, once for all."""
    with show.bar(call.err, what, len(names)) as advance, ThreadPoolExecutor(WORKERS) as workers:

        def one(name: Name) -> Done:
            try:
                return work(name)
            finally:
                advance(1)

        return [*map(one, names[:1]), *workers.map(carried(one), names[1:])]


def each_of(
    call: Call, what: str, names: Sequence[Name], work: Callable[[Name], Done]
) -> list[tuple[Name, Done | LedgerError]]:
    """The outcome or the error of each counter or lane, in order, some at a time. What fails for all is raised."""

    def one(name: Name) -> tuple[Name, Done | LedgerError]:
        try:
            return name, work(name)
        except LedgerError as error:
            return name, error

    outcomes = each(call, what, names, one)
    errors = [outcome for _, outcome in outcomes if isinstance(outcome, LedgerError)]
    if errors and (len(names) == 1 or len(errors) == len(names)):
        raise errors[0]
    return outcomes


def exit_code_of(failed: Sequence[LedgerError]) -> int:
    """3 where another try may help every one of them, else 1."""
    return NO_ANSWER if failed and all(isinstance(error, TableError | GaveUp) for error in failed) else DATA
