"""A table in several Regions that does the worst DynamoDB may do, and histories of the shipped code
on it. Contents:

Simulation  the test double: a table for tests of your own
Faults      what goes wrong, and how often                     World    the table itself, request by
            request
"""

from simulator.choices import Drawn, Replayed
from simulator.double import Simulation
from simulator.faults import Faults
from simulator.world import World

__all__ = ["Drawn", "Faults", "Replayed", "Simulation", "World"]
