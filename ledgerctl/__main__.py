"""`ledgerctl`, and `python -m ledgerctl`: starts the program, if what it needs is installed."""

import signal
import sys


def main() -> None:
    try:
        from ledgerctl.app import app
    except ModuleNotFoundError as missing:
        if missing.name not in ("rich", "typer"):
            raise
        sys.exit(f"ledgerctl needs {missing.name}, which is not installed: in a clone, pip install '.[cli]'")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that it, too, is told how to go on
    try:
        app(prog_name="ledgerctl")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C, while the interpreter ends, is no stack trace


if __name__ == "__main__":
    main()
