"""`demo`: the live page of the checkout, which asks AWS nothing.

Rules: demo/ is not part of the wheel, so it is imported when it is asked for, and its absence is a sentence.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ledgerctl.call import Call
from ledgerctl.command import command
from ledgerctl.failures import Wrong


@command("demo")
def demo(
    call: Call,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Where to serve; 0: any port that is free.")] = 8090,
) -> None:
    """Serve the live page on 127.0.0.1 until Ctrl-C: two simulated Regions to watch and to disturb."""
    try:
        from demo.web import PortTaken, serve
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("bench", "demo"):
            raise
        raise Wrong("NoDemo", "The live page is not in this installation.", "In a clone: make demo-web.") from None
    try:
        serve(port, say=call.say)
    except PortTaken as taken:
        raise Wrong("PortTaken", str(taken)) from None
