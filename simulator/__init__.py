"""A table in several Regions that does the worst DynamoDB may do, and histories of the shipped code on it. Contents:

Simulation  the test double: a table for tests of your own     play     one history from its choices, judged
Faults      what goes wrong, and how often                     World    the table itself, a request at a time
"""

from simulator.choices import Drawn, Replayed
from simulator.double import Simulation
from simulator.faults import Faults
from simulator.history import Played, play
from simulator.world import World

__all__ = ["Drawn", "Faults", "Played", "Replayed", "Simulation", "World", "play"]
