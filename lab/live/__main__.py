"""`python -m lab.live` (`make demo-web`): serves the live page."""

import sys
from typing import Annotated

import typer

from lab.live.controls import BadControl
from lab.live.server import PORT, PortTaken, serve
from lab.live.stories import COUNTER, STORIES


def main(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Where to serve; 0: any port that is free.")] = PORT,
    story: Annotated[str, typer.Option(help=f"What is told: {' or '.join(STORIES)}.")] = COUNTER.name,
    seed: Annotated[int, typer.Option(help="Decides the changes and the lag of each item.")] = 1,
) -> None:
    """Serve the live page on 127.0.0.1 until Ctrl-C.

    Exit code: 0 when it was ended, 2 when the port cannot be used, or there is no such story.
    """
    try:
        serve(port, story=story, seed=seed)
    except (PortTaken, BadControl) as refused:
        print(refused, file=sys.stderr)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    typer.run(main)
