"""Exact counters on Amazon DynamoDB: the writers' side. Contents:

Ledger    adds changes              Settings  where the table is, how the protocol is tuned
Change    one change of a batch     Delta     one change in its lane, named by its token
Receipt   an acknowledgement        errors    every error of this library
"""

from ledger import errors
from ledger.settings import Settings
from ledger.values import Change, Delta, Lane, Receipt
from ledger.writer import Ledger

__version__ = "0.1.0"

__all__ = ["Change", "Delta", "Lane", "Ledger", "Receipt", "Settings", "errors"]
