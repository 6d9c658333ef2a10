"""`python -m lab.engines` (`make engine`): an embedded DynamoDB with a table, until Ctrl-C.

Rule 1: `ledgerctl init` makes the table, as on AWS, so whatever you try on it holds there.
Rule 2: standard output holds only lines for a shell, so you can paste them, or a program can read
them, as they are.
"""

import os
import shlex
import subprocess
import sys
import time

import typer

from lab.engines.ministack import Engine, EngineDied, EngineMissing, end_on_signals

LOOK_S = 1.0


def main() -> None:
    """Run an embedded DynamoDB with a table in it, until Ctrl-C."""
    end_on_signals()
    try:
        with Engine() as engine:
            environ = {
                "LEDGER_TABLE": "counters",
                "LEDGER_ENDPOINT_URL": engine.endpoint_url,
                "AWS_REGION": "eu-west-1",
                **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "embedded"),
            }
            init = [sys.executable, "-m", "ledgerctl", "init"]
            subprocess.run(init, env=os.environ | environ, stdout=sys.stderr, check=True)
            for name, value in environ.items():
                print(f"export {name}={value}")
            # -P: a ledger.py in the directory where it is called is somebody else's
            print(f"alias ledgerctl='{shlex.quote(sys.executable)} -P -m ledgerctl'", flush=True)
            how = "Paste these lines into other shells. Ctrl-C ends the engine and all in it."
            print(how, file=sys.stderr)
            while True:
                time.sleep(LOOK_S)
                engine.check()
    except KeyboardInterrupt:
        pass
    except (EngineMissing, EngineDied, subprocess.CalledProcessError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    typer.run(main)
