"""Exact counters on Amazon DynamoDB: the compactor. Contents:

Compactor   folds, settles and cleans      Report        what it did
            verifies and rebuilds          Verification  a counter recounted
"""

from compactor.compactor import Compactor
from compactor.report import Report
from compactor.verify import Verification

__all__ = ["Compactor", "Report", "Verification"]
