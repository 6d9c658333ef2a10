"""`ledgerctl`, and `python -m exact_counter`."""

import signal
import sys

try:
    import rich  # noqa: F401

    from ledgerctl.app import app
except ModuleNotFoundError as missing:
    if missing.name not in ("rich", "typer"):
        raise
    print(
        f"ledgerctl needs {missing.name}, which is not installed: pip install "
        "'exact-counter[cli]', or in a clone pip install '.[cli]'",
        file=sys.stderr,
    )
    sys.exit(2)  # failures.USAGE, whose module needs typer; 1 would be about the data

__all__ = ["app", "main"]


def main() -> None:
    # ends as Ctrl-C does: with what was done
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app(prog_name="ledgerctl")
    finally:
        # a second Ctrl-C, while the interpreter ends, is no stack trace
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
