"""Tables for your own tests, without AWS.

MemoryTable   one Region, in memory
ClockedTable  the same, on a clock that your test moves
Simulation    several Regions, with lag, cuts and lost answers; Faults says how often each happens
"""

import ledger as _ledger  # noqa: F401  rule 3 of the door
from ledger.memory import MemoryTable
from simulator import ClockedTable, Faults, Simulation

__all__ = ["ClockedTable", "Faults", "MemoryTable", "Simulation"]
