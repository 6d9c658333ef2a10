"""The live page: the shipped programs in simulated worlds, told as stories, disturbed from a browser. Contents:

STORIES    the stories by name               Teller     tells one, by itself or step by step
Controls   what a visitor may set, checked   serve      the page on 127.0.0.1, until Ctrl-C
"""

from lab.live.controls import BadControl, Controls
from lab.live.server import PORT, PortTaken, serve
from lab.live.stories import STORIES, Teller

__all__ = ["PORT", "STORIES", "BadControl", "Controls", "PortTaken", "Teller", "serve"]
