"""Exact counters on Amazon DynamoDB: the writers' side. Contents:

Ledger    adds changes              Settings  where the table is, how the protocol is tuned
Change    one change of a batch     Delta     one change in its lane, named by its token
Receipt   an acknowledgement        errors    every error of this library
Limit     what a value never passes Hold      a part of a limit, set aside
Transfer  the result of a transfer  Holds     parts of several limits, set aside together
Then      what follows a change     Threshold a number; the service publishes when a value passes it
Cost      what a call cost          Observed  a call that is over: its outcome, time and cost
Period    names a time's period     Keep      how long the periods of a prefix are kept
"""

from ledger import errors
from ledger.client.holds import Hold, Holds
from ledger.client.writer import Ledger
from ledger.core.cost import Cost
from ledger.core.keep import Keep
from ledger.core.limit import Limit, Threshold
from ledger.core.observing import Observed
from ledger.core.period import Period
from ledger.core.settings import Settings
from ledger.core.values import Change, Delta, Lane, Receipt, Then, Transfer

__version__ = "0.2.0"

__all__ = [
    "Change",
    "Cost",
    "Delta",
    "Hold",
    "Holds",
    "Keep",
    "Lane",
    "Ledger",
    "Limit",
    "Observed",
    "Period",
    "Receipt",
    "Settings",
    "Then",
    "Threshold",
    "Transfer",
    "errors",
]
