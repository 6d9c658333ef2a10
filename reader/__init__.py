"""Exact counters on Amazon DynamoDB: the readers' side. Contents:

Reader       reads counters               Balance   a counter at an instant
Entry        one change of a history      Position  a place in a history
HistoryPage  some entries, and where to go on
CountersPage some names, and where to go on     Place    a place among them
Standing     what is left of a limit      Room      how far a value can go
PeriodBalance  a period of a counter
Crossed      a threshold that holds       Top       the largest counters
Series       changes, step by step        Step      one of its steps
"""

from reader.balance import Balance, CountersPage, Entry, HistoryPage, Place, Position
from reader.crossed import Crossed
from reader.periods import PeriodBalance
from reader.reader import Reader
from reader.series import Series, Step
from reader.standing import Room, Standing
from reader.top import Top

__all__ = [
    "Balance",
    "CountersPage",
    "Crossed",
    "Entry",
    "HistoryPage",
    "PeriodBalance",
    "Place",
    "Position",
    "Reader",
    "Room",
    "Series",
    "Standing",
    "Step",
    "Top",
]
