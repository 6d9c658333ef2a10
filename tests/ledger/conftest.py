"""What is of each test of a gate, and a server that says what a script says."""

import threading
from collections.abc import Iterator

import pytest

from lab.histories.stage.filing import filed_as
from tests.ledger.scripted import Server


@pytest.fixture(autouse=True)
def _files_as_shipped() -> Iterator[None]:
    """Whatever a test set is undone."""
    with filed_as():
        yield


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("time.sleep", lambda _: None)
    with Server() as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.over.set()
        for client in made.clients:
            client.close()
        made.shutdown()
