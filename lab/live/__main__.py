"""`python -m lab.live` (`make demo-web`): serves the live page."""

import sys
from typing import Annotated

import typer

from lab.live.server import PORT, Server


def main(
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Where to serve; 0: any port that is free.")
    ] = PORT,
    seed: Annotated[
        int, typer.Option(min=0, help="Decides the changes and the lag of each item.")
    ] = 1,
) -> None:
    """Serve the live page on 127.0.0.1 until Ctrl-C.

    Exit code: 0 when it was ended, 2 when the port cannot be used.
    """
    try:
        with Server(port, seed=seed) as server:
            print(f"The live page is at {server.url} (Ctrl-C ends it).")
            server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        print("\nEnded.")
    except OSError as error:
        print(
            f"Port {port} cannot be used: {error.strerror}. PORT=... names another one.",
            file=sys.stderr,
        )
        raise typer.Exit(2) from None


if __name__ == "__main__":
    typer.run(main)
