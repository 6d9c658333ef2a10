"""Exact counters on Amazon DynamoDB: the compactor. Contents:

Compactor   cleans, folds and settles      Report        what it did
            verifies and rebuilds          Verification  a counter recounted

Rule 1: Each is imported at its first use, so that a Lambda function loads only the programs that it
runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compactor.compactor import Compactor
    from compactor.report import Report
    from compactor.verify import Verification

__all__ = ["Compactor", "Report", "Verification"]

_MODULES = {
    "Compactor": "compactor.compactor",
    "Report": "compactor.report",
    "Verification": "compactor.verify",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
