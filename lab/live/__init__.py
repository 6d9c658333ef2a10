"""The live page: the shipped programs in a simulated world, shown and disturbed from a browser. Contents:

Scene      the world and everybody who acts in it, a step at a time     Painter   what the page is sent of it
Controls   what a visitor may set, checked                              serve     the page on 127.0.0.1, until Ctrl-C
"""

from lab.live.controls import BadControl, Controls
from lab.live.picture import Painter
from lab.live.scene import Scene
from lab.live.server import PORT, PortTaken, serve

__all__ = ["PORT", "BadControl", "Controls", "Painter", "PortTaken", "Scene", "serve"]
