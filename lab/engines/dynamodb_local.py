"""Starts Amazon's DynamoDB Local as a process, as `ministack` does MiniStack; run as a program, only gets it.

Rule 1: Those of `ministack`. A Region's tables are its own here too, because DynamoDB Local keeps a database for each
access key and Region.
"""

import argparse
import sys

from lab.engines.maven import LocalMissing, LocalNotGot, install
from lab.engines.ministack import Engine


class DynamoDBLocal(Engine):
    """One DynamoDB Local that serves every Region; `with DynamoDBLocal() as engine:`. Its data is gone when it ends.

    `executable`: what lab.engines.maven.install gave; by default that is called.
    """

    _probed, _up = "/", 400  # it wants credentials

    def start(self) -> None:
        """Starts it and waits until it answers. Raises LocalMissing and LocalNotGot too, when it has to be got."""
        self._executable = self._executable or install()
        super().start()


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m lab.engines.dynamodb_local", description="Gets DynamoDB Local."
    ).parse_args()
    try:
        print(f"DynamoDB Local: {install().parent}")
    except (LocalMissing, LocalNotGot) as error:
        sys.exit(str(error))
