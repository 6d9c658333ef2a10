"""Exact counters on Amazon DynamoDB: the readers' side. Contents:

Reader   reads counters     Balance  a counter at an instant     Entry  one change of a counter's history
"""

from reader.balance import Balance, Entry
from reader.reader import Reader

__all__ = ["Balance", "Entry", "Reader"]
