"""Exact counters on Amazon DynamoDB: the one name that you import, the same in a clone and from the
wheel. Contents:

Ledger    adds changes               Reader     reads counters
Settings  where the table is         Compactor  merges changes, so that reads stay cheap
Limit     what a value never passes  Hold       a part of a limit, set aside
Period    names a time's period      Threshold  a value to watch; the service says when it is passed

and what their calls take and return. Below it:

errors    every error that these raise  testing  tables for your tests, with faults too
aio       the same for asyncio          budgets  budgets of calls that you pay for
queue     changes through SQS           fast     a client that spends less CPU than boto3's

Rule 1: all that users import stands here or in one of these six modules. The rest may change at any
time.
Rule 2: Python imports each side at the first use of one of its names. Who only adds loads neither
reader nor compactor; in the wheel `ledgerctl` stands below this package, and loads none of them
before it needs one.
Rule 3: A side is imported whole before a part of it. Else two threads, of which one imports the
side and one the part, wait for each other, and Python gives one of them half a module.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compactor import Compactor, Report, Verification
    from exact_counter import aio as aio
    from exact_counter import budgets as budgets
    from exact_counter import errors
    from exact_counter import fast as fast
    from exact_counter import queue as queue
    from exact_counter import testing as testing
    from ledger import (
        Change,
        Cost,
        Delta,
        Hold,
        Holds,
        Keep,
        Lane,
        Ledger,
        Limit,
        Observed,
        Period,
        Receipt,
        Settings,
        Then,
        Threshold,
        Transfer,
        __version__,
    )
    from reader import (
        Balance,
        CountersPage,
        Crossed,
        Entry,
        HistoryPage,
        PeriodBalance,
        Place,
        Position,
        Reader,
        Room,
        Series,
        Standing,
        Step,
        Top,
    )

__all__ = [
    "Balance",
    "Change",
    "Compactor",
    "Cost",
    "CountersPage",
    "Crossed",
    "Delta",
    "Entry",
    "HistoryPage",
    "Hold",
    "Holds",
    "Keep",
    "Lane",
    "Ledger",
    "Limit",
    "Observed",
    "Period",
    "PeriodBalance",
    "Place",
    "Position",
    "Reader",
    "Receipt",
    "Report",
    "Room",
    "Series",
    "Settings",
    "Standing",
    "Step",
    "Then",
    "Threshold",
    "Top",
    "Transfer",
    "Verification",
    "__version__",
    "errors",
]


_BELOW = ("aio", "budgets", "errors", "fast", "queue", "testing")


if not TYPE_CHECKING:  # or a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in __all__ and name not in _BELOW:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, _found(name))


def __dir__() -> list[str]:
    return __all__


def _found(name: str) -> Any:
    if name in _BELOW:
        # `from exact_counter import errors` would ask `__getattr__` again, without end
        return import_module(f".{name}", __name__)
    import ledger as adding  # rule 3: the others import its parts

    if name in ("Compactor", "Report", "Verification"):
        import compactor as side

        return getattr(side, name)
    if hasattr(adding, name):
        return getattr(adding, name)
    import reader as reading

    return getattr(reading, name)
