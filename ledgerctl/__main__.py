"""`ledgerctl`, and `python -m ledgerctl`."""

import signal
import sys

try:
    import rich  # noqa: F401

    from ledgerctl.app import app
except ModuleNotFoundError as missing:
    if missing.name not in ("rich", "typer"):
        raise
    sys.exit(f"ledgerctl needs {missing.name}, which is not installed: in a clone, pip install '.[cli]'")

__all__ = ["app", "main"]


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does: with what was done
    try:
        app(prog_name="ledgerctl")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C, while the interpreter ends, is no stack trace


if __name__ == "__main__":
    main()
