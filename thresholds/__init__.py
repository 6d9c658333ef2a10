"""Thresholds: a crossing is kept as an item, and told under one id. Contents:

evaluate  compares a counter's value with its thresholds    Tell  asks for the event of a crossing
Crossing  that a value passed a threshold                   items how a crossing stands in the table
"""

from thresholds.crossing import Crossing, Tell
from thresholds.evaluate import Evaluated, evaluate

__all__ = ["Crossing", "Evaluated", "Tell", "evaluate"]
