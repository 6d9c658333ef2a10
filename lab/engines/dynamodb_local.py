"""Starts Amazon's DynamoDB Local as a process, as `ministack` does MiniStack; run as a program, only gets it.

The rules a change must keep: those of `ministack`. A Region's tables are its own here too, because DynamoDB Local keeps
a database for each access key and Region.
"""

from __future__ import annotations

import argparse
import sys
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from lab.engines.maven import LocalMissing, LocalNotGot, install
from lab.engines.ministack import HOST, PROBE_EVERY_MS, START_TIMEOUT_MS, Engine, EngineDied


class DynamoDBLocal(Engine):
    """One DynamoDB Local that serves every Region; `with DynamoDBLocal() as engine:`. Its data is gone when it ends.

    `executable`: what lab.engines.maven.install gave; by default that is called.
    """

    def __init__(self, executable: Path | None = None) -> None:
        super().__init__(executable)

    def start(self) -> None:
        """Starts it and waits until it answers. Raises LocalMissing and LocalNotGot too, when it has to be got."""
        self._executable = self._executable or install()
        super().start()

    def _wait_until_up(self, port: int) -> None:
        for _ in range(START_TIMEOUT_MS // PROBE_EVERY_MS):
            self.check()
            if _answers(port):
                return
            time.sleep(PROBE_EVERY_MS / 1_000)
        raise EngineDied(f"DynamoDB Local did not answer within {START_TIMEOUT_MS} ms{self._log_tail()}")


def _answers(port: int) -> bool:
    connection = HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 500  # it wants credentials: 400
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m lab.engines.dynamodb_local", description="Gets DynamoDB Local."
    ).parse_args()
    try:
        print(f"DynamoDB Local: {install().parent}")
    except (LocalMissing, LocalNotGot) as error:
        sys.exit(str(error))
