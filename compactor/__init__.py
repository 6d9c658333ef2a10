"""Exact counters on Amazon DynamoDB: the compactor. Contents:

Compactor   cleans, folds and settles      Report        what it did
            verifies and rebuilds          Verification  a counter recounted
"""

from compactor.compactor import Compactor
from compactor.report import Report
from compactor.verify import Verification

__all__ = ["Compactor", "Report", "Verification"]
