"""The live page: the shipped programs in a simulated world of two Regions, disturbed from a browser. Contents:

Scene      the world, ten milliseconds at a time      picture    what the page is sent of it
Controls   what a visitor may set, checked            serve      the page on 127.0.0.1, until Ctrl-C
"""

from lab.live.controls import BadControl, Controls
from lab.live.picture import picture
from lab.live.scene import Scene
from lab.live.server import PORT, PortTaken, serve

__all__ = ["PORT", "BadControl", "Controls", "PortTaken", "Scene", "picture", "serve"]
