"""A table in several Regions that does the worst DynamoDB may do, and histories of the shipped code
on it. Contents:

Simulation    the test double: a table for tests of your own
ClockedTable  a table without lag and faults, on a clock of its own
Faults        what goes wrong, and how often
World         the table itself, request by request
Drawn         the choices of a history, from a seed
Replayed      the same choices, from a list

Theory of operation. A program of the shipped code yields a request; the world answers it, at one
step. Between two steps the world does what it does by itself: an item arrives in another Region, an
item of a transaction becomes visible, a late write applies, a Region is cut off. Where something
could go one way or another, the choices pick, and nothing else is random. So the same picks are the
same history, and you can replay a wrong one and shorten it.

    choices.py    the picks               world.py     the Regions' replicas, and what is on its way
    faults.py     how often each fault    cells.py     an item's states in one Region
    happening.py  a request, with faults  strong.py    multi-Region strong consistency
    process.py    who sends requests      trace.py     a history as a person reads it
    double.py     all this as a table for your own tests
    clocked.py    a table without lag and faults, on a clock of its own
    fixtures.py   both as fixtures of pytest
"""

from typing import TYPE_CHECKING

__all__ = ["ClockedTable", "Drawn", "Faults", "Replayed", "Simulation", "World"]

if TYPE_CHECKING:
    from simulator.choices import Drawn, Replayed
    from simulator.clocked import ClockedTable
    from simulator.double import Simulation
    from simulator.faults import Faults
    from simulator.world import World
else:
    # pytest loads fixtures.py, and so this file, in every run of whoever has the wheel: what
    # imports the ledger waits until somebody wants it
    _FILES = {
        "ClockedTable": "clocked",
        "Drawn": "choices",
        "Faults": "faults",
        "Replayed": "choices",
        "Simulation": "double",
        "World": "world",
    }

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _FILES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_FILES[name]}", __name__), name)
