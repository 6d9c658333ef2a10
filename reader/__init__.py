"""Exact counters on Amazon DynamoDB: the readers' side. Contents:

Reader       reads counters               Balance   a counter at an instant
Entry        one change of a history      Position  a place in a history
HistoryPage  some entries, and where to go on
Standing     what is left of a limit      Room      how far a value can go
"""

from reader.balance import Balance, Entry, HistoryPage, Position
from reader.reader import Reader
from reader.standing import Room, Standing

__all__ = ["Balance", "Entry", "HistoryPage", "Position", "Reader", "Room", "Standing"]
