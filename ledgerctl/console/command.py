"""`console`: a page that shows counters in a browser of this computer."""

import os
from contextlib import suppress
from typing import Annotated

import typer

from ledger.core.loopback import HOST
from ledger.lane.shape import ShapeCheck
from ledgerctl.call import Call
from ledgerctl.command import command
from ledgerctl.console.capped import PAGE_UNITS
from ledgerctl.console.server import Server
from ledgerctl.failures import Wrong


@command("console")
def console(
    call: Call,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Where to serve; 0: any port that is free.")
    ] = 8091,
    host: Annotated[
        str,
        typer.Option(help="The address to serve at; only this computer's loopback is possible."),
    ] = HOST,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address and open no browser.")
    ] = False,
    units: Annotated[
        int, typer.Option(min=4 * PAGE_UNITS, help="The most read units that one view may take.")
    ] = 4_096,
) -> None:
    """Show counters on a page of this computer, until Ctrl-C. It only reads.

    Anybody who has the address that it prints reads with your credentials.
    """
    if host not in (HOST, "localhost"):
        why = f"The console listens on {HOST} alone: anybody who reaches it reads with your rights."
        way = f"On the other computer, run ssh -L {port}:{HOST}:{port} with this one's name."
        raise Wrong("OtherHost", why, way)
    call.on_table(ShapeCheck(call.settings).program())  # a table that is not there ends it here
    try:
        server = Server(call, port, units)
    except OSError as failure:
        why = f"The console cannot listen on port {port}: {os.strerror(failure.errno or 0)}."
        way = "Name another with --port; --port 0 takes any that is free."
        raise Wrong("PortTaken", why, way) from None
    with server, suppress(KeyboardInterrupt):
        call.document({"url": server.url})
        call.say(f"{server.url} (Ctrl-C ends it)")
        if not no_open:
            call.surroundings.open_page(server.url)
        server.serve_forever(poll_interval=0.2)
