"""The live page: the shipped programs in a simulated world, shown and disturbed from a browser. Contents:

Scene      the world and everybody who acts in it, a step at a time     Painter   what the page is sent of it
Controls   what a visitor may set, checked                              serve     the page on 127.0.0.1, until Ctrl-C
"""

from demo.web.controls import BadControl, Controls
from demo.web.picture import Painter
from demo.web.scene import Scene
from demo.web.server import PORT, PortTaken, serve

__all__ = ["PORT", "BadControl", "Controls", "Painter", "PortTaken", "Scene", "serve"]
