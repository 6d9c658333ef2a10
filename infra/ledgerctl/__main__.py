"""`ledgerctl`, and `python -m infra.ledgerctl`: starts the program, if what it needs is installed."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from infra.ledgerctl.app import app
    except ModuleNotFoundError as missing:
        if missing.name not in ("rich", "typer"):
            raise
        sys.exit(f"ledgerctl needs {missing.name}, which is not installed: pip install 'exact-counter[cli]'")
    app(prog_name="ledgerctl")


if __name__ == "__main__":
    main()
