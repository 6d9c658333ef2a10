"""A table in several Regions that does the worst DynamoDB may do, and histories of the shipped code on it. Contents:

World     the table, for tests of your own too     play     one history from its choices, judged
Faults    what goes wrong, and how often           choices  where its choices come from
"""

from simulator.choices import Drawn, Replayed
from simulator.faults import Faults
from simulator.history import Played, play
from simulator.world import World

__all__ = ["Drawn", "Faults", "Played", "Replayed", "World", "play"]
