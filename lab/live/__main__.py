"""`python -m lab.live` (`make demo-web`): serves the live page."""

import sys
from typing import Annotated

import typer

from lab.live.server import PORT, PortTaken, serve


def main(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Where to serve; 0: any port that is free.")] = PORT,
    seed: Annotated[int, typer.Option(min=0, help="Decides the changes and the lag of each item.")] = 1,
) -> None:
    """Serve the live page on 127.0.0.1 until Ctrl-C.

    Exit code: 0 when it was ended, 2 when the port cannot be used.
    """
    try:
        serve(port, seed=seed)
    except PortTaken as taken:
        print(taken, file=sys.stderr)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    typer.run(main)
